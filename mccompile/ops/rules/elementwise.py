"""What all elementwise operators share: operands that broadcast, a result that is one scalar expression.

Invariant: type rule, known values and lowering all come from `element`, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from ...base.dims import Dim, bounds
from ...base.dtypes import DType, f32
from ...base.errors import InternalError
from ...base.records import dataclass
from ...base.tensor import Shape, TensorType, broadcast, may_be_equal, show_shape
from ...expr.derivative import derivative, slope_of_result
from ...expr.functions import FUNCTIONS
from ...expr.ir import Expr, apply, cast, operand
from ..api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .known_elements import known_result

if TYPE_CHECKING:
    from .backward import Backward

_TAKES: dict[str, tuple[str, ...]] = {
    "floats": ("float",),
    "numbers": ("float", "int", "uint"),
    "integers": ("int", "uint"),
    "bools": ("bool",),
    "numbers or bools": ("float", "int", "uint", "bool"),
    "elements of any type": ("float", "int", "uint", "bool", "string", "complex"),
}


class Elementwise(Operator, abstract=True):
    """`element` says what an element of the result is, given one of each operand that is present."""

    fusion = INJECTIVE
    takes: ClassVar[str] = "floats"

    def element(self, args: Sequence[Expr]) -> Expr:
        raise NotImplementedError

    def check(self, types: Sequence[TensorType]) -> None:
        """Raises Invalid where the operands' element types are not those of the operator."""
        check_dtypes(self.name, self.takes, types)

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return broadcast_shapes(shapes, assume=True)

    def infer(self, site: Site) -> list[Fact]:
        present = [i for i in range(len(site.facts)) if site.has(i)]
        types = [site.type(i) for i in present]
        if not types:
            raise Invalid("it has no operands")
        self.check(types)
        shape = self.result_shape([type.shape for type in types])
        expr = self.element([operand(i, type.dtype) for i, type in enumerate(types)])
        return [Fact(TensorType(expr.dtype, shape), known_result(expr, [site.value(i) for i in present], shape))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self

    def gradient(self, back: Backward) -> None:
        positions = [i for i in range(len(back.forward.inputs)) if back.has(i)]
        args = [operand(n, back.input(i).type.dtype) for n, i in enumerate(positions)]
        back.elementwise(self.element(args), positions)

    def lower(self, to: Lowering) -> None:
        ins = to.inputs()
        expr = self.element([operand(i, view.buffer.dtype) for i, view in enumerate(ins)])
        to.set(0, to.map(expr, ins, to.type().shape))


class Unary(Elementwise, abstract=True):
    """One operand."""

    def expr(self, x: Expr) -> Expr:
        raise NotImplementedError

    def element(self, args: Sequence[Expr]) -> Expr:
        return self.expr(args[0])

    def check(self, types: Sequence[TensorType]) -> None:
        check_count(self.name, types, 1)
        super().check(types)

    def slope(self, x: Expr) -> Expr | None:
        """The derivative at x, where it holds for more numbers than that of the expression."""
        return derivative(self.expr(x), 0)

    def slope_of_result(self, y: Expr) -> Expr | None:
        """The derivative where it follows from the result, so that the operand need not be kept."""
        return None

    def gradient(self, back: Backward) -> None:
        of_result = self.slope_of_result(operand(0, back.result().type.dtype))
        if of_result is not None:
            back.sloped(0, of_result, [back.result()])
        else:
            back.sloped(0, self.slope(operand(0, back.input(0).type.dtype)), [back.input(0)])


class UnaryFunction(Unary, abstract=True):
    """One scalar function."""

    function: ClassVar[str] = ""

    def expr(self, x: Expr) -> Expr:
        return apply(self.function, x)

    def slope_of_result(self, y: Expr) -> Expr | None:
        return slope_of_result(self.function, y)


class Activation(Unary, abstract=True):
    """A formula of several operations over floats: computed in f32 where the type is narrower, and rounded once."""

    def formula(self, x: Expr) -> Expr:
        raise NotImplementedError

    def expr(self, x: Expr) -> Expr:
        return cast(self.formula(widened(x)), x.dtype)

    def bend(self, x: Expr) -> Expr | None:
        """The derivative of the formula, where that is known better than from the formula."""
        return None

    def slope(self, x: Expr) -> Expr | None:
        bend = self.bend(widened(x))
        return super().slope(x) if bend is None else cast(bend, x.dtype)


class Binary(Elementwise, abstract=True):
    """Two operands of one type. Below opset 7 they broadcast only where an attribute says so, from an axis on."""

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 7:
            _align(node)
        return make(cls, node)

    def expr(self, a: Expr, b: Expr) -> Expr:
        raise NotImplementedError

    def element(self, args: Sequence[Expr]) -> Expr:
        return self.expr(args[0], args[1])

    def check(self, types: Sequence[TensorType]) -> None:
        check_count(self.name, types, 2)
        super().check(types)


class BinaryFunction(Binary, abstract=True):
    """One scalar function."""

    takes = "numbers"
    function: ClassVar[str] = ""

    def expr(self, a: Expr, b: Expr) -> Expr:
        return apply(self.function, a, b)


Function = TypeVar("Function", UnaryFunction, BinaryFunction)


def scalar_function(
    base: type[Function], name: str, versions: tuple[int, ...], function: str, **more: str
) -> type[Function]:
    """The operator of that name, which is one scalar function, element by element; `more` may say what it takes."""
    if function not in FUNCTIONS:
        raise InternalError(f"no scalar function {function!r}")
    made = type(name, (base,), {"versions": versions, "function": function, **more})
    return dataclass(frozen=True)(made)


def _align(node: OnnxNode) -> None:
    """Operand 1 of an old node, with axes of size 1 behind its own where newer nodes would align it otherwise."""
    node.attributes.pop("consumed_inputs", None)
    broadcast, axis = node.attributes.pop("broadcast", 0), node.attributes.pop("axis", None)
    a, b = node.inputs[0], node.inputs[1]
    if a is None or b is None:
        raise Invalid("an operand is missing")
    if not broadcast:
        if a.type.shape != b.type.shape:
            raise Invalid(f"operands {a.type} and {b.type} differ, and it does not say that they broadcast")
        return
    behind = a.type.rank - b.type.rank - normal_axis(axis, a.type.rank) if axis is not None else 0
    if behind < 0:
        raise Invalid(f"{b.type} does not fit into {a.type} from axis {axis} on")
    if behind:
        axes = node.constant(np.arange(b.type.rank, b.type.rank + behind))
        node.inputs[1] = node.made("Unsqueeze", [b, axes])


def widened(x: Expr) -> Expr:
    """In the type that formulas are computed in."""
    return cast(x, wide(x.dtype))


def wide(dtype: DType) -> DType:
    return f32 if dtype.is_narrow_float else dtype


def check_count(name: str, types: Sequence[TensorType], count: int) -> None:
    if len(types) != count:
        raise Invalid(f"{name} takes {count} operands, not {len(types)}")


def check_dtypes(name: str, takes: str, types: Sequence[TensorType], same: bool = True) -> None:
    """Raises Invalid unless every operand has elements of the kind that is taken, and all have one type."""
    for index, type in enumerate(types):
        if type.dtype.kind not in _TAKES[takes] or (type.dtype.is_packed and takes != "elements of any type"):
            raise Invalid(f"{name} takes {takes}, operand {index} is {type}")
        if same and type.dtype is not types[0].dtype:
            raise Invalid(f"operands are of different types: {types[0]} and {type}")


def broadcast_shapes(shapes: Sequence[Shape], assume: bool = False) -> Shape:
    """The shape of a result. With `assume` the calls check sizes that are known only at run time (Lowering.map)."""
    try:
        return broadcast(*shapes, assume=assume)
    except ValueError as problem:
        unequal = _first_unequal(shapes)
        if unequal is None:
            raise Invalid(str(problem)) from None
        a, b = unequal
        why = f"shapes {', '.join(map(show_shape, shapes))} broadcast only where {a} is {b}, which cannot be shown"
        raise Unsupported(why, "fix free dimensions with --dim or --shape") from None


def _first_unequal(shapes: Sequence[Shape]) -> tuple[Dim, Dim] | None:
    """Two sizes on one axis that may be equal at run time; None where sizes differ in any case."""
    rank = max(map(len, shapes))
    found = None
    for axis in range(1, rank + 1):
        sizes = [shape[-axis] for shape in shapes if len(shape) >= axis and shape[-axis] != 1]
        for size in sizes:
            if size != sizes[0]:
                if not may_be_equal(sizes[0], size) and bounds(sizes[0])[0] > 1 and bounds(size)[0] > 1:
                    return None
                found = found or (sizes[0], size)
    return found


def check_broadcast(shape: Shape, target: Shape, what: str) -> None:
    """Raises Invalid unless `shape` broadcasts to `target`, which stays as it is."""
    if len(shape) > len(target) or broadcast_shapes([shape, target]) != target:
        raise Invalid(f"{what} of shape {show_shape(shape)} does not broadcast to x of shape {show_shape(target)}")
