"""What a check has found.

Invariant: an output is wrong that exceeds the tolerance and is not within the rounding spread of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from ..base.errors import CheckFailed, Problem
from ..base.records import dataclass
from ..check import litert, rounding
from ..check.arbiter import arbitrate
from ..check.compare import ATOL, OF_LARGEST, RTOL, Comparison, compare_values
from ..check.oracle import JUDGE
from ..check.spread import Spread
from ..check.witnesses import RoundingEffect, Witness
from ..emit.package import Package
from ..graph.ir import Graph
from ..targets.api import Target
from .fewer_bits import Effect

REPORT = "please report it; -O0 may be right"


@dataclass(frozen=True)
class Tolerance:
    rtol: float = RTOL
    atol: float = ATOL
    of_largest: float = OF_LARGEST
    steps: int = 0

    def compare(self, name: str, got: Any, want: Any) -> Comparison:
        return compare_values(name, got, want, self.rtol, self.atol, self.of_largest, self.steps)

    def arbitrate(self, name: str, got: Any, want: Any, doubles: Any) -> Comparison:
        return arbitrate(name, got, want, doubles, self.rtol, self.atol, self.of_largest)

    def suiting(self, graph: Graph, target: Target) -> Tolerance:
        """Narrow floats are rounded after every operation here, and wherever it suits it by the reference."""
        most = rounding.of_numbers(graph, bool(target.option("half_lanes", 0)))
        return replace(self, of_largest=max(self.of_largest, most))

    def of_litert(self, is_quantized: bool) -> Tolerance:
        """Its kernels round twice in places."""
        largest = max(self.of_largest, litert.OF_LARGEST) if is_quantized else self.of_largest
        return replace(self, of_largest=largest, steps=litert.STEPS)


DEFAULT = Tolerance()


@dataclass(frozen=True)
class Run:
    """One set of inputs."""

    name: str
    reference: str  # where the wanted outputs came from
    outputs: tuple[Comparison, ...]
    in_doubles: frozenset[str] = frozenset()  # outputs about which doubles decided
    decider: str = ""  # whose doubles, where they are our judge's
    backed: Mapping[str, str] = field(default_factory=dict)  # by whom, outputs of another shape, type or text
    left_open: frozenset[str] = frozenset()  # outputs that are what the standard allows, as the reference's are
    skipped: str = ""  # why it was not made

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)

    def decided_by(self, output: str) -> str:
        if output in self.backed:
            return f"{self.backed[output]}; {self.reference} gives another shape, type or text"
        if output in self.left_open:
            return f"as the standard allows, says {JUDGE}; {self.reference} differs"
        if output not in self.in_doubles:
            return self.reference
        says = f", says {self.decider}" if self.decider else ""
        return f"{self.reference} is further from float64{says}"


@dataclass(frozen=True)
class ResultPair:
    """What a set of inputs gave, here and by the reference."""

    inputs: Mapping[str, Any]
    got: Mapping[str, Any]
    wanted: Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """The first tensor that differs, and the nodes that make it."""

    tensor: str
    nodes: tuple[str, ...]
    comparison: Comparison


@dataclass(frozen=True)
class Verdict:
    """Where weights are stored narrow, the runs are those of the model with weights as they are."""

    package: Package
    runs: tuple[Run, ...]
    first: Difference | None = None
    effects: tuple[Effect, ...] = ()
    spreads: tuple[Spread, ...] = ()  # of outputs that differ
    shaken: tuple[RoundingEffect, ...] = ()  # the same by our judge
    witnesses: tuple[Witness, ...] = ()  # of the first set of inputs
    remarks: Mapping[str, str] = field(default_factory=dict)  # what weakens a verdict, by output
    fix: str = REPORT  # where it is wrong
    made: tuple[str, ...] = ()  # outputs of the model, in order
    ticks: tuple[int, ...] = ()  # of every run on a board, by its own counter; 0: it has none
    kept: tuple[ResultPair, ...] = field(
        default=(), compare=False, repr=False
    )  # of the runs that were made; nothing where there are not only tensors

    @property
    def ok(self) -> bool:
        """Is every output within tolerance, or within the rounding spread of the reference?"""
        right = all(output.ok or self.covers(output.name) for run in self.runs for output in run.outputs)
        return right and all(effect.ok for effect in self.effects)

    def covers(self, output: str) -> bool:
        found: tuple[Spread | RoundingEffect, ...] = (*self.spreads, *self.shaken)
        return any(each.covers for each in found if each.output == output)

    def failure(self, model: Path) -> CheckFailed:
        wrong = [c for c in self.worst() if not c.ok and not self.covers(c.name)]
        where = ", ".join(f"output {c.name!r} ({c.why or f'max abs {c.max_abs:.3g}'})" for c in wrong)
        why = "the first tensor that differs could not be found"
        if self.first:
            nodes = ", ".join(f'node "{name}"' for name in self.first.nodes)
            why = f"the first tensor that differs is {self.first.tensor!r}, made by {nodes or 'an unnamed node'}"
        return CheckFailed(Problem(f"{model} gives wrong results", where, why, self.fix))

    def worst(self) -> tuple[Comparison, ...]:
        """Per output the largest figures of all runs."""
        return tuple(
            Comparison(
                same[0].name,
                max(c.max_abs for c in same),
                max(c.max_rel for c in same),
                sum(c.mismatches for c in same),
                next((c.why for c in same if c.why), ""),
                max(c.excess for c in same),
            )
            for same in zip(*(run.outputs for run in self.runs if not run.skipped), strict=True)
        )
