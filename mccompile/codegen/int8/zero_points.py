"""Zero points that are not known, or not applied, when weights are packed, for kernels on int8 dot products.

The sum of (x - zero of x) * (w - zero of w) is the sum of x * w, less the zero point of x times the sum of the weights,
less the zero points of the weights times the sum of (x - zero of x). Weights without a sign are packed less 128, and so
are their zero points.
"""

from __future__ import annotations

from collections.abc import Callable

from ...base.dtypes import i8, u8
from ...base.marked import named
from ...program.ir import View
from ..loops import index_c
from .dot_tiles import NUMBER, SHIFT


def weights_c(weights: View, name: str) -> str:
    """C of a pointer to packed weights."""
    return named(name) if weights.buffer.dtype is i8 else f"(const int8_t *){named(name)}"


def is_one_number(view: View) -> bool:
    return all(stride == 0 or size == 1 for size, stride in zip(view.shape, view.strides, strict=True))


def zero_c(weights: View, zero: View | None, name: str, first: str, lanes: int, vector: int) -> str:
    """C of the zero points of a vector of packed weights, the first of the tile that of channel `first`."""
    less = SHIFT if weights.buffer.dtype is u8 else 0
    if zero is None:
        return f"mcc_set_i32x{lanes}({-less})"
    if not is_one_number(zero):
        at = index_c([1], [first], vector * lanes)
        found = f"mcc_load_{zero.buffer.dtype}_i32x{lanes}({name} + {at})"
    else:
        found = f"mcc_set_i32x{lanes}({name}[0])"
    return f"mcc_sub_i32x{lanes}({found}, mcc_set_i32x{lanes}({less}))" if less else found


def without_zero_points(
    lanes: int,
    points: int,
    vectors: int,
    late: Callable[[int], str] | None,
    rest: Callable[[int], str] | None,
    zero: Callable[[int], str],
) -> tuple[str, ...]:
    """Statements that take zero points off the accumulators of a tile. `late` is C of the zero point of x at a point,
    if that is not in the sums yet; the sums of the weights then lie behind the first block. `rest` is C of the sum of x
    less its zero points, where weights have some, and `zero` C of these for a vector."""
    of, lines = f"i32x{lanes}", []
    for vector in range(vectors):
        if late:
            at = vectors * lanes * NUMBER + vector * lanes * NUMBER
            lines.append(f"const mcc_{of} of_weights{vector} = mcc_load_{of}(wp + {at});")
        if rest:
            lines.append(f"const mcc_{of} zero{vector} = {zero(vector)};")
    for point in range(points):
        for vector in range(vectors):
            total = f"a{point}_{vector}"
            for number, factor in ((late, f"of_weights{vector}"), (rest, f"zero{vector}")):
                if number:
                    product = f"mcc_mul_{of}(mcc_set_{of}({number(point)}), {factor})"
                    lines.append(f"{total} = mcc_sub_{of}({total}, {product});")
    return tuple(lines)
