"""A graph, node after node; or as an implementation may compute it that rounds after every operator.

Invariant: shaken, a result is off by at most `UNITS` of its type, and exact where the type holds it exactly: what comes
out then are results that rounding alone can lead to (Monte Carlo arithmetic). What quantizes has its operands moved,
since it rounds on its way to an integer. With a choice, what the standard leaves open is closed in one of the ways of
implementations, everywhere in the same one; half of the choices let results beyond the range of their type become
infinite, the others keep them, as implementations do that fuse operators or compute in wider types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .narrow import rounded_to
from .rules import CHOICES, Graph, Node, NodeSite, NoWitness, Run, rules

# what numpy raises for operands that a rule cannot take; the model may be wrong, or the rule: either way no witness
_FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_MOST = 2_000_000_000  # bytes of all values together
UNITS = {"float64": 2.0**-51, "float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_EXACT = ("moves", "indexing", "control", "texts")  # families that make no new numbers
_QUANTIZING = "quantized"


class Rounding:
    """What results are moved by: random numbers in the first run, the same in further ones until `forgotten`, so that
    differences between runs show what rounding leaves of a slope. Half is added, as errors of values are that slopes
    are taken at; half is a factor, as errors of the slopes are."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.chance = chance
        self.forgotten()

    def forgotten(self) -> None:
        self._moves: list[tuple[Any, Any]] = []  # what is added, and factors less 1
        self._next = 0

    def begin(self) -> None:
        self._next = 0

    def moved(self, value: Any, kind: str, held: bool = True) -> Any:
        """By up to so many units of the type; with `held`, numbers that it holds stay."""
        if not _is_float(value) or kind not in UNITS:
            return value
        added, factor = self._next_moves(value, partial(self._drawn, kind=kind, held=held))
        return np.where(factor == 0, value, value + added + value * factor)

    def drift(self, value: Any, kind: str) -> Any:
        """What rounding adds to what changes beside the first run; nothing in that."""
        if not _is_float(value) or kind not in UNITS:
            return np.zeros_like(value)
        added, factor = self._next_moves(value, partial(self._drifting, kind=kind))
        return added + value * factor

    def _next_moves(self, value: Any, drawn: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        if self._next == len(self._moves) or self._moves[self._next][0].shape != value.shape:
            self._moves[self._next :] = [drawn(value)]
        self._next += 1
        return self._moves[self._next - 1]

    def _drawn(self, value: Any, kind: str, held: bool) -> tuple[Any, Any]:
        factors = UNITS[kind] / 2 * self.chance.uniform(-1, 1, (2, *value.shape))
        stays = ~np.isfinite(value) | (held & (_rounded(value, kind) == value))
        return np.where(stays, 0.0, value * factors[0]), np.where(stays, 0.0, factors[1])

    def _drifting(self, value: Any, kind: str) -> tuple[Any, Any]:
        factor = np.where(np.isfinite(value), UNITS[kind] / 2 * self.chance.uniform(-1, 1, value.shape), 0.0)
        return np.where(np.isfinite(value), -value * factor, 0.0), factor


def judge(
    graph: Graph, feeds: Mapping[str, Any], shaken: Rounding | None = None, choice: int | None = None
) -> dict[str, Any]:
    """Outputs by name."""
    names = graph.outputs
    if shaken is not None:
        shaken.begin()
    with np.errstate(all="ignore"):
        given = {name: (widened(value), _type(value)) for name, value in feeds.items()}
        found = _Judge(shaken, choice).run(graph, given)
    missing = [name for name in names if name not in found]
    if missing:
        raise NoWitness(f"nothing makes {missing[0]}")
    return {name: found[name][0] for name in names}


def widened(value: Any) -> Any:
    """As rules take it."""
    if isinstance(value, list | tuple):
        return [widened(each) for each in value]
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "f":
        return array.astype(np.float64)
    if array.dtype.kind in "US":
        return np.array([_text(each) for each in array.reshape(-1)], object).reshape(array.shape)
    if array.dtype.kind == "O":
        return np.array([_text(each) for each in array.reshape(-1)], object).reshape(array.shape)
    if array.dtype.kind == "V" or array.dtype.name not in np.sctypeDict:  # element types that numpy does not have
        name = array.dtype.name
        whole = np.int8 if name.startswith("int") else np.uint8 if name.startswith("uint") else np.float64
        return array.astype(whole)
    return array


def narrowed(value: Any, kind: str) -> Any:
    """In the element type that a model gives it, where numpy has it."""
    return value.astype(kind) if isinstance(value, np.ndarray) and kind in np.sctypeDict else value


def _text(value: object) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def _type(value: Any) -> str:
    return str(value.dtype.name) if isinstance(value, np.ndarray | np.generic) else ""


Values = dict[str, tuple[Any, str]]  # and the element type that the model gives them


class _Judge:
    def __init__(self, shaken: Rounding | None, choice: int | None) -> None:
        self.shaken, self.choice = shaken, choice
        self.room = 0

    def run(self, graph: Graph, around: Mapping[str, tuple[Any, str]]) -> Values:
        values: Values = {**around}
        for name, value in graph.constants.items():
            values[name] = widened(value), graph.types.get(name, _type(value))
        for node in graph.nodes:
            made = self.results(node, graph, values)
            self.room += sum(value.nbytes for value, _ in made.values() if isinstance(value, np.ndarray))
            if self.room > _MOST:
                raise NoWitness("values of more than 2 GB")
            values |= made
        return values

    def results(self, node: Node, graph: Graph, values: Values) -> Values:
        rule = rules().get(node.title)
        given = [values[name] if name else (None, "") for name in node.inputs]
        types = [graph.types.get(name, "") for name in node.outputs]
        if rule is None and node.body is None and node.own is None:
            raise NoWitness(f"{node.title} is not judged")
        try:
            if rule is not None:
                operands, kinds = [value for value, _ in given], [kind for _, kind in given]
                if self.shaken is not None and rule.__module__.endswith(_QUANTIZING):
                    operands = [self.shaken.moved(value, kind, held=False) for value, kind in given]
                inner, rounded, drift = self.inner(values), self.rounded(kinds), self.drift(kinds)
                made = rule(NodeSite(node, operands, kinds, types, inner, rounded, drift, self.choice))
            elif node.body is not None:
                made = self.function(node.body, given)
            else:
                assert node.own is not None
                made = node.own([narrowed(value, kind) for value, kind in given], node.attributes)
                made = tuple(widened(value) for value in made)
        except _FAILURES as failure:
            raise NoWitness(f"{node.title}: {type(failure).__name__}: {failure}") from failure
        results = list(made) if isinstance(made, tuple) else [made]
        usual = next((kind for value, kind in given if _is_float(value)), "") or "float32"
        found: Values = {}
        for name, value, kind in zip(node.outputs, results, types, strict=False):
            value = widened(value) if isinstance(value, np.generic) else value
            kind = kind or (usual if _is_float(value) else _type(value))
            if self.shaken is not None and (node.own if rule is None else not rule.__module__.endswith(_EXACT)):
                value = self.shaken.moved(value, kind)
            if self.choice is not None and self.choice >= len(CHOICES) // 2:
                value = _overflowed(value, kind)
            found[name] = value, kind
        found.pop("", None)
        return found

    def rounded(self, kinds: Sequence[str]) -> Callable[[Any], Any]:
        """What is made on the way to results, in the type of the first operand; sums of many, so not held exactly."""
        shaken, kind = self.shaken, (*kinds, "")[0]
        return lambda value: value if shaken is None else shaken.moved(value, kind, held=False)

    def drift(self, kinds: Sequence[str]) -> Callable[[Any], Any]:
        """How far rounding in this type lets slip what was made on the way to results, where it changes."""
        shaken, kind = self.shaken, (*kinds, "")[0]
        return lambda value: np.zeros_like(value) if shaken is None else shaken.drift(value, kind)

    def inner(self, values: Values) -> Run:
        def run(graph: Graph, operands: Sequence[Any]) -> list[Any]:
            feeds = {}
            for name, value in zip(graph.inputs, operands, strict=True):
                feeds[name] = value, graph.types.get(name, "") or _type(value)
            found = self.run(graph, {**values, **feeds})
            return [found[name][0] for name in graph.outputs]

        return run

    def function(self, body: Graph, given: Sequence[tuple[Any, str]]) -> tuple[Any, ...]:
        feeds = dict(zip(body.inputs, given, strict=False))
        feeds |= {name: (None, "") for name in body.inputs[len(given) :]}
        found = self.run(body, feeds)
        return tuple(found[name][0] if name in found else None for name in body.outputs)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _overflowed(value: Any, kind: str) -> Any:
    """Infinite where the type cannot hold it."""
    if not _is_float(value) or kind not in UNITS:
        return value
    rounded = _rounded(value, kind)
    return np.where(np.isinf(rounded), rounded, value)


def _rounded(value: Any, kind: str) -> Any:
    return rounded_to(value, kind) if kind != "float32" else value.astype(np.float32).astype(np.float64)
