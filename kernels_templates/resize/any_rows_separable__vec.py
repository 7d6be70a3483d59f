"""resize in vectors, one axis after the other: rows of x are added up to one row of sums, whose elements are then added
up to results.

The innermost resized axis is that of the rows; all others are done first, in vectors along whole rows, whatever lies
inside of them (channels, or nothing in a planar picture). Along the rows vectors lie on what is inside; where that is
less than a vector, elements are computed one by one, and only the epilogue is in vectors. Integers become floats as
rows are added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dtypes import DType, f16, f32, i8, i16, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM, with_picture
from mccompile.codegen.lanes import lane_work, lanes_refusal
from mccompile.codegen.tiles import epilogue_alias
from mccompile.codegen.vector.resize_rows import ResizeRows
from mccompile.codegen.vector.vector_tiles import best_lanes, lanes_of, vector_headers, vector_refusal
from mccompile.expr.ir import Expr, apply, cast, literal, operand, substitute
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.resize import Resize


class Separable(Kernel):
    kind = Resize

    def cases(self) -> Sequence[Case]:
        linear, cubic = Resize((2, 3), (2, 2), f32), Resize((2, 3), (4, 4), f32)
        cases = [_case(f"channels_{c}", linear, (2, c, 4, 5), (7, 3)) for c in (1, 2, 3, 5, 15, 16, 17, 33, 70)]
        cases += [
            _case("cubic", cubic, (1, 19, 5, 6), (7, 11)),
            _case("planar", linear, (2, 3, 4, 17), (9, 33), last=False),
            _case("planar_cubic", cubic, (1, 2, 5, 9), (3, 21), last=False),
            _case("planar_columns", Resize((3,), (2,), f32), (2, 3, 4, 7), (15,), last=False),
            _case("planar_rows", Resize((2,), (3,), f32), (2, 3, 4, 21), (9,), last=False),
            _case("rows", Resize((2,), (2,), f32), (1, 5, 6, 4), (11,)),
            _case("columns", Resize((3,), (2,), f32), (1, 21, 6, 4), (11,)),
            _case("1d", Resize((2,), (2,), f32), (2, 9, 12), (31,)),
            _case("3d", Resize((2, 3, 4), (2, 2, 2), f32), (1, 6, 3, 4, 5), (5, 3, 8)),
            _case("3d_planar", Resize((2, 3, 4), (2, 2, 3), f32), (1, 2, 3, 4, 5), (5, 3, 18), last=False),
            _case("planar_doubled", linear, (1, 1, 160, 320), (320, 640), last=False),
            _case("from_one", linear, (1, 6, 1, 1), (3, 5)),
            _case("to_one", linear, (1, 6, 4, 5), (1, 1)),
            _case("batch", Resize((0, 2, 3), (2, 2, 2), f32), (2, 6, 4, 5), (3, 2, 6)),
        ]
        for name, channels, last, repeated in [
            ("bias", 19, True, (0, 2, 3)),
            ("few_channels", 3, True, (0, 2, 3)),
            ("planar_bias", 3, False, (0, 2, 3)),
            ("planar_residual", 3, False, ()),
            ("residual", 19, True, ()),
            ("other_layout", 6, True, ()),
        ]:
            kind = replace(linear, epilogue=RELU_OF_SUM)
            case = _case(f"epilogue_{name}", kind, (1, channels, 4, 5), (7, 18), last=last)
            extra = len(case.ins)
            permute = dict(case.permute) | ({extra: (0, 2, 3, 1)} if last and name != "other_layout" else {})
            cases.append(replace(case, ins=(*case.ins, case.outs[0]), permute=permute, repeated={extra: repeated}))
        for name, shape, sizes, last in [
            ("", (1, 19, 4, 5), (7, 18), True),
            ("_planar", (2, 3, 4, 17), (9, 33), False),
            ("_few", (1, 3, 4, 5), (7, 18), True),
        ]:
            cases += [_of(f"{dtype}{name}", dtype, shape, sizes, last) for dtype in (i8, u8, f16, i16)]
            cases.append(_quantized(f"quantized{name}", shape, sizes, last))
        lines = Resize((3,), (2,), f32, _saturated(u8))
        for name, shape, last in (("i8_columns", (1, 21, 6, 4), True), ("i8_planar_columns", (2, 3, 4, 7), False)):
            case = _case(name, lines, shape, (15,), last)
            cases.append(_stored_as(case, u8))
        return cases

    def sized_cases(self) -> Sequence[SizedCase]:
        return [resize, resize_planar, resize_bytes]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Resize)
        tables = range(1, kind.fixed)
        reason = vector_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if any(0 in view.shape for view in (*call.ins, *call.outs)):
            return No("the result is empty")
        if any(call.ins[table].strides[1] != 1 and call.ins[table].shape[1] != 1 for table in tables):
            return No("taps are not contiguous in the tables")
        layout = ResizeRows(call, self.parameter_names(call)[1])
        reason = layout.refusal or (lanes_refusal(target, (), ()) if layout.loops_over_lanes else "")
        if reason:
            return No(reason)
        alias = epilogue_alias(call, kind.fixed)
        blocks = (best_lanes(layout.run, target), lanes_of(target))
        scratch = layout.floats * 4
        rows = frozenset(axis for axis in layout.around if call.outs[0].shape[axis] != 1)
        return Needs(alias=alias, numeric="ulp", blocks=blocks, scratch=scratch, scratch_align=64, rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        layout, wide = ResizeRows(call, self.parameter_names(call)[1]), lanes_of(target)
        lanes = best_lanes(layout.run, target)
        down = -(-layout.width * layout.run // wide) * (layout.products + 2) if layout.adds else 0
        if layout.flat:
            across = layout.out * layout.run * (layout.taps + 4.0 / layout.block) + layout.made / wide * 4
        else:
            across = layout.out * (2 * layout.taps + -(-layout.run // lanes) * (layout.taps + 2.0))
        if layout.in_lanes:
            dtypes = [view.buffer.dtype for view in layout.views]
            across += layout.out * layout.run * lane_work(call.kind.expressions(), dtypes, target)
        rows = prod(loop.extent for loop in layout.outer)
        return Cost(rows * (down + across + 20), code=600 + 30 * (layout.products + layout.taps))

    def label(self, call: Call) -> str:
        return "resize_" + "x".join(map(str, call.of(Resize).taps)) + "_rows"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def unpassed(self, call: Call) -> frozenset[str]:
        """An axis of one element of x has one position."""
        names, x = self.parameter_names(call)[1], call.ins[0]
        layout = ResizeRows(call, names)
        still = [axis for axis in layout.others if x.strides[axis] == 0]
        return frozenset(names[layout.tables(axis)[0]] for axis in still)

    def units(self, call: Call) -> Sequence[int]:
        """Positions along the longest of the loops around rows, or those rows of the result."""
        if call.rows is not None:
            return super().units(call)
        outer = ResizeRows(call, self.parameter_names(call)[1]).outer
        return (1,) * max((loop.extent for loop in outer), default=0)

    def context(self, call: Call) -> Mapping[str, Any]:
        return ResizeRows(call, self.parameter_names(call)[1]).context(self.parameter_names(call)[0][0])


def resize(channels: int, width: int, wanted: int) -> Case:
    return with_picture(_higher(channels, width, wanted, last=True))


def resize_planar(channels: int, width: int, wanted: int) -> Case:
    case = _higher(channels, width, wanted, last=False)
    return replace(case, ins=(*case.ins, *case.outs))


def resize_bytes(channels: int, width: int, wanted: int) -> Case:
    return _of(f"{channels}_{width}_{wanted}", u8, (1, channels, 2, width), (3, wanted), last=True)


def _higher(channels: int, width: int, wanted: int, last: bool) -> Case:
    """Cubic along the rows, linear along the columns; the height is multiplied by one and a half."""
    kind = Resize((2, 3), (2, 4), f32, RELU_OF_SUM)
    return _case(f"{channels}_{width}_{wanted}", kind, (1, channels, 2, width), (3, wanted), last)


def _case(name: str, kind: Resize, x: tuple[int, ...], sizes: tuple[int, ...], last: bool = True) -> Case:
    shape, ranges = list(x), {}
    tables: list[TensorType] = []
    for axis, size, taps in zip(kind.axes, sizes, kind.taps, strict=True):
        ranges[1 + len(tables)] = (0.0, x[axis] - 1.0)
        tables += [TensorType(i32, (size, taps)), TensorType(f32, (size, taps))]
        shape[axis] = size
    order = {0: (0, *range(2, len(x)), 1)} if last else {}
    out = TensorType(f32, tuple(shape))
    return Case(name, kind, (TensorType(f32, x), *tables), (out,), permute=order, permute_outs=order, ranges=ranges)


def _saturated(dtype: DType) -> Expr:
    """What Resize makes of a sum."""
    if dtype.is_float:
        return cast(operand(0, f32), dtype)
    bounded = apply("max", apply("round_even", operand(0, f32)), literal(dtype.low, f32))
    return cast(apply("min", bounded, literal(dtype.high, f32)), dtype)


def _stored_as(case: Case, dtype: DType) -> Case:
    """The same of another type."""
    x, *tables = case.ins
    ranges = {**case.ranges, 0: (dtype.low, dtype.high) if dtype.bits == 8 else (-100, 100)}
    ins = (TensorType(dtype, x.shape), *tables)
    return replace(case, ins=ins, outs=(TensorType(dtype, case.outs[0].shape),), ranges=ranges)


def _of(name: str, dtype: DType, x: tuple[int, ...], sizes: tuple[int, ...], last: bool) -> Case:
    return _stored_as(_case(name, Resize((2, 3), (2, 2), f32, _saturated(dtype)), x, sizes, last), dtype)


def _quantized(name: str, x: tuple[int, ...], sizes: tuple[int, ...], last: bool) -> Case:
    """From int8 to int8 of another scale for each channel."""
    scaled = apply("div", operand(0, f32), operand(1, f32))
    kind = Resize((2, 3), (2, 2), f32, substitute(_saturated(i8), [scaled]))
    case = _stored_as(_case(name, kind, x, sizes, last), i8)
    extra, out = len(case.ins), case.outs[0].shape
    permute = {**case.permute, extra: case.permute[0]} if last else {}
    ranges = {**case.ranges, extra: (0.5, 2.0)}
    ins = (*case.ins, TensorType(f32, out))
    return replace(case, ins=ins, permute=permute, repeated={extra: (0, 2, 3)}, ranges=ranges)
