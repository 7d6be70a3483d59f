"""conv with windows of 3 or 3x3 and stride 1 by Winograd's minimal filtering, in vectors along channels, for operands
channels-last.

F(4x4,3x3) does a quarter of the products, F(2x2,3x3) two fifths, F(4,3) half and F(2,3) two thirds, for larger weights
and a little accuracy (errors of about 2e-6 and 1e-6 of the largest result). An axis in front of those that are
transformed is one of frames, whose taps are summed like input channels. The target's option `winograd` says which
tiles may be used: 0, 2 or 4. In 16-bit floats all is transformed, stored and multiplied in 16 bits by F(2x2,3x3), as
exactly as without it: sums are cut into shorter runs. Patches are worked off in blocks whose transforms stay in the
caches. Several workers share the blocks; where weights do not stay in the caches, they first transform all patches, and
then each computes some of the channels of all. Only where speed is what matters most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import f16, f32
from mccompile.base.marked import named
from mccompile.base.summation_error import PLAIN, SHORT
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import channels_last_refusal, chunks
from mccompile.codegen.vector.vector_runs import Run, longest_run, runs
from mccompile.codegen.vector.vector_tiles import (
    HALF_RELU,
    Group,
    Part,
    Pass,
    Taps,
    Tile,
    computed_in,
    fetched_ahead,
    in_halves,
    is_long,
    products_refusal,
    taken_together,
    vector_headers,
    vector_refusal,
)
from mccompile.codegen.vector.winograd import (
    HALF_SCALE,
    HALF_TERMS,
    input_transform,
    output_transform,
    scaled,
    transformed_weights,
)
from mccompile.codegen.vector.winograd_geometry import geometry
from mccompile.codegen.vector.winograd_plan import (
    BY_BLOCKS,
    IN_PHASES,
    Plan,
    allowed_tiles,
    best_plan,
    in_workspace,
    largest_tile,
    phase_barrier,
    plan_cycles,
    rounding_of,
    shape_of,
    size_of,
    steps,
    uneven,
    work_units,
)
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, static_views, viewed
from mccompile.kernels.work import Units
from mccompile.kinds.conv import Conv

ERROR = 3e-6  # of the method, over the largest result
VIDEO = Conv((1, 1, 1), (1, 1, 1), (1,) * 6, 1, f32)


class Winograd(Kernel):
    kind = Conv
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = PADDED_CONV
        sizes = [(4, 4, 16, 16), (7, 7, 33, 31), (15, 16, 17, 15), (9, 33, 8, 24), (5, 6, 3, 2), (1, 2, 16, 17)]
        cases = [_case(f"{h}x{w}x{c}_{o}", plain, (1, c, h, w), o) for h, w, c, o in sizes]
        cases += [
            _case("deep", plain, (1, 96, 5, 5), 100),  # with phases, where workers share it
            _case("no_pads", replace(plain, pads=(0, 0, 0, 0)), (2, 16, 10, 11), 32),
            _case("uneven_pads", replace(plain, pads=(2, 0, 1, 3)), (1, 20, 10, 9), 16),
        ]
        joined, dilated = VIDEO, replace(plain, dilations=(2, 3), pads=(2, 3, 2, 3))
        cases += [
            _case("dilated", dilated, (1, 17, 9, 14), 20),
            _case("columns", Conv((1,), (1,), (1, 1), 1, f32), (2, 20, 23), 17),
            _case("columns_dilated", Conv((1,), (4,), (4, 0), 1, f32), (1, 16, 45), 16),
            _case("columns_of_rows", Conv((2, 1), (1, 1), (0, 1, 0, 1), 1, f32), (1, 16, 5, 14), 18, (1, 3)),
            _case("columns_of_joined_rows", Conv((2, 1), (2, 1), (2, 1, 1, 1), 1, f32), (1, 18, 9, 10), 16, (2, 3)),
            _case("video", joined, (1, 16, 4, 9, 10), 19, (3, 3, 3)),
            _case("video_apart", replace(joined, pads=(0, 1, 1) * 2), (2, 7, 3, 6, 6), 16, (1, 3, 3)),
            _case("video_deep", replace(joined, pads=(0, 1, 1) * 2), (1, 96, 3, 5, 5), 100, (2, 3, 3)),
            _case("video_joined", replace(joined, pads=(0, 1, 1) * 2), (1, 16, 3, 8, 7), 24, (3, 3, 3)),
        ]
        video = _case("video_epilogue", replace(joined, epilogue=RELU_OF_SUM), (1, 18, 2, 6, 7), 16, (2, 3, 3))
        cases.append(with_picture(video, ()))
        for name, repeated in (("bias", (0, 2, 3)), ("residual", ())):
            case = _case(f"epilogue_{name}", replace(plain, epilogue=RELU_OF_SUM), (1, 16, 10, 11), 19)
            cases.append(with_picture(case, repeated))
        half = replace(plain, epilogue=HALF_RELU)
        halves = [
            _case("half_no_runs", half, (1, 16, 5, 7), 24),
            _case("half_runs", half, (2, 48, 6, 6), 32),
            _case("half_rest", replace(half, pads=(2, 0, 1, 3)), (1, 45, 7, 6), 19),
            _case("half_deep", half, (1, 96, 5, 5), 100),
            _case("half_few", half, (1, 3, 4, 5), 2),
        ]
        cases += map(in_halves, halves)
        short, columns = replace(plain, rounding=SHORT), Conv((1,), (1,), (1, 1), 1, f32, rounding=SHORT)
        biased = _case("runs_bias", replace(short, epilogue=RELU_OF_SUM), (1, 21, 6, 7), 19)
        return [
            *cases,
            _case("as_exact_as_plain", replace(plain, rounding=PLAIN), (1, 21, 5, 6), 17),
            with_picture(biased, (0, 2, 3)),
            _case("runs_large_tiles", short, (1, 195, 7, 9), 17),
            _case("runs_columns", columns, (1, 99, 16), 18),
            _case("runs_video", replace(joined, rounding=SHORT), (1, 13, 3, 5, 6), 16, (3, 3, 3)),
            _case("runs_video_joined", replace(joined, pads=(0, 1, 1) * 2, rounding=SHORT), (1, 13, 4, 5, 6), 16),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [winograd, winograd_columns, winograd_video]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, w, dtype = call.of(Conv), call.ins[1], computed_in(call)
        reason = vector_refusal(target) or static_views(call) or products_refusal(call, target)
        reason = reason or refusals(kind.expressions(), dtype)
        if reason:
            return No(reason)
        if largest_tile(target) < 2:
            return No("Winograd's method is switched off (option winograd), or speed does not come first")
        if w.buffer.dtype is not dtype:
            return No("weights are narrower than products")
        shape = geometry(call)
        if shape is None or kind.group != 1:
            return No("only for windows of 3 or 3x3 along the last axes, with stride 1 and one group")
        if not allowed_tiles(call, target):
            return No("sums have to be more accurate")
        if dtype is f16 and (shape.rows is None or shape.apart):
            return No("16-bit floats only for 2-D windows")
        if w.buffer.constant is None:
            return No("the weights are not constant")
        reason = channels_last_refusal(call, call.ins[2:])
        if reason:
            return No(reason)
        plan = best_plan(call, target)
        frames = shape.frames.size, shape.frames.out
        sizes = zip(frames, in_workspace(call, plan), steps(call, plan), strict=True)
        numbers = sum(uneven(math.prod(each), dtype) for each in sizes)
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            constant=frozenset({1}),
            numeric="ulp",
            scratch=shape.elements(plan.m) * numbers * size_of(dtype),
            scratch_align=64,
            blocks=plan.blocks,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        plan = best_plan(call, target)
        w = call.ins[1]
        stored = static(w.type.count) * size_of(computed_in(call))
        shape = shape_of(call)
        more = stored * shape.elements(plan.m) // (9 if shape.rows else 3) - stored
        return Cost(plan_cycles(call, plan, target), code=3000, blob=more)

    def rounding(self, call: Call) -> float:
        return rounding_of(call, call.blocks[0])

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        plan = Plan(*call.blocks)
        shape, w = shape_of(call), viewed(call.ins[1], constants[1])
        u = transformed_weights(w if shape.apart else w[:, :, None], plan.m, rows=shape.rows is not None)
        groups = Groups(plan.size, u.shape[1])
        padded = np.zeros((u.shape[0], groups.padded, u.shape[2]), u.dtype)
        padded[:, : u.shape[1]] = u
        tiles = [
            padded[element, first : first + vectors * plan.lanes].T.reshape(-1)
            for element in range(len(u))
            for begin, end, vectors, _ in groups.parts()
            for first in range(begin, end, vectors * plan.lanes)
        ]
        return {1: np.concatenate(tiles)}

    def packing(self, call: Call) -> Mapping[int, str]:
        plan = Plan(*call.blocks)
        return {1: f"winograd {plan.m}, channels in {plan.vectors}x{plan.lanes}"}

    def label(self, call: Call) -> str:
        x, w = call.ins[:2]
        return f"winograd{call.blocks[0]}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call, computed_in(call))

    def units(self, call: Call) -> Sequence[int]:
        return work_units(call, Plan(*call.blocks))

    def barrier(self, call: Call) -> int:
        return phase_barrier(call, Plan(*call.blocks))

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)[1]).context()


class _Layout:
    """Loops and C of indices for one call. Counters: n batch, frame, block first patch of a block, tile patch in it, c
    input and o output channels, element of a transformed patch, q patches in a tile of the matrix product, t taps."""

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.names, self.plan = call.of(Conv), names, Plan(*call.blocks)
        self.dtype, self.shape = computed_in(call), shape_of(call)
        self.x, self.w, self.y, self.extras = call.ins[0], call.ins[1], call.outs[0], call.ins[2:]
        self.channels, self.inputs = static(self.w.shape[0]), static(self.w.shape[1])
        self.batch, self.frames = static(self.x.shape[0]), self.shape.frames
        self.v_step, self.products_step = steps(call, self.plan)
        self.v_frame, self.products_frame = (
            count * step for count, step in zip(in_workspace(call, self.plan), steps(call, self.plan), strict=True)
        )
        self.v_element = uneven(self.frames.size * self.v_frame, self.dtype)
        self.products_element = uneven(self.frames.out * self.products_frame, self.dtype)
        self.rows, self.columns = self.shape.rows, self.shape.columns
        self.tiles_across, self.tiles = self.columns.patches(self.plan.m), self.shape.patches(self.plan.m)

    def context(self) -> dict[str, Any]:
        plan = self.plan
        units = Units() if plan.cut == IN_PHASES else None
        ends = {BY_BLOCKS: f" && block < end * {plan.per_block}", IN_PHASES: f" && end > {self.tiles}"}
        x_of, y_of = f"{self.dtype}x{plan.x_lanes}", f"{self.dtype}x{plan.lanes}"
        names = [f"d{number}" for number in range(plan.alpha)]
        output = output_transform(names, plan.m, y_of)
        outer = [Range(name, many) for name, many in (("n", self.batch), ("frame", self.shape.apart)) if many > 1]
        return {
            "number": self.dtype.storage_c,
            "zero": "0.0f" if self.dtype is f32 else "0u",
            "m": plan.m,
            "alpha": plan.alpha,
            "per_block": plan.per_block,
            "patches": units.loop("tile", 0, 1, self.tiles, 1) if units else "",
            "first": f"begin * {plan.per_block}" if plan.cut == BY_BLOCKS else "0",
            "end": ends.get(plan.cut, ""),
            "v": f"({named('v')} + {named('block')} * {self.v_step})" if units else "v",
            "tiles": self.tiles,
            "axes": self.axes(),
            "rows": self.rows,
            "outer": outer,
            "around": [nest.counter for nest in outer],
            "frames": Range("frame", self.frames.size) if self.frames.size > 1 else None,
            "frames_out": Range("frame", self.frames.out) if self.frames.out > 1 else None,
            "frame_loop": self.frame_loop(),
            "v_size": self.shape.elements(plan.m) * self.v_element,
            "elements": self.shape.elements(plan.m),
            "v_element": self.v_element,
            "v_at": index_c([self.v_frame, self.v_step], [self.frame(self.frames.size), named("tile")]),
            "products_element": self.products_element,
            "products_at": index_c(
                [self.products_frame, self.products_step, 1], [self.frame(self.frames.out), "tile", "o"]
            ),
            "x_vector": f"mcc_{x_of}",
            "y_vector": f"mcc_{y_of}",
            "x_of": x_of,
            "y_of": y_of,
            "x_at": self.place(self.x, "y0", "x0", "0"),
            "input": input_transform(names, plan.m, x_of),
            "output": output,
            "results": [self.scaled(one, HALF_SCALE, plan.lanes) for one in output],
            "chunks": self.chunks(),
            "groups": self.groups(units),
            "out_parts": self.out_parts(),
        }

    def axes(self) -> list[dict[str, str]]:
        """Those that are transformed: counters, the first result and input of a patch, and which inputs lie inside."""
        found = []
        for axis, letter, patch in ((self.rows, "y", "/"), (self.columns, "x", "%")):
            if axis is None:
                continue
            window, tile = axis.inputs(self.plan.m), "at" if self.rows is None else f"(at {patch} {self.tiles_across})"
            first = axis.first(tile, self.plan.m)
            found.append({
                "letter": letter,
                "result": first,
                "input": f"{first} - {axis.pad}" if axis.pad else first,
                "first": window.first_tap(f"{letter}0"),
                "end": window.end_tap(f"{letter}0"),
            })  # fmt: skip
        return found

    def frame(self, many: int) -> str:
        """The counter of as many frames."""
        return named("frame") if many > 1 else "0"

    def frame_loop(self) -> str:
        """C that opens the loop over the frames of results, and says which taps lie inside of each; or nothing."""
        frames = self.frames
        lines = []
        if frames.kernel > 1 and not frames.always_inside:
            origin = frames.origin("frame") if frames.out > 1 else str(-frames.pad)
            lines = [
                f"const mcc_index slice = {origin};",
                f"const mcc_index first = {frames.first_tap('slice')}, last = {frames.end_tap('slice')};",
            ]
        inner = "\n".join(lines)
        if frames.out > 1:
            return Range("frame", frames.out, then=inner).header
        return f"{{\n{inner}" if inner else ""

    def scaled(self, vector: str, factor: float, lanes: int) -> str:
        return scaled(vector, factor, f"{f16}x{lanes}") if self.dtype is f16 else vector

    def place(self, view: View, row: str, column: str, channel: str) -> str:
        spatial, counters = [static(stride) for stride in view.strides[2:]], [column]
        if self.rows:
            counters.insert(0, row)
        if self.shape.apart:
            of_input = view is self.x
            counters.insert(0, self.frame(max(self.shape.apart, self.frames.size if of_input else self.frames.out)))
            spatial[0] *= self.shape.stride if of_input else 1
        return index_c([static(view.strides[0]), 1, *spatial], ["n" if self.batch != 1 else "0", channel, *counters])

    def chunks(self) -> list[dict[str, str]]:
        """Vectors of input channels, and how those of one element of a patch are read."""
        down, across = (static(stride) for stride in (0, *self.x.strides[2:])[-2:])
        down, across = down * (self.rows.dilation if self.rows else 0), across * self.columns.dilation
        found = []
        for chunk in chunks("c", self.inputs, self.plan.x_lanes):
            loads = {}
            for name, row in (("direct", "ROW"), ("element", "i")):
                at = f"({index_c([1, 1, down, across], ['x_at', 'c', row, 'j'])})"
                load = chunk.load(self.plan.x_lanes, named("x"), at, 1, self.dtype, self.dtype)
                loads[name] = self.scaled(load, 1 / HALF_SCALE, self.plan.x_lanes)
            found.append({"header": chunk.header, **loads})
        return found

    def groups(self, units: Units | None) -> list[Group]:
        """The matrix products: patches x output channels, for each element."""
        plan, found = self.plan, []
        groups = Groups(plan.size, self.channels)
        padded = groups.padded
        headers = groups.headers("o", units)
        frames, depth = self.frames, self.inputs * self.frames.kernel
        each = HALF_TERMS if self.dtype is f16 else frames.kernel
        longest = longest_run(self.inputs * each, self.dtype, self.kind.rounding)
        inputs: tuple[Run, ...] = (Run((), Range("k", self.inputs)),)
        taps: tuple[Range, ...] = ()
        if frames.kernel > 1:
            bounds = () if frames.always_inside else (named("first"), named("last"))
            taps = (Range("t", frames.kernel, *bounds),)
        if longest:
            inputs = runs("k", self.inputs, longest // each, plan.together)
        for header, (_, _, vectors, _) in zip(headers, groups.parts(), strict=True):
            step = vectors * plan.lanes
            ahead = fetched_ahead(step * depth, self.shape.elements(plan.m) * padded * depth)
            whole = plan.per_block // plan.points * plan.points
            parts = []
            for first, stop, count in ((0, whole, plan.points), (whole, plan.per_block, plan.per_block - whole)):
                if stop == first:
                    continue
                row, opens = str(first), "{"
                if stop - first > count:
                    row, opens = "q", Range("q", stop, str(first), step=count).header
                frame = self.frame(frames.out)
                y_at = index_c(
                    [self.products_element, self.products_frame, self.products_step, 1], ["element", frame, row, "o"]
                )
                y = Reference("products", f"({y_at})", self.products_step, 1, stored=self.dtype)
                k = "k" if self.inputs > 1 else "0"
                tap = "t" if taps else "0"
                v_at = index_c(
                    [self.v_element, *(self.v_frame * by for by in (frames.stride, frames.dilation)), self.v_step, 1],
                    ["element", frame, tap, row, k],
                    -frames.pad * self.v_frame,
                )
                w_at = index_c([padded * depth, depth, self.inputs * step, step], ["element", "o", tap, k])
                passes: tuple[Pass, ...] = ()
                for run in inputs:
                    loops = (*taps, run.inputs) if self.inputs > 1 else taps
                    sums = Taps(tuple(range(count)), loops, v_at, w_at)
                    passes += (Pass(run.around, taken_together(sums, plan.together if self.inputs > 1 else 1, step)),)
                cut, size = longest > 0 and self.dtype is f32, (plan.lanes, count, vectors)
                long = is_long(passes, count, vectors, cut)
                epilogue = epilogue_statements(None, *size, plan.lanes, y, [], self.dtype, long=long)
                tile = Tile(*size, self.v_step, passes, epilogue, 0, ahead, self.dtype, self.dtype, longest > 0)
                parts.append(Part(opens, tile))
            found.append(Group(header, tuple(parts)))
        return found

    def out_parts(self) -> list[dict[str, Any]]:
        """Vectors of output channels; the results of a row of a patch one by one."""
        plan = self.plan
        found = []
        for chunk in chunks("o", self.channels, plan.lanes):
            opens = chunk.header
            if plan.cut == IN_PHASES:  # those of this worker's groups
                step, whole = plan.size.channels, self.channels // plan.lanes * plan.lanes
                begin, end = (f"({named(name)} - {self.tiles}) * {step}" for name in ("begin", "end"))
                last = f"{{\nconst mcc_index o = {whole};"
                loop = Range("o", 0, begin, f"{whole} && o < {end}", plan.lanes).header
                opens = loop if chunk.lanes == plan.lanes else f"if ({end} > {whole}) {last}"
            columns = []
            for column in range(plan.m):
                row = f"(p0 + i * {self.rows.dilation})" if self.rows and self.rows.dilation > 1 else "(p0 + i)"
                across = f"p1 + {column * self.columns.dilation}" if column else "p1"

                def reference(view: View, name: str, row: str = row, across: str = f"({across})") -> Reference:
                    lane = 1 if name == "y" else min(static(view.strides[1]), 1) if view.shape[1] != 1 else 0
                    place = self.place(view, row, across, "o" if lane else "0")
                    return Reference(name, place, 0, lane, stored=self.dtype)

                extras = [reference(view, name) for view, name in zip(self.extras, self.names[2:], strict=True)]
                y = reference(self.y, "y")
                after = epilogue_statements(self.kind.epilogue, plan.lanes, 1, 1, chunk.lanes, y, extras, self.dtype)
                header = f"if ({across} < {self.columns.results}) {{" if self.columns.missing(column, plan.m) else "{"
                columns.append({"header": header, "lines": [*after.hoisted, *after.stores]})
            found.append({"header": opens, "columns": columns})
        return found


def winograd(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(PADDED_CONV, (1, c_in, 5, width), (c_out, c_in, 3, 3), ERROR)


def winograd_columns(c_in: int, c_out: int, width: int) -> Case:
    """Only rows of taps are transformed, two apart."""
    kind = replace(PADDED_CONV, dilations=(1, 2), pads=(0, 2, 0, 2))
    return sized_conv(kind, (1, c_in, 2, width), (c_out, c_in, 1, 3), ERROR)


def winograd_video(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(VIDEO, (1, c_in, 3, 5, width), (c_out, c_in, 3, 3, 3), ERROR)


def _case(name: str, kind: Conv, x: tuple[int, ...], channels: int, window: tuple[int, ...] = ()) -> Case:
    return conv_case(name, kind, x, (channels, x[1], *(window or (3,) * (len(x) - 2))), ERROR)
