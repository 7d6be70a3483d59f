"""grid_sample in loops over lanes, which are channels side by side: for every place the elements around it and their
shares once, then sums of a few elements at a time.

Elements outside of the picture that are zeros are left out. Where too few are left for a step, the last one is added
again, times 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, f64, i8, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.grid_places import AxisPlaces, GridPlaces
from mccompile.codegen.lanes import LANES, LEAST, each_lane, lane_pieces, lane_work, lanes_refusal
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range
from mccompile.codegen.vector.vector_loops import Chunk, chunks
from mccompile.expr.ir import apply, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.grid_sample import PADDINGS, TAPS, GridSample

STEP = 4  # elements that are added to a sum at a time
PLACED = 30  # instructions of a place along an axis
TAKEN = 8  # of an element that it reads


class Lanes(Kernel):
    kind = GridSample

    def cases(self) -> Sequence[Case]:
        found = [
            _case(f"{mode}_{padding}_{int(align)}", f32, 19, (4, 5), (6, 7), GridSample(mode, padding, align))
            for mode in TAPS
            for padding in PADDINGS
            for align in (False, True)
        ]
        return [
            *found,
            _case("one_axis", f64, 8, (5,), (4,), GridSample("linear", "zeros", False)),
            _case("three_axes", f32, 70, (2, 3, 1), (3, 2, 2), GridSample("cubic", "reflection", True)),
            _case("of_one_alone", f32, 16, (1, 1), (2, 2), GridSample("nearest", "border", False)),
            _case("bytes", i8, 83, (3, 3), (4, 4), GridSample("nearest", "zeros", False)),
            _case("wide", i64, 9, (3, 3), (4, 4), GridSample("nearest", "border", False)),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [sampled]

    def match(self, call: Call, target: Target) -> No | Needs:
        x, y = call.ins[0], call.outs[0]
        reason = static_views(call) or lanes_refusal(target, (), [x.buffer.dtype])
        if reason:
            return No(reason)
        if static(x.shape[1]) < LEAST // 2 or x.strides[1] != 1 or y.strides[1] != 1:
            return No("channels are not contiguous, or are too few")
        return Needs(numeric="ulp", blocks=(LANES,))

    def cost(self, call: Call, target: Target) -> Cost:
        channels, axes = static(call.ins[0].shape[1]), len(call.ins[0].shape) - 2
        places = static(call.outs[0].type.count) // max(channels, 1)
        dtype, taps = call.ins[0].buffer.dtype, TAPS[call.of(GridSample).mode] ** axes
        product = apply("add", operand(0, dtype), apply("mul", operand(1, dtype), operand(2, dtype)))
        each = channels * taps * lane_work([product], [dtype] * 2, target)
        each += channels % (LEAST // 2) * taps
        return Cost(places * (each + (PLACED * axes + TAKEN * taps) / target.machine.issue), code=900)

    def unpassed(self, call: Call) -> frozenset[str]:
        return GridPlaces(call).unpassed

    def units(self, call: Call) -> Sequence[int]:
        return (1,) * max((loop.extent for loop in GridPlaces(call).loops.loops), default=0)

    def context(self, call: Call) -> Mapping[str, Any]:
        at, kind = GridPlaces(call), call.of(GridSample)
        outer = [Range.over(loop.counter, loop.count) for loop in at.loops.loops]
        if call.workers > 1 and outer:
            longest = max(range(len(outer)), key=lambda n: (outer[n].extent, -n))
            outer[longest] = replace(outer[longest], begin="begin", end="end")
        most = prod([TAPS[kind.mode]] * (len(call.ins[0].shape) - 2))
        found = [
            {"header": chunk.header, "lines": _lines(call, at, chunk, min(STEP, most))}
            for chunk in chunks("c", static(call.ins[0].shape[1]), LANES)
        ]
        axes = [{**axis, "share": _share(axis)} for axis in at.axes("0")]
        return {
            **at.context(),
            "loops": outer,
            "axes": axes,
            "weights": kind.mode != "nearest",
            "at_most": most,
            "step": min(STEP, most),
            "chunks": found,
        }

    def label(self, call: Call) -> str:
        return f"grid_sample_{call.of(GridSample).mode}"


def _share(axis: AxisPlaces) -> str:
    """Of an element along the axes up to this one."""
    n = axis["n"]
    own = f"w{n}[t{n}]"
    return f"s{n - 1} * {own}" if n else own


def _lines(call: Call, at: GridPlaces, chunk: Chunk, step: int) -> list[str]:
    """The sums of some channels."""
    x, y = call.ins[0].buffer.dtype, call.outs[0].buffer.dtype
    kind, channels = call.of(GridSample), list(lane_pieces(chunk.lanes))
    outside = kind.padding == "zeros"

    def lane(begin: int) -> str:
        return f"{begin} + lane" if begin else "lane"

    def store(begin: int, value: str) -> str:
        counters = [loop.counter for loop in at.loops.loops]
        return store_c(y, "y", index_c((*at.loops.strides[0], 1), [*counters, f"c + {lane(begin)}"]), value)

    def each(value: str, into: str = "") -> list[str]:
        found: list[str] = []
        for begin, many in channels:
            text = value.replace("LANE", lane(begin))
            found += each_lane(many, [f"{into}[{lane(begin)}] = {text};" if into else store(begin, text)])
        return found

    pointers = [f"const {x.storage_c} *const x{n} = x + from[t + {n}] + c;" for n in range(step)]
    if kind.mode == "nearest":
        start = f"const {x.storage_c} *const x0 = x + from[0] + c;"
        copied = [start, *each(load_c(x, "x0", "LANE"))]
        return ["if (count == 0) {", *each(literal_c(0, y)), "} else {", *copied, "}"] if outside else copied
    shares = [f"const {at.accumulator.compute_c} d{n} = share[t + {n}];" for n in range(step)]
    sums = " + ".join(f"d{n} * x{n}[LANE]" for n in range(step))
    loop = f"for (mcc_index t = 0; t < count; t += {step}) {{"
    start = f"{at.accumulator.compute_c} sum[{chunk.lanes}];"
    return [
        start,
        *each(literal_c(0, at.accumulator), "sum"),
        loop,
        *pointers,
        *shares,
        *each(f"sum[LANE] + ({sums})", "sum"),
        "}",
        *each("sum[LANE]"),
    ]


def _case(
    name: str, dtype: DType, channels: int, space: tuple[int, ...], out: tuple[int, ...], kind: GridSample
) -> Case:
    x = TensorType(dtype, (2, channels, *space))
    grid = TensorType(f64 if dtype is f64 else f32, (2, *out, len(space)))
    last = {0: (0, *range(2, x.rank), 1)}
    return Case(name, kind, (x, grid), (TensorType(dtype, (2, channels, *out)),), permute=last, permute_outs=last)


def sampled(first: int, second: int, last: int) -> Case:
    """Fewer channels are not served."""
    kind, channels = GridSample("linear", "zeros", False), last + LEAST // 2 - 1
    return _case(f"{first}_{second}_{last}", f32, channels, (first + 1, 3), (second, 2), kind)
