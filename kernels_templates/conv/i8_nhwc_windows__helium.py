"""conv of 8-bit integers for cores with Helium: the windows of two positions are copied beside each other,
and multiplied with all channels.

Operands and result lie channels-last. Outside of the image lie zero points, which the bias makes up for. 1x1 windows
over channels in blocks of 16 are read where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, i8, i32
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import apply, cast, literal, operand, operands_used
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, viewed
from mccompile.kernels.dot import (
    Rescaling,
    epilogue_of,
    numbers,
    pack_fours,
    rescaling,
    table_of_vectors,
)
from mccompile.kernels.epilogue_rest import scalar_rest, vector_rest
from mccompile.kernels.loops import index_c
from mccompile.kernels.tiles import epilogue_alias, is_constant
from mccompile.kinds.conv import Conv


class Windows(Kernel):
    kind = Conv
    isa = "helium"

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        pointwise = replace(plain, pads=(0,) * 4, x_zero=False)
        return [
            _case("3x3", plain, (1, 8, 5, 7), (6, 8, 3, 3)),
            _case("1x1_in_place", pointwise, (1, 32, 5, 5), (8, 32, 1, 1)),
            _case("few_channels", replace(plain, strides=(2, 2)), (1, 3, 9, 8), (8, 3, 3, 3)),
            _case("one_channel", replace(plain, strides=(2, 2), pads=(4, 1, 5, 1)), (1, 1, 12, 10), (8, 1, 10, 4)),
            _case("two_pictures", plain, (2, 4, 3, 3), (4, 4, 3, 3)),
            _case("1x1", pointwise, (1, 12, 5, 5), (10, 12, 1, 1)),
            _case("1x1_strided", replace(pointwise, strides=(2, 2)), (1, 8, 7, 6), (4, 8, 1, 1)),
            _case("1x1_odd", pointwise, (1, 7, 3, 3), (5, 7, 1, 1)),
            _case("one_position", replace(plain, pads=(0,) * 4), (1, 6, 3, 3), (9, 6, 3, 3)),
            _case("few_outputs", pointwise, (1, 8, 1, 1), (3, 8, 1, 1)),
            _rest("residual", plain, (1, 8, 4, 4), (6, 8, 3, 3)),
            _rest("residual_of_fours", plain, (1, 8, 5, 4), (12, 8, 3, 3)),
            _rest("residual_odd", plain, (1, 8, 5, 3), (6, 8, 3, 3)),
            _rest("residual_one_more", plain, (1, 8, 3, 3), (6, 8, 3, 3)),
            _rest("residual_one_by_one", plain, (1, 8, 5, 3), (5, 8, 3, 3)),
            _case("dilated", replace(plain, dilations=(2, 2), pads=(2, 2, 2, 2)), (1, 4, 6, 6), (4, 4, 3, 3)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = _kind(call), call.ins[:2], call.outs[0]
        reason = static_views(call)
        if reason:
            return No(reason)
        found = rescaling(call, kind.fixed, kind.epilogue, raised=True)
        if found is None or not found.form:
            return No("sums are not rescaled to 8 bits with short numbers")
        if x.buffer.dtype is not i8 or w.buffer.dtype is not i8 or kind.w_zero or kind.group != 1:
            return No("operands are not of 8 bits, weights have zero points, or there are groups")
        zeros = call.ins[2 : kind.fixed]
        if len(kind.strides) != 2 or 0 in y.shape or not all(map(is_constant, (w, *zeros))):
            return No("this is no picture, or weights are computed")
        height, width = y.type.static_shape[2:]
        flat = height == 1 or width == 1 or y.strides[2] == width * static(y.strides[3])
        if not flat or any(view.strides[1] != 1 and view.shape[1] != 1 for view in (x, y)):
            return No("x and the result do not lie channels-last")
        taps = zip(w.type.static_shape[2:], kind.dilations, strict=True)
        spans = [(size - 1) * dilation + 1 for size, dilation in taps]
        if any(pad >= span for pad, span in zip(kind.pads, spans * 2, strict=True)):
            return No("windows lie outside of the image")
        lanes = 2 if height * width > 1 else 1
        results = 2 * (static(w.shape[0]) + 4) if found.rest else 0
        again = lanes == 2 and height * width % 2 != 0  # one position is computed twice
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: 15},
            alias={} if again else epilogue_alias(call, kind.fixed),
            scratch=2 * self.depth(call) + 16 + results,
            scratch_align=4,
            blocks=(lanes, int(target.prefer == "flash")),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        macs = static(call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs]))
        return Cost(macs * 3e-11, code=400)

    def joined(self, call: Call) -> bool:
        """Do the taps of a row of a window follow each other without gaps?"""
        x, w, kind = call.ins[0], call.ins[1], _kind(call)
        return w.shape[3] == 1 or (kind.dilations[1] == 1 and x.strides[3] == x.shape[1])

    def run(self, call: Call) -> int:
        """Elements of x that follow each other in a window."""
        w = call.ins[1]
        return static(w.shape[1]) * (static(w.shape[3]) if self.joined(call) else 1)

    def depth(self, call: Call) -> int:
        """Elements of a window, in blocks of 16."""
        w = call.ins[1]
        depth = static(w.shape[1]) * static(w.shape[2]) * static(w.shape[3])
        return depth + -depth % 16

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = _rescaling(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])
        rows = w.transpose(0, 2, 3, 1).reshape(channels, -1)
        values = numbers(call, constants, found, channels)
        if _kind(call).x_zero:
            zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0])
            values[0] -= (zero * rows.astype(np.int64).sum(1)).astype(np.int32)
        return {1: pack_fours(rows, 4, 16), **dict.fromkeys(found.tables, table_of_vectors(values, found.shift))}

    def packing(self, call: Call) -> Mapping[int, str]:
        folded = "_less_zero" if _kind(call).x_zero else ""
        return {1: "helium_4x16", **dict.fromkeys(_rescaling(call).tables, f"table_vectors_less_half{folded}")}

    def label(self, call: Call) -> str:
        kind, (x, w) = _kind(call), call.ins[:2]
        kernel = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        return f"conv_{kernel}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium.h"})

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        kind = _kind(call)
        names = ["x", "w", *["x_zero"] * kind.x_zero, *(f"e{i}" for i in range(len(call.ins) - kind.fixed))]
        for index, name in zip(_rescaling(call).tables, ("table", "same0", "same1", "same2"), strict=False):
            names[index] = name
        return ["y"], names

    def rest(self, call: Call) -> dict[str, Any]:
        """What is left to do with the 8-bit result `found[i]` of channel i of position `at`."""
        kind, y, found = _kind(call), call.outs[0], _rescaling(call)
        if found.rest is None:
            return {"rest": False}
        width = static(y.shape[3])

        def place(view: View) -> str:
            batch, channel, row, column = (static(stride) for stride in view.strides)
            return index_c([batch, row, column, channel], ["n" if y.shape[0] != 1 else "0", "at_row", "at_column", "o"])

        names = self.parameter_names(call)[1]
        operands = [(n, view, place(view)) for n, view in zip(names[kind.fixed :], call.ins[kind.fixed :], strict=True)]
        fours = static(y.shape[1]) % 4 == 0 and not call.blocks[1]
        read = [call.ins[kind.fixed + number - 1] for number in operands_used(found.rest) - {0}]
        vectors = vector_rest(found, operands, (y, place(y))) if fours else None
        return {
            "rest": True,
            "rest_vectors": vectors is not None,
            "rest_joined": vectors is not None and all(map(_has_no_gaps, (y, *read))),
            **(vectors or scalar_rest(found, operands, (y, place(y)))),
            "rest_row": f"at / {width}" if width > 1 else "at",
            "rest_column": f"at % {width}" if width > 1 else "0",
        }

    def family(self, call: Call) -> str:
        return "conv_flat" if _is_flat(call) else "conv"

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y, found = _kind(call), call.ins[0], call.outs[0], _rescaling(call)
        lanes, small = call.blocks
        points, outs = static(y.shape[2]) * static(y.shape[3]), static(call.ins[1].shape[0])
        return {
            **self.rest(call),
            "y_type": found.dtype.name,
            "y_c_type": found.dtype.storage_c,
            "form": found.form,
            "table_rows": len(found.tables),
            "lanes": lanes,
            "zero": kind.x_zero,
            "padded": any(kind.pads) or bool(small),
            "flat": _is_flat(call),
            "inside": lanes == 2 and not small,  # windows inside of the image have code of their own
            "in_place": _is_flat(call) and static(x.shape[1]) % 16 == 0,
            "joined": self.joined(call),
            "several": x.shape[0] != 1,
            "again": lanes == 2 and (points % 2 == 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, (x, w), y = _kind(call), call.ins[:2], call.outs[0]
        (height, width), found = y.type.static_shape[2:], _rescaling(call)
        several = {"batch": static(x.shape[0]), "x_batch": static(x.strides[0]), "y_batch": static(y.strides[0])}
        pixel, outs = static(y.strides[3] if width > 1 else y.strides[2]), static(w.shape[0])
        windows = {
            "width": width,
            "x_height": static(x.shape[2]),
            "x_width": static(x.shape[3]),
            "x_row": static(x.strides[2]),
            "rows": static(w.shape[2]),
            "columns": static(w.shape[3]),
            "stride_y": kind.strides[0],
            "stride_x": kind.strides[1],
            "pad_y": kind.pads[0],
            "pad_x": kind.pads[1],
            "dilation_y": kind.dilations[0],
            "dilation_x": kind.dilations[1],
        }
        return {
            **(several if x.shape[0] != 1 else {}),
            "points": height * width,
            "x_pixel": static(x.strides[3]),
            "y_pixel": outs if found.rest else pixel,
            "inputs": static(x.shape[1]),
            "outs": outs,
            "steps": self.depth(call) // 16,
            **({} if _is_flat(call) else windows),
        }


def _has_no_gaps(view: View) -> bool:
    """Do elements of a picture follow each other, channels last? Or is there but one?"""
    channels, _, width = view.type.static_shape[1:]
    axes = zip(view.shape[1:], view.strides[1:], (1, width * channels, channels), strict=True)
    return not any(view.strides) or all(size == 1 or stride == wanted for size, stride, wanted in axes)


def _is_flat(call: Call) -> bool:
    """Are windows single elements, in rows that follow each other without gaps?"""
    kind, (x, w) = _kind(call), call.ins[:2]
    single = w.shape[2:] == (1, 1) and not any(kind.pads) and kind.strides == (1, 1)
    return single and x.strides[2] == static(x.shape[3]) * static(x.strides[3])


def _kind(call: Call) -> Conv:
    assert isinstance(call.kind, Conv)
    return call.kind


def _rescaling(call: Call) -> Rescaling:
    kind = _kind(call)
    found = rescaling(call, kind.fixed, kind.epilogue, raised=True)
    assert found is not None  # `match` has seen it
    return found


def _case(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], dtype: DType = i8) -> Case:
    out = kind.out_shape(x, w)
    channels = w[0]
    kind = replace(kind, epilogue=epilogue_of(dtype, 4, (1, 2, 3)))
    chance, full = np.random.default_rng(channels), [static(size) for size in out]
    per_channel = [
        np.broadcast_to(chance.integers(low, high, (1, channels, 1, 1)).astype(np.int32), full)
        for low, high in ((-3000, 3000), (1 << 27, 1 << 29), (-400, 400))
    ]
    zeros = (TensorType(dtype, ()),) * kind.x_zero
    fixed = kind.fixed
    return Case(
        name,
        kind,
        (TensorType(dtype, x), TensorType(i8, w), *zeros, *[TensorType(i32, out)] * 3),
        (TensorType(dtype, out),),
        permute={0: (0, 2, 3, 1)},
        permute_outs={0: (0, 2, 3, 1)},
        constant=frozenset(range(1, fixed + 3)),
        ranges={0: (dtype.low, dtype.high), 1: (-128, 127), 2: (dtype.low, dtype.high)},
        values={fixed + i: array for i, array in enumerate(per_channel)},
        repeated=dict.fromkeys(range(fixed, fixed + 3), (0, 2, 3)),
    )


def _rest(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...]) -> Case:
    """The mean with another picture, at least so much."""
    case = _case(name, kind, x, w)
    assert isinstance(case.kind, Conv) and case.kind.epilogue is not None
    both = apply("add", cast(case.kind.epilogue, i32), cast(operand(4, i8), i32))
    mean = cast(apply("max", apply("shift_right", both, literal(1, i32)), literal(-50, i32)), i8)
    ins, last = (*case.ins, case.outs[0]), len(case.ins)
    permute = {**case.permute, last: (0, 2, 3, 1)}
    ranges = {**case.ranges, last: (-128, 127)}
    return replace(case, kind=replace(case.kind, epilogue=mean), ins=ins, permute=permute, ranges=ranges)
