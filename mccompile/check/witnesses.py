"""Who says the same of a model's outputs: onnxruntime, ONNX's reference evaluator, our own judge and LiteRT, each as
far as it is there and knows the operators.

Invariant: a witness that cannot run the model is silent, and says why; none stands in for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.records import dataclass
from ..judge.narrow import NARROW
from ..judge.rules import CHOICES, NoWitness
from ..judge.run import Rounding
from .compare import Comparison
from .oracle import EVALUATOR, JUDGE, DrawsOthers, Oracle

MOST_OF_JUDGE, MOST_OF_EVALUATOR = 30_000_000, 2_000_000  # products that each has time for
SHAKES = 12  # roundings that are tried
MORE_SHAKES = 84  # that are tried besides where those explain nearly all
Compare = Callable[[str, Any, Any], Comparison]
Handed = Callable[[dict[str, Any]], dict[str, Any]]
Weigh = Callable[[str, Any, Sequence[Any]], Comparison]


@dataclass(frozen=True)
class Witness:
    name: str
    differs: str = ""  # in what; empty where it agrees
    silent: str = ""  # why it says nothing

    @property
    def agrees(self) -> bool:
        return not (self.differs or self.silent)


@dataclass(frozen=True)
class RoundingEffect:
    """What rounding does to one output, by the judge: each result that floats do not hold is off by a unit or two."""

    output: str
    sets: int
    moved: int  # elements that come out otherwise, beyond the tolerance
    unexplained: int  # elements that are not among what comes out
    hybrid: float = 0.0  # the part of the largest element by which LiteRT may be off that rounds activations to 8 bits

    @property
    def covers(self) -> bool:
        return self.unexplained == 0


def witnesses(
    oracle: Oracle, inputs: Mapping[str, Any], got: Mapping[str, Any], macs: int, weigh: Weigh, handed: Handed
) -> Iterator[Witness]:
    """`weigh` is given a name, what was computed and all that a witness takes for right, as it is handed over."""
    for name, run in oracle.witnesses():
        most = {JUDGE: MOST_OF_JUDGE, EVALUATOR: MOST_OF_EVALUATOR}.get(name, macs)
        if macs > most:
            yield Witness(name, silent="not asked: the model is large")
            continue
        try:
            said = run(inputs)
        except DrawsOthers as why:
            yield Witness(name, silent=str(why))
            continue
        except NoWitness as why:
            yield Witness(name, silent=f"no witness of our own: {why}")
            continue
        if not said:
            yield Witness(name, silent="it cannot run the model")
            continue
        said = [handed(way) for way in said]
        ways = {
            output: [typed_as(value, way[output]) for way in said] for output, value in got.items() if output in said[0]
        }
        found = [weigh(output, got[output], each) for output, each in ways.items()]
        wrong = [f"{each.name}: {each.why or f'max abs {each.max_abs:.3g}'}" for each in found if not each.ok]
        yield Witness(name, ", ".join(wrong))


def typed_as(value: Any, said: Any) -> Any:
    """What was computed in doubles, in wider integers, or as text of one length, as the type that is asked for."""
    if (
        isinstance(value, np.ndarray)
        and isinstance(said, np.ndarray)
        and (value.dtype.kind, said.dtype.kind) == ("O", "U")
    ):
        return said.astype(object)
    if isinstance(value, np.ndarray) and isinstance(said, np.ndarray) and {value.dtype.kind, said.dtype.kind} != {"O"}:
        return said.astype(value.dtype) if value.dtype != said.dtype and said.dtype.kind in "fiu" else said
    return said


def shaken(
    oracle: Oracle, output: str, sets: Sequence[tuple[Mapping[str, Any], Any]], handed: Handed, compare: Compare
) -> RoundingEffect | None:
    """Of inputs and the output that was computed of them; None where the judge is not a witness of it."""
    moved = unexplained = 0
    for number, (inputs, got) in enumerate(sets):
        if not isinstance(got, np.ndarray):
            return None
        try:
            ways = [typed_as(got, handed(way)[output]) for way in oracle.allowed(inputs)]
            for n in range(SHAKES + MORE_SHAKES):
                shake = oracle.judged(inputs, Rounding(np.random.default_rng((number, n))), n % len(CHOICES))
                ways.append(typed_as(got, handed(shake)[output]))
                if any(not isinstance(way, np.ndarray) or way.shape != got.shape for way in ways):
                    return None
                if n < SHAKES - 1:
                    continue
                others = compare(output, _furthest(ways), ways[0]).mismatches
                left = compare(output, got, nearest_of(got, ways)).mismatches
                if left * SHAKES > others or not left:  # of chance, so many lie beyond one draw in SHAKES
                    break
        except NoWitness:
            return None
        moved += others
        unexplained += left
    return RoundingEffect(output, len(sets), moved, unexplained)


def _furthest(ways: Sequence[np.ndarray]) -> np.ndarray:
    """Of each element, what is furthest from the first way."""
    found = ways[0].copy()
    for way in ways[1:]:
        if found.dtype.kind in "iu" or _is_float(found):
            further = np.abs(_wide(way) - _wide(ways[0])) > np.abs(_wide(found) - _wide(ways[0]))
        else:
            further = way != ways[0]
        found = np.where(further, way, found).astype(found.dtype)
    return found


def closest(got: Any, ways: Sequence[Any]) -> Any:
    """The way that a result is compared with, of all that are right."""
    if len(ways) == 1 or any(not isinstance(each, np.ndarray) or each.shape != np.shape(got) for each in (got, *ways)):
        return ways[0]
    return nearest_of(got, ways)


def nearest_of(got: np.ndarray, ways: Sequence[np.ndarray]) -> np.ndarray:
    """Of each element, what is nearest to `got` of all that lies between the ways; of what is not a number, or a label
    (wide integers), one of the ways."""
    if _is_float(got) or (got.dtype.kind in "iu" and got.dtype.itemsize <= 2):
        wide = [_wide(way) for way in ways]
        low, high = np.min(wide, 0), np.max(wide, 0)
        between = np.where(np.isnan(low) | np.isnan(high), wide[0], np.clip(_wide(got), low, high))
        return between.astype(got.dtype)
    found = ways[0]
    for way in ways[1:]:
        found = np.where(np.asarray(way == got, bool), way, found).astype(found.dtype)
    return found


def _is_float(array: np.ndarray) -> bool:
    """Those that numpy does not have among them."""
    return array.dtype.kind == "f" or array.dtype.name in NARROW


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)
