"""Constant, ConstantOfShape, Range: tensors made from attributes, sizes and bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.constant import Constant as ConstantTensor
from ..base.dims import Dim, maximum, static
from ..base.dtypes import DType, bool_, f32, f64, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import apply, cast, index, literal, operand
from ..graph.ir import constant_fact
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported
from .rules.at_run_time import Formula, static_count
from .rules.known_shapes import fact, fits, objects, scalar, sizes


def constant_value(attributes: Mapping[str, Any]) -> ConstantTensor:
    """The tensor that the attributes of a Constant node stand for."""
    present = [name for name, value in attributes.items() if value is not None]
    if len(present) != 1:
        raise Invalid(f"Constant needs exactly one attribute, it has {', '.join(present) or 'none'}")
    name, value = present[0], attributes[present[0]]
    match name:
        case "value":
            if not isinstance(value, ConstantTensor):
                raise Invalid("attribute value is not a tensor")
            return value
        case "value_float" | "value_floats":
            return ConstantTensor.of(np.asarray(value, np.float32))
        case "value_int" | "value_ints":
            return ConstantTensor.of(np.asarray(value, np.int64))
        case "value_string" | "value_strings":
            return ConstantTensor.of(np.asarray(value, object))
        case "sparse_value":
            raise Unsupported("sparse tensors", "store the constant as a dense tensor")
    raise Invalid(f"Constant has no attribute {name}")


@dataclass(frozen=True)
class Constant(Operator):
    """Only on its way into the graph: the frontend puts `tensor` itself in its place."""

    versions = (1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
    tensor: ConstantTensor

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return cls(constant_value(node.attributes))

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        return {"value": self.tensor}, None

    def infer(self, site: Site) -> list[Fact]:
        return [constant_fact(self.tensor)]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.constant(self.tensor.array))


@dataclass(frozen=True)
class ConstantOfShape(Operator):
    versions = (9, 20, 21, 23, 24, 25)
    fusion = INJECTIVE
    value: int | float | bool = 0.0
    dtype: DType = f32

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        tensor = node.attributes.pop("value", None)
        if node.attributes:
            raise Invalid(f"ConstantOfShape has no attribute {', '.join(node.attributes)}")
        if tensor is None:
            return cls()
        if not isinstance(tensor, ConstantTensor) or tensor.array.size != 1:
            raise Invalid("the value must be a tensor of one element")
        element = tensor.array.reshape(-1)[0]
        dtype = tensor.type.dtype
        if dtype.kind in ("string", "complex"):
            raise Unsupported(f"element type {dtype} is not supported")
        return cls(float(element) if dtype.is_float else element.item() if dtype is bool_ else int(element), dtype)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        return {"value": ConstantTensor.of(np.array([self.value]).astype(self.dtype.numpy))}, None

    def infer(self, site: Site) -> list[Fact]:
        if not site.is_known(0):
            count = static_count(site.type(0))
            return [Fact(TensorType(self.dtype, site.open_shape(0, "the shape", [None] * count)))]
        type = TensorType(self.dtype, sizes(site, 0, "the shape"))
        if not fits(type) or isinstance(self.value, float):
            return [Fact(type)]
        value = np.empty(type.static_shape, dtype=object)
        value[...] = self.value
        return [fact(type, value)]

    def lower(self, to: Lowering) -> None:
        if not to.site.is_known(0):
            formula = Formula(to)
            for expr, dim in zip(formula.elements(0), to.type().shape, strict=True):
                formula.settle(dim, expr)
            formula.check()
        to.set(0, to.map(literal(self.value, self.dtype), [], to.type().shape))


@dataclass(frozen=True)
class Range(Operator):
    """Where start and delta may be free, the count must follow from known numbers."""

    no_gradient = "how many elements there are follows from its operands"
    versions = (11, 27)
    fusion = INJECTIVE
    stash_type: int = 1

    def infer(self, site: Site) -> list[Fact]:
        types = [site.type(i) for i in range(3)]
        dtype = types[0].dtype
        for type in types:
            if type.dtype is not dtype or (type.rank and type.shape != (1,)):
                raise Invalid(f"start, limit and delta must be scalars of one type, not {', '.join(map(str, types))}")
        if self.stash_type != 1 and dtype.is_narrow_float:
            raise Unsupported(f"stash_type {self.stash_type}", "use stash_type 1 (float)")
        if not _bounds_known(site):
            declared = site.open_shape(0, "a bound", [None])
            if len(declared) != 1:
                raise Invalid(f"a range is a vector, the model declares {declared}")
            return [Fact(TensorType(dtype, declared))]
        if not site.is_known(0, 1, 2):
            return [Fact(TensorType(dtype, (_float_count(site),)))]
        start, limit = scalar(site, 0, "the start"), scalar(site, 1, "the limit")
        delta = site.known_ints(2, "the delta")[0]
        if delta == 0:
            raise Invalid("delta is 0")
        room = limit - start if delta > 0 else start - limit
        count = maximum(room + abs(delta) - 1, 0) // abs(delta)
        type = TensorType(dtype, (count,))
        return [fact(type, objects([start + i * delta for i in range(static(count))]) if fits(type) else None)]

    def lower(self, to: Lowering) -> None:
        dtype = to.type().dtype
        start, delta = (to.reshape(to.input(i), ()) for i in (0, 2))
        work = f32 if dtype.is_narrow_float else dtype
        first, step = (cast(operand(i, dtype), work) for i in range(2))
        if not _bounds_known(to.site):
            _check_count(to, to.type().shape[0])
        element = apply("add", first, apply("mul", cast(index(0), work), step))
        to.set(0, to.map(cast(element, dtype), [start, delta], to.type().shape))


def _float_count(site: Site) -> int:
    start, limit, delta = (site.constant(i, what).reshape(-1)[0] for i, what in enumerate(("start", "limit", "delta")))
    if delta == 0:
        raise Invalid("delta is 0")
    ratio = float(limit - start) / float(delta)
    if not math.isfinite(ratio):
        raise Invalid(f"a range from {start} to {limit} by {delta} has no end")
    return max(math.ceil(ratio), 0)


def _bounds_known(site: Site) -> bool:
    return site.is_known(0, 1, 2) or all(site.fact(i).constant is not None for i in range(3))


def _check_count(to: Lowering, count: Dim) -> None:
    """As many elements as the bounds lead to, or as the model declares; counted in float64, as ONNX does it."""
    formula = Formula(to)
    start, limit, delta = (cast(formula.raw(i), f64) for i in range(3))
    found = apply("ceil", apply("div", apply("sub", limit, start), delta))
    if count == 0:
        formula.require(apply("less_equal", found, literal(0, f64)))
    else:
        formula.settle(count, cast(apply("max", found, literal(0, f64)), i64))
    formula.check()
