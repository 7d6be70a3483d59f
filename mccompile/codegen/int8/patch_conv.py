"""What convolutions of 8-bit integers share that lay out the windows of a few positions as a patch, which is then
multiplied with all channels: what they can do, the windows as numbers, and what is left of the epilogue. Test cases
are those of all convolutions of 8-bit integers.

Operands and result lie channels-last. `depth` of a kernel is how many elements a window has in its patch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...base.dims import static
from ...base.dtypes import DType, f32, i4, i8, i32, u8
from ...base.marked import named
from ...base.tensor import TensorType
from ...expr.ir import Cast, apply, cast, literal, operand
from ...kernels.api import Call, Case, View
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ..loops import index_c
from ..tiles import is_constant
from ..windows import windows_name
from .dot import PALETTE, RAISED_SHIFTS, channel_numbers, epilogue_of, left_over
from .partial_epilogue import Placed, scalar_rest
from .rates import Work
from .short_sums import Int8Sums


class PatchConv(Int8Sums):
    kind = Conv
    code = 400
    rows_apart: ClassVar[bool] = False  # may others lie between the rows of a result, as phases take turns?

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        strided, pointwise = replace(plain, strides=(2, 2)), replace(plain, pads=(0,) * 4, x_zero=False)
        apart = replace(plain, dilations=(2, 2), pads=(2, 2, 2, 2))
        return [
            rescaled_case("3x3", plain, (1, 8, 5, 7), (6, 8, 3, 3)),
            rescaled_case("3x3_u8", plain, (1, 8, 5, 7), (6, 8, 3, 3), u8, shift=1),
            rescaled_case("few_channels", strided, (1, 3, 9, 8), (8, 3, 3, 3), shift=2),
            rescaled_case("one_channel", replace(strided, pads=(4, 1, 5, 1)), (1, 1, 12, 10), (8, 1, 10, 4), shift=3),
            rescaled_case("two_pictures", plain, (2, 4, 3, 3), (4, 4, 3, 3), shift=5),
            rescaled_case("1x1", pointwise, (1, 12, 5, 5), (10, 12, 1, 1), shift=6),
            rescaled_case("1x1_strided", replace(pointwise, strides=(2, 2)), (1, 8, 7, 6), (4, 8, 1, 1)),
            rescaled_case("1x1_odd", pointwise, (1, 7, 3, 3), (5, 7, 1, 1), shift=7),
            rescaled_case("one_position", replace(plain, pads=(0,) * 4), (1, 6, 3, 3), (9, 6, 3, 3), shift=8),
            rescaled_case("few_outputs", pointwise, (1, 8, 1, 1), (3, 8, 1, 1)),
            residual_case("residual", plain, (1, 8, 4, 4), (6, 8, 3, 3)),
            residual_case("residual_odd", plain, (1, 8, 5, 3), (6, 8, 3, 3)),
            residual_case("residual_one_more", plain, (1, 8, 3, 3), (6, 8, 3, 3)),
            residual_case("residual_two_pictures", plain, (2, 8, 4, 4), (6, 8, 3, 3)),
            residual_case("residual_one_by_one", plain, (1, 8, 5, 3), (5, 8, 3, 3)),
            residual_case("residual_one_column", pointwise, (1, 8, 5, 1), (5, 8, 1, 1)),
            residual_case("residual_one_row", pointwise, (1, 8, 1, 5), (5, 8, 1, 1)),
            rescaled_case("dilated", apart, (1, 4, 6, 6), (4, 4, 3, 3)),
            rescaled_case("dilated_odd", apart, (1, 6, 7, 6), (4, 6, 3, 3)),
            rescaled_case("dilated_wide", apart, (1, 9, 6, 7), (4, 9, 3, 3)),
            *(self.raised_cases(plain) if self.raises else ()),
            *(apart_cases() if self.rows_apart else ()),
        ]

    def raised_cases(self, plain: Conv) -> Sequence[Case]:
        return [
            rescaled_case("raised", plain, (1, 8, 5, 5), (6, 8, 3, 3), shift=12),
            rescaled_case("raised_one_by_one", plain, (1, 8, 3, 2), (5, 8, 3, 3), shift=14),
            residual_case("raised_residual", plain, (1, 8, 5, 3), (12, 8, 3, 3), shift=16),
        ]

    def refusal(self, call: Call, shifts: range, totals: bool = False) -> str:
        """Why windows of this call cannot be laid out like that, or nothing; the rest as `sums_refusal` takes it."""
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        reason = self.sums_refusal(call, kind.accumulator, shifts, totals)
        if reason:
            return reason
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype not in self.stored or kind.w_zero or kind.group != 1:
            return "operands are not 8-bit integers, weights have zero points, or there are groups"
        zeros = call.ins[2 : kind.fixed]
        if len(kind.strides) != 2 or 0 in y.shape or not all(map(is_constant, (w, *zeros))):
            return "it is not 2-D, the result is empty, or weights or zero points are computed"
        if rows_lie_apart(call) and not self.rows_apart:
            return "rows of the result are not contiguous"
        if any(view.strides[1] != 1 and view.shape[1] != 1 for view in (x, y)):
            return "x and the result are not channels-last"
        taps = zip(w.type.static_shape[2:], kind.dilations, strict=True)
        spans = [(size - 1) * dilation + 1 for size, dilation in taps]
        if any(pad >= span for pad, span in zip(kind.pads, spans * 2, strict=True)):
            return "windows lie outside the input"
        return ""

    def joined(self, call: Call) -> bool:
        """Do the taps of a row of a window follow each other without gaps?"""
        x, w, kind = call.ins[0], call.ins[1], conv_of(call)
        return w.shape[3] == 1 or (kind.dilations[1] == 1 and x.strides[3] == x.shape[1])

    def run(self, call: Call) -> int:
        """Elements of x that follow each other in a window."""
        w = call.ins[1]
        return static(w.shape[1]) * (static(w.shape[3]) if self.joined(call) else 1)

    def depth(self, call: Call) -> int:
        raise NotImplementedError

    def work(self, call: Call) -> Work:
        w, count = call.ins[1], static(call.outs[0].type.count)
        outs, runs, run = static(w.shape[0]), static(w.shape[2]), self.run(call)
        if not self.joined(call):
            runs *= static(w.shape[3])
        windows = count // outs
        return Work(
            products=windows * self.computed(call) * self.depth(call),
            copied=windows * runs * run,
            results=windows * self.computed(call),
            rest=count if left_over(call, self.raises) is not None else 0,
            windows=windows,
            runs=windows * runs,
            loose=windows * runs * run if static(w.shape[1]) % 4 else 0,
        )

    def computed(self, call: Call) -> int:
        """Results of a window, with those that nobody stores."""
        return static(call.ins[1].shape[0])

    def label(self, call: Call) -> str:
        kind, (x, w) = conv_of(call), call.ins[:2]
        return f"conv_{windows_name(w.shape[2:], kind.strides, x)}_{w.shape[0]}"

    def placed(self, call: Call) -> tuple[list[Placed], tuple[View, str]]:
        """Operands of the epilogue and the result, with the index of channel o of position `at`."""
        kind, y = conv_of(call), call.outs[0]

        def place(view: View) -> str:
            batch, channel, row, column = (static(stride) for stride in view.strides)
            line = f"({named('at_row')} % {view.lines})" if view.lines else "at_row"
            return index_c([batch, row, column, channel], ["n" if y.shape[0] != 1 else "0", line, "at_column", "o"])

        operands = zip(self.parameter_names(call)[1][kind.fixed :], call.ins[kind.fixed :], strict=True)
        return [(name, view, place(view)) for name, view in operands], (y, place(y))

    def rest(self, call: Call) -> dict[str, Any]:
        """What is left to do with the result or total `found[o]` of channel o of position `at`."""
        left = left_over(call, self.raises)
        if left is None:
            return {"rest": False}
        width, by_rows, at = static(call.outs[0].shape[3]), self.by_rows(call), named("at")
        places = {
            "at_row": "row_out" if by_rows else f"{at} / {width}" if width > 1 else at,
            "at_column": at if by_rows else f"{at} % {width}" if width > 1 else "0",
        }
        return {
            "rest": True,
            **scalar_rest(left, *self.placed(call)),
            "rest_places": [f"const mcc_index {name} = {place};" for name, place in places.items()],
        }

    def family(self, call: Call) -> str:
        return "conv_flat" if is_flat(call) else "conv"

    def by_rows(self, call: Call) -> bool:
        """Is one row of results computed after the other?"""
        return call.rows is not None or rows_lie_apart(call)

    def bounds(self, call: Call) -> tuple[str, str]:
        """Which rows."""
        return ("0", "height") if call.rows is None else ("begin", "end")

    def points(self, call: Call) -> int:
        """Positions that are computed in one go: all, or those of a row."""
        height, width = call.outs[0].type.static_shape[2:]
        return width if self.by_rows(call) else height * width

    def padded(self, call: Call) -> bool:
        """Does the function ask what lies outside of the image? Where flash counts it does, as one function is for
        many calls."""
        return any(conv_of(call).pads) or bool(call.blocks[-1])

    def sizes(self, call: Call) -> Mapping[str, int]:
        x, w, y = *call.ins[:2], call.outs[0]
        rest = left_over(call, self.raises) is not None
        several = {"batch": static(x.shape[0]), "x_batch": static(x.strides[0])}
        outs = static(w.shape[0])
        return {
            **(several if x.shape[0] != 1 else {}),
            **({"y_batch": static(y.strides[0])} if x.shape[0] != 1 and not rest else {}),
            **({"x_lines": x.lines} if x.lines else {}),
            **({"y_lines": y.lines} if y.lines and not rest else {}),
            **({"y_row": static(y.strides[2])} if self.by_rows(call) and not rest else {}),
            "points": self.points(call),
            "x_pixel": static(x.strides[3]),
            "y_pixel": outs if rest else between(y),
            "inputs": static(x.shape[1]),
            "outs": outs,
            **({"height": static(y.shape[2])} if self.by_rows(call) and call.rows is None else {}),
            **({} if is_flat(call) else self.windows(call)),
        }

    def windows(self, call: Call) -> dict[str, int]:
        """Sizes of windows that are laid out, as far as the function names them."""
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        return {
            **({} if self.by_rows(call) else {"width": static(y.shape[3])}),
            **({"x_height": static(x.shape[2]), "x_width": static(x.shape[3])} if self.padded(call) else {}),
            "x_row": static(x.strides[2]),
            "rows": static(w.shape[2]),
            "columns": static(w.shape[3]),
            "stride_y": kind.strides[0],
            "stride_x": kind.strides[1],
            "pad_y": kind.pads[0],
            "pad_x": kind.pads[1],
            "dilation_y": kind.dilations[0],
            **({} if self.joined(call) else {"dilation_x": kind.dilations[1]}),
        }


def between(y: View) -> int:
    """Elements from one position to the next."""
    return static(y.strides[3] if static(y.shape[3]) > 1 else y.strides[2])


def is_flat(call: Call) -> bool:
    """Are windows single elements, in rows that follow each other without gaps?"""
    x, at_once = call.ins[0], call.rows is None and not rows_lie_apart(call)
    return at_once and is_single(call) and x.strides[2] == static(x.shape[3]) * static(x.strides[3])


def rows_lie_apart(call: Call) -> bool:
    """Is there something between the rows of a result that is computed as a whole?"""
    y = call.outs[0]
    height, width = y.type.static_shape[2:]
    return call.rows is None and height > 1 and width > 1 and y.strides[2] != width * static(y.strides[3])


def is_single(call: Call) -> bool:
    """Are windows single elements, each at the place of its result?"""
    kind, w = conv_of(call), call.ins[1]
    return w.shape[2:] == (1, 1) and not any(kind.pads) and kind.strides == (1, 1)


def conv_of(call: Call) -> Conv:
    assert isinstance(call.kind, Conv)
    return call.kind


def rescaled_case(
    name: str,
    kind: Conv,
    x: tuple[int, ...],
    w: tuple[int, ...],
    dtype: DType = i8,
    shift: int = 4,
    short: bool = False,
) -> Case:
    """One whose epilogue is what ShortRescale writes, with random numbers for each channel. `short`: with two."""
    out = kind.out_shape(x, w)
    numbers = channel_numbers(w[0], shift, short)
    count, packed = len(numbers), short and shift in RAISED_SHIFTS
    kind = replace(kind, epilogue=epilogue_of(dtype, shift, tuple(range(1, count + 1)), packed))
    full = [static(size) for size in out]
    zeros = (TensorType(dtype, ()),) * kind.x_zero
    fixed = kind.fixed
    return Case(
        name,
        kind,
        (TensorType(dtype, x), TensorType(i8, w), *zeros, *[TensorType(i32, out)] * count),
        (TensorType(dtype, out),),
        permute={0: (0, 2, 3, 1)},
        permute_outs={0: (0, 2, 3, 1)},
        constant=frozenset(range(1, fixed + count)),
        ranges={0: (dtype.low, dtype.high), 1: (-128, 127), 2: (dtype.low, dtype.high)},
        values={fixed + i: np.broadcast_to(array.reshape(1, -1, 1, 1), full) for i, array in enumerate(numbers)},
        repeated=dict.fromkeys(range(fixed, fixed + count), (0, 2, 3))
        | ({fixed + count - 1: (0, 1, 2, 3)} if short else {}),
    )


def totals_case(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], dtype: DType = i8) -> Case:
    """One that makes floats of its totals."""
    case = rescaled_case(name, kind, x, w, dtype)
    out = TensorType(f32, case.outs[0].shape)
    floats = apply("mul", cast(operand(0, i32), f32), operand(1, f32))
    return replace(
        case,
        kind=replace(kind, epilogue=floats),
        ins=(*case.ins[: kind.fixed], out),
        outs=(out,),
        permute={**case.permute, kind.fixed: (0, 2, 3, 1)},
        constant=frozenset(range(1, kind.fixed)),
        values={},
        repeated={},
    )


def apart_cases() -> list[Case]:
    """Rows of two pictures by turns."""
    plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
    pointwise = replace(plain, pads=(0,) * 4)
    cases = [
        rescaled_case("rows_apart", plain, (2, 8, 4, 7), (6, 8, 3, 3)),
        rescaled_case("rows_apart_1x1", pointwise, (2, 16, 3, 5), (8, 16, 1, 1)),
        rescaled_case("rows_apart_few", pointwise, (2, 5, 3, 2), (3, 5, 1, 1)),
        residual_case("rows_apart_residual", plain, (2, 8, 3, 6), (8, 8, 3, 3)),
    ]
    return [replace(case, permute_outs={0: (2, 0, 3, 1)}) for case in cases]


def residual_case(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], shift: int = 4) -> Case:
    """The mean with another picture, at least so much."""
    case = rescaled_case(name, kind, x, w, shift=shift)
    assert isinstance(case.kind, Conv) and case.kind.epilogue is not None
    both = apply("add", cast(case.kind.epilogue, i32), cast(operand(len(case.values) + 1, i8), i32))
    mean = cast(apply("max", apply("shift_right", both, literal(1, i32)), literal(-50, i32)), i8)
    ins, last = (*case.ins, case.outs[0]), len(case.ins)
    permute = {**case.permute, last: (0, 2, 3, 1)}
    ranges = {**case.ranges, last: (-128, 127)}
    return replace(case, kind=replace(case.kind, epilogue=mean), ins=ins, permute=permute, ranges=ranges)


def in_palette(cases: Sequence[Case]) -> list[Case]:
    """Cases whose weights take 16 values."""
    found = []
    for case in cases:
        assert isinstance(case.kind, Conv | Gemm)
        shape = case.ins[1].static_shape
        chance = np.random.default_rng(prod(shape))
        palette = np.append(chance.choice(np.delete(np.arange(-128, 128), 128), PALETTE - 1, False), 0)
        values = {**case.values, 1: chance.choice(palette, shape).astype(np.int8)}
        found.append(replace(case, name=f"{case.name}_palette", kind=replace(case.kind, palette=True), values=values))
    return found


def saturated(case: Case) -> Case:
    """What is stored as int8, within its bounds."""
    assert isinstance(case.kind, Conv) and isinstance(case.kind.epilogue, Cast)
    return replace(case, kind=replace(case.kind, epilogue=cast(apply("saturate_i8", case.kind.epilogue.argument), i8)))


def in_nibbles(cases: Sequence[Case]) -> list[Case]:
    """Cases with weights of 4 bits."""
    return [
        replace(case, name=f"{case.name}_nibbles", ins=(case.ins[0], TensorType(i4, case.ins[1].shape), *case.ins[2:]))
        for case in cases
    ]
