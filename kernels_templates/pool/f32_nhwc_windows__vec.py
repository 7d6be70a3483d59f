"""pool in vectors along channels, for operands that lie channels-last: largest and mean elements of windows.

Which elements of a window lie inside the image is worked out once per position and axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.marked import including
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM, with_picture
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, cut_sum, epilogue_alias
from mccompile.codegen.traffic import AROUND, fmas_of, loads_of, traffic
from mccompile.codegen.vector.vector_epilogue import Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import channels_last_refusal, narrow
from mccompile.codegen.vector.vector_tiles import (
    TileSize,
    best_lanes,
    vector_headers,
    vector_refusal,
    vector_registers,
)
from mccompile.codegen.windows import Axis, any_axes, known, windows_name
from mccompile.expr.ir import apply, cast, operand
from mccompile.expr.vector_c import NARROW, refusals
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, static_views
from mccompile.kernels.work import Units
from mccompile.kinds.pool import Pool

LARGEST = Pool("max", (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (), f32)


@dataclass(frozen=True)
class Part:
    """A run of equal groups of channels."""

    header: str
    vectors: int
    loads: tuple[str, ...]
    lines: tuple[str, ...]


BOUNDS = 20  # cycles until it is known which elements of a window lie inside, and of the result


class ChannelsLast(Kernel):
    kind = Pool
    branches = ""

    def cases(self) -> Sequence[Case]:
        largest, mean = LARGEST, replace(LARGEST, algorithm="average")
        whole = replace(mean, kernel=(9, 7), strides=(1, 1), pads=(0, 0, 0, 0))
        cases = [_case(f"max_{c}", largest, (1, c, 7, 8), (4, 4)) for c in (1, 3, 15, 16, 17, 33, 100)]
        cases += [
            _case("max_dilated", replace(largest, dilations=(2, 3), strides=(1, 1)), (2, 20, 9, 12), (7, 8)),
            _case("max_overhanging", replace(largest, pads=(0, 0, 0, 0)), (1, 5, 8, 8), (4, 4)),
            _case("max_1d", Pool("max", (4,), (3,), (1,), (0, 1), (), f32), (2, 12, 25), (8,)),
            _case("mean", mean, (1, 19, 9, 16), (5, 8)),
            _case("mean_with_pad", replace(mean, count_include_pad=True), (1, 24, 10, 10), (6, 6)),
            _case("mean_global", whole, (2, 35, 9, 7), (1, 1)),
            _case("mean_long", replace(whole, kernel=(40, 30)), (1, 6, 40, 30), (1, 1)),
        ]
        for dtype in NARROW:
            rounded = cast(operand(0, f32), dtype)
            scaled = apply("mul", rounded, operand(1, dtype))
            for name, kind, ends in (("max", largest, rounded), ("mean", mean, rounded), ("scaled", mean, scaled)):
                case = _case(f"{dtype}_{name}", replace(kind, epilogue=ends), (1, 19, 9, 16), (5, 8))
                ins = tuple(TensorType(dtype, t.shape) for t in (*case.ins, *case.outs)[: 1 + (name == "scaled")])
                permute = {**case.permute, 1: (0, 2, 3, 1)} if name == "scaled" else case.permute
                cases.append(replace(case, ins=ins, outs=(TensorType(dtype, case.outs[0].shape),), permute=permute))
        case = _case("epilogue", replace(mean, epilogue=RELU_OF_SUM), (1, 19, 9, 16), (5, 8))
        return [*cases, with_picture(case)]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [pool]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x, y = call.of(Pool), call.ins[0], call.outs[0]
        reason = vector_refusal(target) or static_views(call)
        reason = reason or refusals(kind.expressions(), narrow=NARROW)
        if reason:
            return No(reason)
        if kind.algorithm not in ("max", "average") or any(
            v.buffer.dtype not in (f32, *NARROW) for v in (*call.ins, y)
        ):
            return No("only for the maximum and the mean of floats of at most 32 bits")
        reason = channels_last_refusal(call, call.ins[1:])
        if reason:
            return No(reason)
        channels = static(x.shape[1])
        lanes = best_lanes(channels, target)
        vectors = min(-(-channels // lanes), vector_registers(lanes, target) // 4)
        alias = epilogue_alias(call, kind.fixed)
        return Needs(alias=alias, numeric="ulp", blocks=(lanes, vectors))

    def cost(self, call: Call, target: Target) -> Cost:
        (lanes, vectors), machine = call.blocks, target.machine
        groups = -(-static(call.ins[0].shape[1]) // (lanes * vectors))
        step = max(loads_of(vectors, lanes, target), vectors / fmas_of(lanes, target))
        step = max(step, (2 * vectors + AROUND) / machine.issue)
        positions = static(call.outs[0].type.count) // max(static(call.outs[0].shape[1]), 1)
        cycles = positions * groups * (BOUNDS + prod(call.of(Pool).kernel) * step)
        return Cost(max(cycles, traffic((*call.outs, *call.ins), target)), code=600)

    def label(self, call: Call) -> str:
        kind, x = call.of(Pool), call.ins[0]
        return f"{kind.algorithm}_pool_{windows_name(kind.kernel, kind.strides, x)}"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        return _Layout(call, self.parameter_names(call)[1]).units()

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)[1]).context()


class _Layout:
    """Loops and C of indices for one call. Counters: n batch, c channels, p0.. positions, k0.. elements of the window;
    at0.. are the places of the first elements."""

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.names = call.of(Pool), names
        self.x, self.y, self.extras = call.ins[0], call.outs[0], call.ins[1:]
        kind = self.kind
        window = (kind.kernel, kind.strides, kind.dilations, kind.pads)
        self.axes = known(any_axes(self.y, self.x, (), self.extras, *window, join=False))
        self.pads_after = kind.pads[len(kind.kernel) :]
        self.batch, self.channels = static(self.x.shape[0]), static(self.x.shape[1])
        self.lanes, self.vectors = call.blocks
        self.groups = Groups(TileSize(self.lanes, 1, self.vectors), self.channels)
        self.by_rows = call.workers > 1 and self.axes[0].out >= call.workers
        self.by_channels = call.workers > 1 and not self.by_rows

    def units(self) -> list[int]:
        """What workers share: rows, or groups of channels."""
        units = Units()
        if self.by_rows:
            units.loop("p0", 0, 1, self.axes[0].out, 1)
        else:
            self.groups.headers("c", units)
        return units.sizes

    def context(self) -> dict[str, Any]:
        kind = self.kind
        loops = [
            Range(f"k{n}", a.kernel) if a.always_inside else Range(f"k{n}", a.kernel, f"first{n}", f"end{n}")
            for n, a in enumerate(self.axes)
        ]
        around, inside = ((), tuple(loops)) if kind.algorithm == "max" else cut_sum(loops, f32)
        return {
            "outer": [Range("n", self.batch)] if self.batch != 1 else [],
            "rows": [self.row(number, axis) for number, axis in enumerate(self.axes)],
            "parts": self.parts(),
            "combine": kind.algorithm,
            "start": f"{including('math.h')}-INFINITY" if kind.algorithm == "max" else "0.0f",
            "count": self.count() if kind.algorithm == "average" else "",
            "around": around,
            "inside": inside,
            "vector": f"mcc_f32x{self.lanes}",
            "of": f"f32x{self.lanes}",
        }

    def row(self, number: int, axis: Axis) -> dict[str, str]:
        at = f"at{number}"
        origin = f"const mcc_index {at} = {axis.origin(f'p{number}')};"
        run = Range(f"p{number}", axis.out)
        if self.by_rows and number == 0:
            run = replace(run, begin="begin", end="end")
        return {
            "loop": run.header,
            "at": origin if axis.x or not axis.always_inside else "",
            "first": "" if axis.always_inside else f"const mcc_index first{number} = {axis.first_tap(at)};",
            "end": "" if axis.always_inside else f"const mcc_index end{number} = {axis.end_tap(at)};",
        }

    def parts(self) -> list[Part]:
        found = []
        headers = self.groups.headers("c", Units() if self.by_channels else None)
        for header, (_, _, vectors, last) in zip(headers, self.groups.parts(), strict=True):
            at = [*(f"at{n}" for n in range(len(self.axes))), *(f"k{n}" for n in range(len(self.axes)))]
            index = self.place(self.x, at, [*(a.x for a in self.axes), *(a.x * a.dilation for a in self.axes)], "c")
            loads = []
            for vector in range(vectors):
                place = f"x + ({index}" + (f" + {vector * self.lanes})" if vector else ")")
                full = vector < vectors - 1 or last == self.lanes
                kind = f"{narrow(self.x.buffer.dtype)}f32x{self.lanes}"
                loads.append(f"mcc_load_{kind}({place})" if full else f"mcc_load_part_{kind}({place}, {last})")
            found.append(Part(header, vectors, tuple(loads), self.epilogue(vectors, last)))
        return found

    def epilogue(self, vectors: int, last: int) -> tuple[str, ...]:
        positions = [f"p{number}" for number in range(len(self.axes))]

        def reference(view: View, name: str, steps: Sequence[int]) -> Reference:
            lane = 1 if name == "y" else min(static(view.strides[1]), 1) if view.shape[1] != 1 else 0
            index = self.place(view, positions, steps, "c" if lane else "0")
            return Reference(name, index, 0, lane, stored=view.buffer.dtype)

        extras = [
            reference(view, name, [axis.extras[number] for axis in self.axes])
            for number, (view, name) in enumerate(zip(self.extras, self.names[1:], strict=True))
        ]
        y = reference(self.y, "y", [axis.y for axis in self.axes])
        after = epilogue_statements(self.kind.epilogue, self.lanes, 1, vectors, last, y, extras)
        return (*after.hoisted, *after.stores)

    def place(self, view: View, counters: Sequence[str], strides: Sequence[int], channel: str) -> str:
        return index_c([static(view.strides[0]), 1, *strides], ["n" if self.batch != 1 else "0", channel, *counters])

    def count(self) -> str:
        """C for how many elements a mean is of."""
        factors = [self.count_along(number, axis) for number, axis in enumerate(self.axes)]
        if all(factor.isdigit() for factor in factors):
            return f"{prod(map(int, factors))}.0f"
        return f"(float)({' * '.join(factors)})"

    def count_along(self, number: int, axis: Axis) -> str:
        if axis.always_inside:
            return str(axis.kernel)
        if not self.kind.count_include_pad:
            return f"(end{number} - first{number})"
        padded = replace(axis, size=axis.size + self.pads_after[number])
        last = (axis.out - 1) * axis.stride - axis.pad + (axis.kernel - 1) * axis.dilation
        return str(axis.kernel) if last < padded.size else f"({padded.end_tap(f'at{number}')})"


def pool(channels: int, height: int, width: int) -> Case:
    space = (-(-height // 2), -(-width // 2))
    return _case(f"{channels}_{height}_{width}", LARGEST, (1, channels, height, width), space)


def _case(name: str, kind: Pool, x: tuple[int, ...], space: tuple[int, ...]) -> Case:
    out = TensorType(f32, (*x[:2], *space))
    last = (0, *range(2, len(x)), 1)
    kind = replace(kind, space=space)
    return Case(name, kind, (TensorType(f32, x),), (out,), permute={0: last}, permute_outs={0: last})
