"""The gradients of normalizations: x less its mean, over its deviation."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.records import dataclass
from ...expr.ir import apply, literal, operand
from ...graph.ir import Value
from .backward import Backward, static_shape


@dataclass(frozen=True)
class Normalized:
    """`value` is x normalized over axes, `inverse` 1 / deviation."""

    axes: tuple[int, ...]
    centred: bool
    value: Value
    inverse: Value

    @staticmethod
    def of(back: Backward, x: Value, axes: Sequence[int], epsilon: float, centred: bool = True) -> Normalized:
        dtype = x.type.dtype
        if centred:
            x = back.op("Sub", x, back.mean(x, axes))
        spread = back.mean(back.op("Mul", x, x), axes)
        root = apply("sqrt", apply("add", operand(0, dtype), literal(epsilon, dtype)))
        inverse = back.pointwise(apply("div", literal(1, dtype), root), spread)
        return Normalized(tuple(axes), centred, back.op("Mul", x, inverse), inverse)

    def back_to_x(self, back: Backward, of: Value) -> Value:
        """The gradient by x, given that by the normalized value."""
        along = back.mean(back.op("Mul", of, self.value), self.axes)
        given, value, part, inverse, middle = (operand(i, of.type.dtype) for i in range(5))
        rest = apply("sub", given, apply("mul", value, part))
        ins = [of, self.value, along, self.inverse]
        if self.centred:
            rest = apply("sub", rest, middle)
            ins.append(back.mean(of, self.axes))
        return back.pointwise(apply("mul", rest, inverse), *ins)


def scaled_back(back: Backward, normal: Normalized, of: Value, shape: tuple[int, ...] | None = None) -> None:
    """Gives the gradients of x, scale and bias (operands 0, 1 and 2), the latter two seen as tensors of `shape`; of x,
    where the normalized value has its shape. `of` is the gradient of the result."""
    scale = back.input(1) if back.has(1) else None
    if scale is not None and shape is not None:
        scale = back.reshape(scale, shape)
    if back.wants(0):
        given = of if scale is None else back.op("Mul", of, scale)
        own = static_shape(given)
        back.give(0, normal.back_to_x(back, given), own if own != back.shape(0) else None)
    if back.wants(1):
        back.give(1, back.op("Mul", of, normal.value), shape)
    if back.wants(2):
        back.give(2, of, shape)
