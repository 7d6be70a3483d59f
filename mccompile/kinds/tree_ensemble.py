"""tree_ensemble: rows of features go down decision trees; the weights at the leaves they reach are combined per target.

Operands: x [rows, features]; roots [trees]; per node: feature (-1 at a leaf), threshold, yes and no (where to go, to a
node behind it; at a leaf the first of its weights and the one after the last); per weight: target and weight; then,
where `uses` names them: modes (index into MODES, where nodes differ) and missing (is the branch of a NaN the yes one?).
The result is [rows, targets]; a target that no leaf speaks of is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, static
from ..base.dtypes import i8, i16, i32, u8
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.known import Known, sums
from .api import Check, Kind, within

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
COMBINE = ("sum", "average", "min", "max")


@dataclass(frozen=True)
class TreeEnsemble(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "roots", "feature", "threshold", "yes", "no", "target", "weight")
    combine: str = "sum"
    mode: str = "LEQ"  # of all nodes; of none where `uses` has modes
    uses: tuple[str, ...] = ()  # of modes, missing, in that order

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.roles, *self.uses)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != len(self.names) or len(outs) != 1:
            return f"it has operands {', '.join(self.names)} and one result"
        x, roots, feature, threshold, yes, no, target, weight = ins[:8]
        if x.rank != 2 or not x.dtype.is_float or threshold.dtype is not x.dtype:
            return f"x {x} and thresholds {threshold} are not floats of one type"
        nodes = feature.shape
        if roots.rank != 1 or len(nodes) != 1 or any(t.shape != nodes for t in (threshold, yes, no, *ins[8:])):
            return "the operands about nodes are not of one length"
        if any(t.dtype not in (i16, i32) for t in (roots, feature, yes, no, target)):
            return "positions are not i16 or i32"
        if any(t.dtype is not (u8 if name == "missing" else i8) for name, t in zip(self.uses, ins[8:], strict=True)):
            return "modes are not i8, or what is missing is not u8"
        if target.rank != 1 or weight.shape != target.shape or weight.dtype is not outs[0].dtype:
            return f"weights {weight} and their targets {target} do not fit"
        if outs[0].rank != 2 or outs[0].shape[0] != x.shape[0] or self.combine not in COMBINE or self.mode not in MODES:
            return f"the result is {outs[0]} for x {x}"
        return ""

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        place = {name: number for number, name in enumerate(self.names)}
        nodes, weights = (static(ins[place[name]].count) for name in ("feature", "weight"))
        return (
            within(place["roots"], 0, nodes - 1),
            within(place["feature"], -1, static(ins[0].shape[1]) - 1),
            within(place["target"], 0, static(outs[0].shape[1]) - 1),
            Check("trees", (place["feature"], place["yes"], place["no"]), (weights,)),
        )

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        weight = given[self.names.index("weight")]
        return (sums(weight, static(ins[self.names.index("weight")].count), outs[0].dtype),)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return 0
