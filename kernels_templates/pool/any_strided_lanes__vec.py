"""pool of any element types and rank in loops over lanes, which compilers make vectors of, along the axis in which
the operand lies side by side: channels, or the positions of a row. The result may lie otherwise.

The rows under a window are combined first, then, where it slides along the lanes, neighbours in the row that this
gives. Rows outside of the image are a row of elements that change nothing, and so is what lies beyond the ends of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, f64, i8, i16, i32, u8
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.lanes import LANES, LEAST, SHORTEST, lane_work, lanes_refusal
from mccompile.codegen.pool_lanes import PoolLanes
from mccompile.codegen.tiles import LONG
from mccompile.codegen.traffic import AROUND, traffic
from mccompile.codegen.windows import windows_name
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.pool import Pool

LARGEST = Pool("max", (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (), f32)
NHWC = (0, 2, 3, 1)
APART = 2  # cycles of storing one lane


class Lanes(Kernel):
    kind = Pool

    def cases(self) -> Sequence[Case]:
        mean = replace(LARGEST, algorithm="average")
        dense = replace(LARGEST, strides=(1, 1))
        solid = Pool("max", (2, 3, 2), (1, 2, 2), (1, 2, 1), (1,) * 6, (), f32)
        whole = replace(mean, kernel=(9, 7), strides=(1, 1), pads=(0,) * 4)
        mean_of = apply("shift_right", apply("add", operand(0, i32), literal(4, i32)), literal(3, i32))
        return [
            _case("max", LARGEST, (2, 3, 16, 37)),
            _case("max_dense", dense, (1, 3, 9, 21)),
            _case("max_dilated", replace(dense, dilations=(2, 3)), (1, 3, 9, 25)),
            _case("max_dilated_apart", replace(LARGEST, dilations=(1, 3), strides=(1, 2)), (1, 2, 9, 41)),
            _case("max_overhanging", replace(LARGEST, pads=(0, 0, 1, 2)), (1, 5, 8, 34)),
            _case("max_short", LARGEST, (1, 3, 14, 14)),
            _case("max_shortest", replace(dense, kernel=(3, 2)), (2, 3, 5, 4)),
            _case("max_cut", replace(LARGEST, pads=(-1, -1, 0, 0)), (1, 5, 8, 34)),
            _case("max_fives", replace(dense, kernel=(5, 5), pads=(2,) * 4), (1, 3, 11, 20)),
            _case("max_line", Pool("max", (4,), (3,), (1,), (0, 1), (), f32), (2, 3, 70)),
            _case("max_line_inside", Pool("max", (4,), (1,), (2,), (0, 0), (), f32), (2, 3, 30)),
            _case("max_solid", solid, (1, 2, 4, 7, 33)),
            _case("max_channels", LARGEST, (2, 19, 8, 9), NHWC),
            _case("max_channels_solid", solid, (1, 70, 4, 7, 6), (0, 2, 3, 4, 1)),
            _case("max_to_planar", LARGEST, (2, 19, 8, 9), NHWC, apart=True),
            _case("max_turned", dense, (1, 3, 21, 6), (0, 1, 3, 2), apart=True),
            _case("mean", mean, (1, 3, 9, 32)),
            _case("mean_with_pad", replace(mean, count_include_pad=True), (1, 3, 10, 40)),
            _case("mean_cut", replace(mean, pads=(-1, -1, 2, 3), count_include_pad=True), (1, 3, 10, 28)),
            _case("mean_overhanging", replace(mean, pads=(0, 0, 1, 2)), (1, 3, 10, 40)),
            _case("mean_line", Pool("average", (4,), (2,), (1,), (0, 0), (), f32), (2, 3, 90)),
            _case("mean_solid", replace(solid, algorithm="average"), (1, 2, 4, 7, 33)),
            _case("mean_large", replace(whole, kernel=(9, 30), pads=(4, 9, 4, 9)), (1, 2, 12, 40)),
            _case("mean_whole", whole, (2, 35, 9, 7), NHWC),
            _case("mean_f64", replace(mean, accumulator=f64), (1, 3, 9, 32), dtype=f64),
            _case("norm_1", replace(mean, algorithm="lp", p=1), (1, 3, 9, 32)),
            _case("norm_2", replace(mean, algorithm="lp"), (1, 3, 9, 32)),
            _case("epilogue", replace(mean, epilogue=RELU_OF_SUM), (1, 3, 9, 32), extras=1),
            _case("epilogue_apart", replace(mean, epilogue=RELU_OF_SUM), (1, 3, 9, 32), extras=1, turned=True),
            _case("i8", replace(LARGEST, accumulator=i8), (1, 3, 9, 64), dtype=i8),
            _case("u8", replace(LARGEST, accumulator=u8), (1, 40, 9, 8), NHWC, dtype=u8),
            _case("u8_to_planar", replace(LARGEST, accumulator=u8), (1, 40, 9, 8), NHWC, dtype=u8, apart=True),
            _case("mean_to_planar", replace(mean, epilogue=RELU_OF_SUM), (1, 9, 7, 5), NHWC, extras=1, apart=True),
            _case("sum", replace(LARGEST, algorithm="sum"), (1, 4, 9, 32)),
            _case("sum_i8", replace(LARGEST, algorithm="sum", accumulator=i32), (1, 4, 9, 32), dtype=i8, out=i32),
            _case(
                "mean_u8",
                replace(whole, algorithm="sum", accumulator=i32, epilogue=cast(mean_of, i16)),
                (1, 40, 9, 7),
                NHWC,
                dtype=u8,
                out=i16,
            ),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [largest, means]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x = call.of(Pool), call.ins[0]
        reason = lanes_refusal(target, (), [v.buffer.dtype for v in (*call.outs, *call.ins)]) or static_views(call)
        if reason:
            return No(reason)
        if kind.algorithm == "max" and x.buffer.dtype is not kind.accumulator:
            return No("the maximum is not of the operand's type")
        if kind.algorithm == "lp" and kind.p > 2:
            return No("powers are not computed in vectors")
        found = PoolLanes.of(call)
        if found is None:
            return No("the operand is not contiguous, or rows are too short")
        if kind.accumulator is f32 and kind.algorithm != "max" and max(found.under, found.lane.kernel) > LONG:
            return No("sums of so many floats are split")
        return Needs(scratch=found.scratch, scratch_align=64, numeric="ulp", blocks=(LANES,))

    def cost(self, call: Call, target: Target) -> Cost:
        kind, machine = call.of(Pool), target.machine
        found = PoolLanes.of(call)
        assert found is not None
        rows = static(call.outs[0].type.count) // found.lane.out
        vectors = kind.accumulator.bits / 8 / target.vector_bytes
        ends = [kind.epilogue] if kind.epilogue is not None else []
        finish = lane_work(ends, [v.buffer.dtype for v in (*call.outs, *call.ins)], target)
        if lanes_refusal(target, ends, ()):
            finish = 4 * len(call.ins) + LEAST * finish
        across = found.lane.kernel if found.slides else 0
        finish += (found.lane.y != 1) * APART + vectors * (across + 8 * (kind.algorithm == "average"))
        cycles = found.used * vectors * (found.under + 1) + found.lane.out * finish
        cycles += (AROUND + found.under * (2 + len(found.rows))) / machine.issue
        return Cost(max(rows * cycles, traffic((*call.outs, *call.ins), target)), code=800)

    def label(self, call: Call) -> str:
        kind, x = call.of(Pool), call.ins[0]
        return f"{kind.algorithm}_pool_{windows_name(kind.kernel, kind.strides, x)}"

    def units(self, call: Call) -> Sequence[int]:
        found = PoolLanes.of(call)
        return (1,) * found.longest.extent if found is not None and found.longest is not None else ()

    def context(self, call: Call) -> Mapping[str, Any]:
        found = PoolLanes.of(call)
        assert found is not None
        return found.context(self.parameter_names(call)[1])


def largest(channels: int, height: int, width: int) -> Case:
    """Rows of fewer positions are not served."""
    return _case(f"{channels}_{height}_{width}", LARGEST, (1, channels, height, width + 2 * SHORTEST - 1), extras=0)


def means(channels: int, height: int, width: int) -> Case:
    kind = Pool("average", (2, 3), (1, 1), (1, 1), (1, 1, 0, 1), (), f32, epilogue=RELU_OF_SUM)
    shape = (1, channels + SHORTEST - 1, height, width)
    return _case(f"{channels}_{height}_{width}", kind, shape, NHWC, extras=1)


def _case(
    name: str,
    kind: Pool,
    x: Shape,
    order: Sequence[int] | None = None,
    dtype: DType = f32,
    out: DType | None = None,
    extras: int = 0,
    turned: bool = False,
    apart: bool = False,
) -> Case:
    """`turned`: the operand of the epilogue lies channels-last, and x does not; `apart`: the result is dense."""
    rank = len(kind.kernel)
    space = tuple(
        (static(x[2 + axis]) + kind.pads[axis] + kind.pads[axis + rank] - (kernel - 1) * kind.dilations[axis] - 1)
        // kind.strides[axis]
        + 1
        for axis, kernel in enumerate(kind.kernel)
    )
    y = TensorType(out or dtype, (*x[:2], *space))
    permute = {} if order is None else dict.fromkeys(range(1 + extras), tuple(order))
    ends = (-100, 100) if dtype is not u8 else (0, 255)
    return Case(
        name,
        replace(kind, space=space),
        (TensorType(dtype, x), *[y] * extras),
        (y,),
        permute={1: NHWC} if turned else permute,
        permute_outs={} if order is None or apart else {0: tuple(order)},
        ranges={0: ends},
    )
