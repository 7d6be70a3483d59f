"""grid_sample in portable C: for every place the taps of each axis once, then all channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import DType, f16, f32, f64, i8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.expr.scalar_c import cast_c, literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, supports_types
from mccompile.kinds.grid_sample import PADDINGS, TAPS, GridSample


class GridSampleTaps(Kernel):
    kind = GridSample

    def cases(self) -> Sequence[Case]:
        def case(name: str, dtype: DType, space: tuple[int, ...], out: tuple[int, ...], kind: GridSample) -> Case:
            x = TensorType(dtype, (2, 3, *space))
            grid = TensorType(f64 if dtype is f64 else f32, (2, *out, len(space)))
            return Case(name, kind, (x, grid), (TensorType(dtype, (2, 3, *out)),), permute={0: permute(x.rank)})

        def permute(rank: int) -> tuple[int, ...]:
            return (0, *range(2, rank), 1)

        found = [
            case(f"{mode}_{padding}_{int(align)}", f32, (4, 5), (6, 7), GridSample(mode, padding, align))
            for mode in TAPS
            for padding in PADDINGS
            for align in (False, True)
        ]
        return [
            *found,
            case("one_axis", f64, (5,), (4,), GridSample("linear", "zeros", False)),
            case("three_axes", f32, (2, 3, 1), (3, 2, 2), GridSample("cubic", "reflection", True)),
            case("of_one", f32, (1, 3), (2, 2), GridSample("nearest", "border", False)),
            case("of_one_alone", f32, (1, 1), (2, 2), GridSample("nearest", "border", False)),
            case("of_one_between", f32, (1, 3), (2, 2), GridSample("linear", "border", False)),
            case("of_one_or_zero", f32, (1, 3), (2, 2), GridSample("nearest", "zeros", False)),
            case("integers", i8, (3, 3), (4, 4), GridSample("nearest", "zeros", False)),
            case("f16", f16, (3, 3), (4, 4), GridSample("linear", "border", False)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        open_sizes = [dim for dim in call.ins[0].shape[1:] if not isinstance(dim, int)]
        reason = f"the size {open_sizes[0]} is known only at run time" if open_sizes else supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * 3 * target.machine.element, code=600)

    def unpassed(self, call: Call) -> frozenset[str]:
        """The one element of a picture is the nearest to all places."""
        nearest = call.of(GridSample).mode == "nearest"
        counts = any(_counts(call, axis) for axis in range(len(call.ins[0].shape) - 2))
        return frozenset({"grid"}) if nearest and not counts else frozenset()

    def context(self, call: Call) -> Mapping[str, Any]:
        kind = call.kind
        assert isinstance(kind, GridSample)
        (x, grid), y = call.ins, call.outs[0]
        accumulator = f64 if x.buffer.dtype is f64 else f32
        place = f64 if grid.buffer.dtype is f64 else f32
        shape = (y.shape[0], *y.shape[2:])
        at_y = _of(y, shape, (y.strides[0], *y.strides[2:]))
        at_x = _of(x, shape, (x.strides[0], *(0 for _ in shape[1:])))
        loops = nest(shape, [at_y, at_x, _of(grid, shape, grid.strides[:-1])])
        counters = [loop.counter for loop in loops.loops]

        def channel(which: int, view: View) -> str:
            return index_c((*loops.strides[which], view.strides[1]), [*counters, "c"])

        axes = []
        before = channel(1, x)
        rank = len(shape) - 1
        for number in range(rank):
            last = index_c((*loops.strides[2], grid.strides[-1]), [*counters, str(rank - 1 - number)])
            tap = f"p{number}[{0 if kind.mode == 'nearest' else f't{number}'}]"
            step = index_c((x.strides[2 + number],), (tap,))
            axes.append(
                {
                    "n": number,
                    "size": static(x.shape[2 + number]),
                    "counts": _counts(call, number),
                    "place": load_c(grid.buffer.dtype, "grid", last),
                    "step": f"{before} + {step}".removeprefix("0 + "),
                }
            )
            before = f"o{number}"
        element = load_c(x.buffer.dtype, "x", before)
        return {
            "loops": loops.loops,
            "axes": axes,
            "channels": static(x.shape[1]),
            "kind": kind,
            "taps": TAPS[kind.mode],
            "place": place.compute_c,
            "suffix": "f" if place is f32 else "",
            "name": place.name,
            "number": lambda value: literal_c(value, place),
            "type": accumulator.compute_c,
            "zero": literal_c(0, accumulator),
            "element": cast_c(element, x.buffer.dtype, accumulator),
            "store": store_c(y.buffer.dtype, "y", channel(0, y), "s0"),
            "store_zero": store_c(y.buffer.dtype, "y", channel(0, y), literal_c(0, y.buffer.dtype)),
            "store_element": store_c(y.buffer.dtype, "y", channel(0, y), element),
        }

    def label(self, call: Call) -> str:
        return f"grid_sample_{call.of(GridSample).mode}"


def _counts(call: Call, axis: int) -> bool:
    """Does it matter where a place lies on an axis of the picture?"""
    return call.ins[0].strides[2 + axis] != 0 or call.of(GridSample).padding == "zeros"


def _of(view: View, shape: Sequence[Dim], strides: Sequence[Any]) -> View:
    return replace(view, shape=tuple(shape), strides=tuple(strides))
