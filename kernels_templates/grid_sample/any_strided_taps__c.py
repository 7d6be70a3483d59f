"""grid_sample in portable C: for every place the taps of each axis once, then all channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import DType, f16, f32, f64, i8
from mccompile.base.tensor import TensorType
from mccompile.codegen.grid_places import GridPlaces
from mccompile.expr.dims_c import size_c
from mccompile.expr.scalar_c import cast_c, literal_c, load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
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
        reason = supports_types(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * 3 * target.machine.element, code=600)

    def unpassed(self, call: Call) -> frozenset[str]:
        return GridPlaces(call).unpassed

    def context(self, call: Call) -> Mapping[str, Any]:
        at, (x, _), y = GridPlaces(call), call.ins, call.outs[0]
        axes = at.axes()
        element = load_c(x.buffer.dtype, "x", f"o{len(axes) - 1}")
        to = at.channel(0, y)
        return {
            **at.context(),
            "loops": at.loops.loops,
            "axes": axes,
            "channels": size_c(x.shape[1]),
            "zero": literal_c(0, at.accumulator),
            "element": cast_c(element, x.buffer.dtype, at.accumulator),
            "store": store_c(y.buffer.dtype, "y", to, "s0"),
            "store_zero": store_c(y.buffer.dtype, "y", to, literal_c(0, y.buffer.dtype)),
            "store_element": store_c(y.buffer.dtype, "y", to, element),
        }

    def label(self, call: Call) -> str:
        return f"grid_sample_{call.of(GridSample).mode}"
