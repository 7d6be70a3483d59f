"""Random single nodes with operands, and what the witnesses make of them. The fuzzer's makers draw them; what they are
compared with is run on the node alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from mccompile.check.witnesses import SHAKES, nearest_of
from mccompile.frontend.drawing import drawing
from mccompile.frontend.judged import judged
from mccompile.judge.rules import CHOICES, NoWitness, Unspecified
from mccompile.judge.run import Rounding, judge
from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import captured, one_node, title
from tests.fuzz.operators.registry import drawn, entries
from tests.fuzz.oracle import session

OPSETS = (13, 15, 17, 18, 19, 20, 21, 22)
# of the largest element: what a runtime's own rounding may be, by the narrowest float of a node
ROUNDING = {"float64": 1e-7, "float32": 3e-5, "float16": 2.0**-8, "bfloat16": 2.0**-5}


@dataclass(frozen=True)
class Case:
    node: NodeProto
    feeds: Mapping[str, np.ndarray]
    opset: int

    @property
    def title(self) -> str:
        return title(self.node)

    @property
    def model(self) -> Any:
        return one_node(self.node, list(self.feeds), self.feeds, self.opset)

    def judged(self, shaken: Rounding | None = None, choice: int | None = None) -> list[Any]:
        """Raises NoWitness."""
        return list(judge(judged(self.model), self.feeds, shaken, choice).values())

    def allowed(self) -> list[list[Any]]:
        """In each way that the standard leaves open."""
        try:
            return [self.judged()]
        except Unspecified:
            return [self.judged(choice=choice) for choice in CHOICES]

    def by_onnxruntime(self) -> tuple[list[Any], float] | None:
        """With how far it may be off; in float32 where it has no kernel for other floats."""
        feeds = dict(self.feeds)
        for _ in range(2):
            made = session(one_node(self.node, list(feeds), feeds, self.opset))
            try:
                if made is not None:
                    return list(made.run(None, feeds)), _tolerance(feeds)
            except Exception:  # its exceptions have no class in common
                pass
            floats = {name for name, array in feeds.items() if array.dtype.name in ROUNDING}
            feeds |= {name: feeds[name].astype(np.float32) for name in floats}
        return None


def _tolerance(feeds: Mapping[str, np.ndarray]) -> float:
    found = [ROUNDING[array.dtype.name] for array in feeds.values() if array.dtype.name in ROUNDING]
    return max(found, default=ROUNDING["float32"])


def cases(seed: int, only: str = "") -> Iterator[Case]:
    chance = np.random.default_rng(seed)
    while True:
        opset = int(chance.choice(OPSETS))
        g = Builder(chance, opset, {})
        try:
            if only:
                entry = entries()[only]
                g = Builder(chance, max(opset, entry.opset), {})
            else:
                entry = drawn(g)
            entry.put(g)
        except (ValueError, IndexError, KeyError):
            continue
        arrays = {name: array for name, array in g.constants.items()}
        arrays |= {value.name: value.arrays[-1] for value in g.values}
        for node in g.nodes:
            names = sorted({*filter(None, node.input), *(name for name in captured(node) if name in arrays)})
            if all(name in arrays for name in names):
                yield Case(node, {name: arrays[name] for name in names}, g.opset)


def difference(found: Any, wanted: Any, tolerance: float) -> str:
    """What is wrong with one result; empty where it is within tolerance. `found` is the judge's."""
    if isinstance(found, list) or isinstance(wanted, list):
        if not isinstance(found, list) or not isinstance(wanted, list) or len(found) != len(wanted):
            return "another sequence"
        return next((text for a, b in zip(found, wanted, strict=True) if (text := difference(a, b, tolerance))), "")
    if found is None or wanted is None:
        return "" if found is wanted else "one is absent"
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "iubOSU" and wanted.dtype.name in np.sctypeDict:
        wrong = int(np.count_nonzero(found != wanted))
        return f"{wrong} of {wanted.size} elements differ" if wrong else ""
    a, b = (
        found.astype(np.complex128 if found.dtype.kind == "c" else np.float64),
        wanted.astype(np.complex128 if wanted.dtype.kind == "c" else np.float64),
    )
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(a - b))
    largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=1e-30))
    worst = float(np.max(np.where(np.isnan(off), np.inf, off), initial=0.0))
    return f"off by {worst:.3g} of {largest:.3g}" if worst > tolerance * max(largest, 1e-3) else ""


def compared(case: Case) -> tuple[str, str]:
    """A word and a detail: agrees, differs, unjudged or alone (nobody else runs it). What rounding may make agrees."""
    try:
        ways = case.allowed()
    except NoWitness as why:
        return "unjudged", str(why)
    said = None if drawing(case.model) else case.by_onnxruntime()  # which draws others
    if said is None:
        return "alone", ""
    theirs, tolerance = said
    found = [difference(a, b, tolerance) for a, b in zip(ways[0], theirs, strict=True)]
    if any(found):
        ways += [case.judged(Rounding(np.random.default_rng(n)), n % len(CHOICES)) for n in range(SHAKES)]
        nearest = [_nearest(b, [way[n] for way in ways]) for n, b in enumerate(theirs)]
        found = [difference(a, b, tolerance) for a, b in zip(nearest, theirs, strict=True)]
    text = next(filter(None, found), "")
    return ("differs", text) if text else ("agrees", "")


def _nearest(theirs: Any, ways: list[Any]) -> Any:
    if any(not isinstance(way, np.ndarray) or way.shape != np.shape(theirs) for way in ways):
        return ways[0]
    return nearest_of(np.asarray(theirs), [way.astype(theirs.dtype) for way in ways])
