"""TopK: the k largest or smallest elements along an axis, sorted, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..base.dims import Dim, bounds, upper
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.top_k import TopK as TopKKind
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, make, normal_axis
from .rules.at_run_time import Formula
from .rules.known_shapes import scalar

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class TopK(Operator):
    """Results are sorted even where the model does not ask for it: then any order is right."""

    versions = (1, 10, 11, 24)
    axis: int = -1
    largest: int = 1
    sorted: int = 1

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if "k" in node.attributes:
            node.set_input(1, node.constant(np.array([node.attributes.pop("k")], np.int64)))
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if not x.rank:
            raise Invalid("a scalar has no axis to choose along")
        axis = normal_axis(self.axis, x.rank)
        k = scalar(site, 1, "k") if site.is_known(1) else _open_k(site, axis)
        if bounds(k)[1] < 0 or bounds(x.shape[axis] - k)[1] < 0:
            raise Invalid(f"k is {k}, the axis has {x.shape[axis]} elements")
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [Fact(TensorType(x.dtype, shape)), Fact(TensorType(i64, shape))]

    def lower(self, to: Lowering) -> None:
        facts = self.infer(to.site)
        if not to.site.is_known(1):
            formula = Formula(to)
            formula.settle(facts[0].type.shape[normal_axis(self.axis, facts[0].type.rank)], formula.element(1))
            formula.check()
        x, types = to.input(0), [fact.type for fact in facts]
        axis = normal_axis(self.axis, len(x.shape))
        to.require(x.shape[axis] - types[0].shape[axis])
        if types[0].count == 0:
            results = [to.nothing(type) for type in types]
        else:
            results = list(to.call(TopKKind(axis, types[0].shape[axis], bool(self.largest)), [x], *types))
        for number, view in enumerate(results):
            if to.wants(number):
                to.set(number, view)

    def gradient(self, back: Backward) -> None:
        zeros = back.zeros(back.input(0))
        back.give(0, back.op("ScatterElements", zeros, back.result(1), back.of(), axis=self.axis))


def _open_k(site: Site, axis: int) -> Dim:
    """k where it is computed at run time."""
    x = site.type(0)
    index = 0 if site.results and site.results[0] else 1 if len(site.results) > 1 and site.results[1] else 0
    type = site.results[index] if site.results else None
    if type is None:
        return site.size(0, axis, upper(x.shape[axis]))
    if type.rank != x.rank:
        raise Invalid(f"the model declares a result of shape {type.shape} for {x}")
    return type.shape[axis]
