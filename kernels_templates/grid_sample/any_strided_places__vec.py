"""grid_sample in loops over lanes, which are places side by side: for some places at a time where they are and what
each element around them counts, then sums of these, channel by channel, of elements wherever they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, f32, f64, i8
from mccompile.base.marked import named
from mccompile.base.tensor import TensorType
from mccompile.codegen.grid_places import GridPlaces
from mccompile.codegen.lanes import LANES, SHORTEST, lanes_refusal
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range
from mccompile.expr.code import Code
from mccompile.expr.scalar_c import literal_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.grid_sample import PADDINGS, TAPS, GridSample

PLACED = 40  # instructions of a vector of places along an axis, and those of each element along it
TAKEN = 2  # cycles of an element that is read where a vector of offsets says
AROUND = 512  # elements around places
OUTSIDE = 1 << 28  # offsets are smaller; such negative ones, added up along all axes, are not an element
CUBIC = (
    "((-0.75{f} * (u + 1.0{f}) + 3.75{f}) * (u + 1.0{f}) - 6.0{f}) * (u + 1.0{f}) + 3.0{f}",
    "(1.25{f} * u - 2.25{f}) * u * u + 1.0{f}",
    "(1.25{f} * less - 2.25{f}) * less * less + 1.0{f}",
    "((-0.75{f} * (less + 1.0{f}) + 3.75{f}) * (less + 1.0{f}) - 6.0{f}) * (less + 1.0{f}) + 3.0{f}",
)


class Places(Kernel):
    kind = GridSample

    def cases(self) -> Sequence[Case]:
        found = [
            _case(f"{mode}_{padding}_{int(align)}", f32, 3, (4, 5), (6, 7), GridSample(mode, padding, align))
            for mode in TAPS
            for padding in PADDINGS
            for align in (False, True)
        ]
        return [
            *found,
            _case("one_axis", f64, 2, (5,), (4,), GridSample("linear", "zeros", False)),
            _case("three_axes", f32, 3, (2, 3, 1), (3, 2, 2), GridSample("cubic", "reflection", True)),
            _case("of_one_alone", f32, 2, (1, 1), (2, 2), GridSample("nearest", "border", False)),
            _case("bytes", i8, 3, (3, 3), (4, 4), GridSample("nearest", "zeros", False)),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [sampled]

    def match(self, call: Call, target: Target) -> No | Needs:
        x, grid = call.ins
        reason = static_views(call) or lanes_refusal(target, (), [x.buffer.dtype])
        if reason:
            return No(reason)
        loops = GridPlaces(call).loops
        if grid.buffer.dtype is not f32 or not loops.loops or loops.loops[-1].extent < SHORTEST:
            return No("places are not floats of 32 bits, or too few")
        if static(loops.strides[1][-1]) or sum(abs(static(step)) * size for step, size in _steps(call)) >= OUTSIDE:
            return No("places side by side are not of one picture, or it is too large")
        return Needs(numeric="ulp")

    def cost(self, call: Call, target: Target) -> Cost:
        x, y = call.ins[0], call.outs[0]
        taps, axes = TAPS[call.of(GridSample).mode], len(x.shape) - 2
        channels, every = upper(x.shape[1]), taps**axes
        lanes = max(min(target.vector_bytes, 32), 1) * 8 // x.buffer.dtype.bits
        placed = axes * PLACED * (1 + taps) + 3 * every
        places = upper(y.type.count) / max(channels, 1)
        cycles = places * (placed / lanes / target.machine.issue + channels * every * TAKEN)
        return Cost(cycles, code=1500)

    def units(self, call: Call) -> Sequence[int]:
        *around, row = GridPlaces(call).loops.loops
        return (1,) * max((loop.extent for loop in around), default=-(-row.extent // _lanes(call, row.extent)))

    def context(self, call: Call) -> Mapping[str, Any]:
        at, kind, x, y = GridPlaces(call), call.of(GridSample), call.ins[0], call.outs[0]
        *around, row = at.loops.loops
        outer = [Range.over(loop.counter, loop.count) for loop in around]
        lanes = _lanes(call, row.extent)
        blocks = Range("block", row.extent, step=lanes)
        if call.workers > 1 and outer:
            longest = max(range(len(outer)), key=lambda n: (outer[n].extent, -n))
            outer[longest] = replace(outer[longest], begin="begin", end="end")
        elif call.workers > 1:
            blocks = replace(blocks, begin=f"{named('begin')} * {lanes}", end=f"{named('end')} * {lanes}")
        before = index_c((*at.loops.strides[1], x.strides[1]), [*at.counters, "c"])
        at.counters[-1] = Code(f"{row.counter} + lane", loose=True)
        taps, dtype = TAPS[kind.mode], x.buffer.dtype
        axes: list[dict[str, Any]] = [
            {**axis, "stride": static(step)} for axis, (step, _) in zip(at.axes(), _steps(call), strict=True)
        ]
        suffix = "f" if at.accumulator is f32 else ""
        store = store_c(
            y.buffer.dtype, "y", index_c((*at.loops.strides[0], y.strides[1]), [*at.counters, "c"]), "sum[lane]"
        )
        return {
            **at.context(),
            "loops": [*outer, blocks],
            "row": row.counter,
            "extent": row.extent,
            "lanes": lanes,
            "axes": axes,
            "count": taps ** len(axes),
            "weights": kind.mode != "nearest",
            "one": f"1.0{suffix}",
            "cubic": [share.format(f=suffix) for share in CUBIC],
            "outside": -OUTSIDE,
            "tap": _tap(len(axes), taps),
            "offset": " + ".join(f"p{axis['n']}[t{axis['n']}][lane]" for axis in axes),
            "product": " * ".join(f"w{axis['n']}[t{axis['n']}][lane]" for axis in axes),
            "channels": static(x.shape[1]),
            "channel": before,
            "x_type": dtype.storage_c,
            "zero": literal_c(0, dtype),
            "store": store,
        }

    def label(self, call: Call) -> str:
        return f"grid_sample_{call.of(GridSample).mode}"


def _lanes(call: Call, extent: int) -> int:
    """Places at a time: so many that what is known of the elements around them stays near."""
    taps = TAPS[call.of(GridSample).mode] ** (len(call.ins[0].shape) - 2)
    sizes = (LANES >> shift for shift in range(4))
    return next((size for size in sizes if size <= extent and size * taps <= AROUND), SHORTEST)


def _tap(axes: int, taps: int) -> str:
    """Which element it is of those around a place."""
    factors = [taps ** (axes - 1 - axis) for axis in range(axes)]
    return " + ".join(f"t{axis} * {factor}" if factor > 1 else f"t{axis}" for axis, factor in enumerate(factors))


def _steps(call: Call) -> list[tuple[Any, int]]:
    """How far apart the elements of a picture are along each axis, and how many there are."""
    x = call.ins[0]
    return [(step, static(size)) for step, size in zip(x.strides[2:], x.shape[2:], strict=True)]


def _case(
    name: str, dtype: DType, channels: int, space: tuple[int, ...], out: tuple[int, ...], kind: GridSample
) -> Case:
    x, grid = TensorType(dtype, (2, channels, *space)), TensorType(f32, (2, *out, len(space)))
    return Case(name, kind, (x, grid), (TensorType(dtype, (2, channels, *out)),))


def sampled(first: int, second: int, last: int) -> Case:
    """Fewer places are not served."""
    kind = GridSample("linear", "zeros", False)
    return _case(f"{first}_{second}_{last}", f32, first, (second, 3), (last + SHORTEST - 1,) * 2, kind)
