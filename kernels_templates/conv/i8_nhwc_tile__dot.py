"""int8 conv in SIMD dot products: tiles of positions x vectors of output channels.

Rows of x that need a halo, or whose channels are not contiguous, are copied into a ring of rows padded with the zero
point; others are read in place. So a row of a window is always contiguous, and borders need no code of their own.

A zero point of x that is not known when weights are packed comes off the sums afterwards, times the sum of the weights.
Those of weights (unsigned ones have 128 more than what is packed) come off times the sum of the window less its zero
points, which is added up once per position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, i64, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.int8.dot import epilogue_of
from mccompile.codegen.int8.dot_conv import DotConv, conv_of, has_sums, is_late, zeros_of_weights
from mccompile.codegen.int8.dot_forms import form_in, form_of
from mccompile.codegen.int8.dot_tiles import SHIFT, dot_headers, dot_refusal, row_cycles, shifted
from mccompile.codegen.tiles import epilogue_alias, is_constant
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize
from mccompile.expr.ir import Expr, apply, cast, literal, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, viewed
from mccompile.kinds.conv import Conv


class ChannelsLastDots(Kernel):
    kind = Conv

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        pointwise = replace(plain, pads=(0,) * 4)
        sizes = [(1, 1, 1), (2, 3, 2), (3, 7, 3), (7, 2, 7), (15, 16, 15), (16, 31, 16), (17, 5, 17), (31, 8, 31)]
        cases = [
            _case(f"1x1_{pixels}x{inputs}_{outs}", pointwise, (1, inputs, 1, pixels), (outs, inputs, 1, 1))
            for pixels, inputs, outs in [*sizes, (33, 17, 33), (9, 12, 72), (5, 4, 100)]
        ]
        for dtype in (i8, u8):
            cases += [
                _case(f"3x3_{dtype}", plain, (1, 8, 5, 7), (18, 8, 3, 3), dtype),
                _case(f"1x1_{dtype}", pointwise, (1, 12, 5, 5), (10, 12, 1, 1), dtype),
            ]
        strided, wide = replace(plain, strides=(2, 2)), Conv((2, 2), (1, 1), (3, 3, 3, 3), 1, i32, x_zero=True)
        cases += [
            replace(_case("planar", strided, (1, 3, 9, 17), (8, 3, 3, 3), u8), permute={}),
            replace(_case("planar_1x1", pointwise, (1, 5, 3, 3), (9, 5, 1, 1)), permute={}),
            replace(_case("planar_result", plain, (1, 5, 6, 7), (9, 5, 3, 3)), permute_outs={}),
            _case("first_layer", wide, (1, 3, 16, 21), (24, 3, 7, 7), u8),
            _case("two_pictures", strided, (2, 4, 5, 3), (4, 4, 3, 3)),
            _case("one_channel", replace(strided, pads=(4, 1, 5, 1)), (1, 1, 12, 10), (8, 1, 10, 4), u8),
            _case("no_zero_point", replace(plain, x_zero=False), (1, 6, 4, 4), (5, 6, 3, 3)),
            _case("inside", replace(plain, pads=(0,) * 4), (1, 6, 5, 6), (9, 6, 3, 2)),
            _case("1x1_strided", replace(pointwise, strides=(2, 2)), (1, 8, 7, 6), (4, 8, 1, 1)),
            _case("dilated", replace(plain, dilations=(2, 2), pads=(2, 2, 2, 2)), (1, 4, 6, 6), (4, 4, 3, 3)),
            _case("dilated_inside", replace(plain, dilations=(1, 3), pads=(0,) * 4), (1, 5, 4, 9), (4, 5, 3, 3)),
            _case("windows_outside", replace(plain, pads=(5, 5, 5, 5)), (1, 2, 3, 3), (3, 2, 3, 3)),
            _case("stride_over", replace(plain, strides=(4, 5), pads=(1, 0, 0, 2)), (1, 3, 11, 12), (5, 3, 2, 2)),
            _case("1d", Conv((2,), (1,), (2, 1), 1, i32, x_zero=True), (2, 3, 17), (20, 3, 4)),
            _case("long_sum", pointwise, (1, 1100, 1, 3), (18, 1100, 1, 1)),
        ]
        cases += [
            _with_zeros(case, late, of_weights)
            for late in (False, True)
            for of_weights in (None, i8, u8)
            for case in (
                _case(f"zeros_{late}_{of_weights}", plain, (1, 5, 4, 7), (21, 5, 3, 3), u8),
                _case(f"zeros_{late}_{of_weights}_1x1", pointwise, (2, 7, 3, 3), (9, 7, 1, 1)),
                _case(f"zeros_{late}_{of_weights}_wide", wide, (1, 1, 9, 9), (6, 1, 5, 5), u8),
                replace(_case(f"zeros_{late}_{of_weights}_planes", strided, (1, 3, 9, 9), (8, 3, 3, 3)), permute={}),
            )
        ]
        cases += [_rest(f"residual_{dtype}", plain, (1, 8, 5, 5), (18, 8, 3, 3), dtype) for dtype in (i8, u8)]
        return [*cases, _floats(pointwise), _long(pointwise, 0), _long(pointwise, 64), _sum(pointwise)]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        reason = dot_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype not in (i8, u8) or kind.group != 1:
            return No("operands are not 8-bit integers, or there are groups")
        if len(kind.strides) > 2 or 0 in (*x.shape, *y.shape) or not is_constant(w):
            return No("it has more than 2 spatial axes, a tensor is empty, or weights are computed")
        if kind.w_zero and not (is_constant(zeros_of_weights(call)) and zeros_of_weights(call).strides[0] in (0, 1)):
            return No("zero points of the weights are computed, or not contiguous")
        if min(kind.pads) < 0:
            return No("pads are negative")
        layout = DotConv(call, form_of(target))
        size = layout.best(target)
        return Needs(
            rows=frozenset({2}) if len(kind.strides) == 2 else frozenset(),
            constant=frozenset({1, *([] if is_late(call) else range(2, kind.fixed - kind.w_zero))})
            | frozenset({kind.fixed - 1} if kind.w_zero else ())
            | layout.epilogue.constants,
            align={1: 4},
            slack={0: layout.rows.slack if layout.run % layout.form.depth else 0},
            alias=epilogue_alias(call, kind.fixed),
            scratch=layout.sums_at + (4 * layout.points if has_sums(call) else 0),
            scratch_align=4 if has_sums(call) else 1,
            blocks=(size.lanes, size.points, size.vectors, shifted(x.buffer.dtype, target), layout.form.number),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        layout = DotConv(call, form_of(target))
        size = layout.best(target)
        rows = layout.rows.batch * (1 if layout.flat else layout.rows.y_space[0])
        cycles = row_cycles(size, layout.points, layout.channels, layout.steps, layout.form) * rows
        if not layout.epilogue.in_vectors:
            cycles += 4 * static(call.outs[0].type.count)
        if has_sums(call):
            cycles += rows * layout.points * layout.steps / 4
        padding = Groups(size, layout.channels).padded * layout.channel_bytes - static(call.ins[1].type.count)
        return Cost(cycles, code=size.points * size.vectors * 40, blob=padding)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        layout, kind = DotConv(call, form_in(call)), conv_of(call)
        size, shift = TileSize(*call.blocks[:3]), call.blocks[3]
        w = viewed(call.ins[1], constants[1]).astype(np.int64)
        if call.ins[1].buffer.dtype is u8:
            w -= SHIFT
        channels = w.shape[0]
        order = (0, 2, 1, 3) if layout.rows.planar else (0, 2, 3, 1)
        runs = w.reshape(*w.shape[:2], -1, w.shape[-1]).transpose(order).reshape(channels, -1, layout.run)
        rows = np.pad(runs, [(0, 0), (0, 0), (0, -layout.run % layout.form.depth)]).reshape(channels, -1)
        late, sums = is_late(call), rows.sum(1)
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if kind.x_zero and not late else 0
        begins = layout.epilogue.begins(constants) - (zero + shift) * sums
        weights = layout.epilogue.pack_weights(rows, [begins, sums] if late else [begins], size, layout.form)
        found = {1: weights.view(call.ins[1].buffer.dtype.numpy)}
        if kind.w_zero and zeros_of_weights(call).strides[0]:
            index = kind.fixed - 1
            found[index] = layout.epilogue.ordered(viewed(call.ins[index], constants[index]).reshape(-1), size)
        return {**found, **layout.epilogue.pack(constants, size)}

    def packing(self, call: Call) -> Mapping[int, str]:
        layout = DotConv(call, form_in(call))
        size, shift = TileSize(*call.blocks[:3]), call.blocks[3]
        more = "_planar" * layout.rows.planar + "_bias" * (layout.epilogue.bias is not None)
        more += "_sums" * is_late(call)
        found = {1: layout.form.named(f"dots_{layout.epilogue.order(size)}_{layout.run}_{shift}{more}")}
        if conv_of(call).w_zero and zeros_of_weights(call).strides[0]:
            found[conv_of(call).fixed - 1] = f"table_of_{layout.epilogue.order(size)}"
        return {**found, **layout.epilogue.packing(size)}

    def label(self, call: Call) -> str:
        kind, (x, w) = conv_of(call), call.ins[:2]
        window = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        return f"conv_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return dot_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        return (1,) * DotConv(call, form_in(call)).rows.y_space[0]

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        return DotConv(call, form_in(call)).context(TileSize(*call.blocks[:3]), self.parameter_names(call)[1])


def _case(
    name: str,
    kind: Conv,
    x: tuple[int, ...],
    w: tuple[int, ...],
    dtype: DType = i8,
    epilogue: Expr | None = None,
    tables: Sequence[tuple[DType, int, int]] = ((i32, -3000, 3000), (i32, 1 << 27, 1 << 29), (i32, -400, 400)),
) -> Case:
    """`tables`: types and bounds of what the epilogue takes per channel."""
    out = kind.out_shape(x, w)
    kind = replace(kind, epilogue=epilogue or epilogue_of(dtype, 4, (1, 2, 3)))
    chance, full, ones = np.random.default_rng(w[0]), [static(size) for size in out], (1,) * (len(x) - 2)
    fixed, count = kind.fixed, len(tables)
    per_channel = [
        np.broadcast_to(chance.integers(low, high, (1, w[0], *ones)).astype(of.numpy), full) for of, low, high in tables
    ]
    last = (0, *range(2, len(x)), 1)
    return Case(
        name,
        kind,
        (
            TensorType(dtype, x),
            TensorType(i8, w),
            *(TensorType(dtype, ()),) * kind.x_zero,
            *(TensorType(of, out) for of, *_ in tables),
        ),
        (TensorType(kind.epilogue.dtype if kind.epilogue else i32, out),),
        permute={0: last},
        permute_outs={0: last},
        constant=frozenset(range(1, fixed + count)),
        ranges={0: (dtype.low, dtype.high), 1: (-128, 127), **({2: (dtype.low, dtype.high)} if kind.x_zero else {})},
        values={fixed + i: array for i, array in enumerate(per_channel)},
        repeated=dict.fromkeys(range(fixed, fixed + count), (0, *range(2, len(x)))),
    )


def _with_zeros(case: Case, late: bool, of_weights: DType | None) -> Case:
    """A zero point of x that is computed; weights of that type with a zero point per channel."""
    assert isinstance(case.kind, Conv)
    found = replace(case, constant=case.constant - {2}) if late else case
    if of_weights is None:
        return found
    x, w, x_zero, *extras = case.ins
    fixed = case.kind.fixed
    return replace(
        found,
        kind=replace(case.kind, w_zero=True),
        ins=(x, replace(w, dtype=of_weights), x_zero, TensorType(of_weights, w.shape[:1]), *extras),
        constant=frozenset(range(1, len(case.ins) + 1)) - ({2} if late else set()),
        ranges={**case.ranges, 1: (of_weights.low, of_weights.high), 3: (of_weights.low, of_weights.high)},
        values={number + (number >= fixed): value for number, value in case.values.items()},
        repeated={number + (number >= fixed): axes for number, axes in case.repeated.items()},
    )


def _rest(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], dtype: DType) -> Case:
    """With another picture, in 32 bits, within bounds."""
    total: Expr = literal(5000, i32)
    for term, factor in ((epilogue_of(dtype, 4, (1, 2, 3)), 1 << 30), (operand(4, dtype), -(1 << 29))):
        raised = apply("mul", cast(term, i32), literal(1 << 9, i32))
        total = apply("high_sum", total, raised, literal(factor, i32))
    rounded = apply("shift_right", total, literal(7, i32))
    bounded = apply("min", apply("max", rounded, literal(3, i32)), literal(100, i32))
    case = _case(name, kind, x, w, dtype, cast(bounded, dtype))
    last = len(case.ins)
    return replace(
        case,
        ins=(*case.ins, case.outs[0]),
        permute={**case.permute, last: (0, 2, 3, 1)},
        ranges={**case.ranges, last: (dtype.low, dtype.high)},
    )


def _floats(kind: Conv) -> Case:
    """What vectors do not store."""
    rest = apply("mul", cast(epilogue_of(i8, 4, (1, 2, 3)), f32), literal(0.25, f32))
    return _case("floats", kind, (1, 5, 3, 3), (19, 5, 1, 1), i8, rest)


def _long(kind: Conv, halves: int) -> Case:
    """Rounded in 64 bits, with or without true halves."""
    product = apply("fixed_product", operand(0, i32), operand(1, i64))
    rounded = apply("fixed_round", apply("add", product, operand(2, i64)), operand(3, u8))
    tables = ((i64, 1 << 54, 1 << 56), (i64, -(1 << 36), 1 << 36), (u8, 30 + halves, 36 + halves))
    epilogue = cast(apply("saturate_u8", rounded), u8)
    return _case(f"long_{halves}", kind, (1, 9, 3, 5), (21, 9, 1, 1), u8, epilogue, tables)


def _sum(kind: Conv) -> Case:
    return replace(
        _case("sum", kind, (1, 5, 3, 3), (6, 5, 1, 1), tables=()),
        kind=kind,
        outs=(TensorType(i32, (1, 6, 3, 3)),),
    )
