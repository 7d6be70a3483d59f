"""conv 3x3 with stride 1 by Winograd's minimal filtering, in vectors along channels, for operands channels-last.

F(4x4,3x3) does a quarter of the products, F(2x2,3x3) two fifths, for larger weights and a little accuracy (errors of
about 1e-5 and 1e-6 of the largest result). The target's option `winograd` says which may be used: 0, 2 or 4. Patches
are worked off in blocks whose transforms stay in the caches. Several workers share the blocks; where weights do not
stay in the caches, they first transform all patches, and then each computes some of the channels of all. Only where
speed is what matters most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.marked import named
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM, with_picture
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Reference, epilogue_statements
from mccompile.codegen.vector.vector_loops import channels_last_refusal, chunks
from mccompile.codegen.vector.vector_tiles import (
    SECOND_LEVEL,
    Group,
    Groups,
    Part,
    Pass,
    Taps,
    Tile,
    TileSize,
    best_lanes,
    best_tile,
    fetched_ahead,
    is_long,
    row_cycles,
    taken_together,
    vector_headers,
    vector_refusal,
)
from mccompile.codegen.vector.winograd import input_transform, output_transform, transformed_weights
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Prefer, Target, View, static_views, viewed
from mccompile.kernels.work import Units, slowest
from mccompile.kinds.conv import Conv

NOT_CUT, BY_BLOCKS, IN_PHASES = range(3)  # how the work is cut for several workers
SMALL_BLOCK = 48 << 10  # bytes of workspace that are never too much; else half of what the weights take
LINE = 16  # floats of a line of a cache
TRANSFORM = 5  # cycles per vector of an element of a patch
FROM_MEMORY = 8.0  # bytes per cycle in which weights arrive
FROM_OTHERS = 10.0  # what that takes longer where another core reads the same at the same time
JUST_WRITTEN = 2.0  # bytes per cycle that another core has written, which may be far away


@dataclass(frozen=True)
class Plan:
    """All sizes of one instance; `blocks` of its call."""

    m: int
    per_block: int  # patches
    x_lanes: int
    lanes: int
    points: int
    vectors: int
    together: int = 1
    cut: int = NOT_CUT

    @property
    def alpha(self) -> int:
        return self.m + 2

    @property
    def size(self) -> TileSize:
        return TileSize(self.lanes, self.points, self.vectors, self.together)

    @property
    def blocks(self) -> tuple[int, ...]:
        size = (self.lanes, self.points, self.vectors, self.together)
        return (self.m, self.per_block, self.x_lanes, *size, self.cut)


class Winograd(Kernel):
    kind = Conv

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32)
        sizes = [(4, 4, 16, 16), (7, 7, 33, 31), (15, 16, 17, 15), (9, 33, 8, 24), (5, 6, 3, 2), (1, 2, 16, 17)]
        cases = [_case(f"{h}x{w}x{c}_{o}", plain, (1, c, h, w), o) for h, w, c, o in sizes]
        cases += [
            _case("deep", plain, (1, 96, 5, 5), 100),  # with phases, where workers share it
            _case("no_pads", replace(plain, pads=(0, 0, 0, 0)), (2, 16, 10, 11), 32),
            _case("uneven_pads", replace(plain, pads=(2, 0, 1, 3)), (1, 20, 10, 9), 16),
        ]
        for name, repeated in (("bias", (0, 2, 3)), ("residual", ())):
            case = _case(f"epilogue_{name}", replace(plain, epilogue=RELU_OF_SUM), (1, 16, 10, 11), 19)
            cases.append(with_picture(case, repeated))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, w, y = call.of(Conv), call.ins[1], call.outs[0]
        reason = vector_refusal(target) or static_views(call) or refusals(kind.expressions())
        if reason:
            return No(reason)
        if not _allowed(target):
            return No("Winograd's method is switched off (option winograd), or speed does not come first")
        if kind.x_zero or kind.w_zero or any(v.buffer.dtype is not f32 for v in (*call.ins, y)):
            return No("only for 32-bit floats")
        if w.shape[2:] != (3, 3) or kind.strides != (1, 1) or kind.dilations != (1, 1) or kind.group != 1:
            return No("only for windows of 3x3 with stride 1 and one group")
        if w.buffer.constant is None:
            return No("the weights are not constant")
        reason = channels_last_refusal(call, call.ins[2:])
        if reason:
            return No(reason)
        plan = min(_plans(call, target), key=lambda plan: _cycles(call, plan, target))
        patches = _in_workspace(call, plan), plan.per_block
        floats = sum(_uneven(rows * step) for rows, step in zip(patches, _steps(call, plan), strict=True))
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            constant=frozenset({1}),
            numeric="ulp",
            scratch=plan.alpha**2 * floats * 4,
            scratch_align=64,
            blocks=plan.blocks,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        plan = min(_plans(call, target), key=lambda plan: _cycles(call, plan, target))
        w = call.ins[1]
        more = static(w.type.count) * 4 * plan.alpha**2 // 9 - static(w.type.count) * 4
        return Cost(_cycles(call, plan, target), code=3000, blob=more)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        plan = Plan(*call.blocks)
        u = transformed_weights(viewed(call.ins[1], constants[1]), plan.m)
        groups = Groups(plan.size, u.shape[1])
        padded = np.zeros((u.shape[0], groups.padded, u.shape[2]), np.float32)
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
        return vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        return _units(call, Plan(*call.blocks))

    def barrier(self, call: Call) -> int:
        return _barrier(call, Plan(*call.blocks))

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)[1]).context()


class _Layout:
    """Loops and C of indices for one call. Counters: n batch, block first patch of a block, tile patch in it, c input
    and o output channels, element of a transformed patch, q patches in a tile of the matrix product."""

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.names, self.plan = call.of(Conv), names, Plan(*call.blocks)
        self.x, self.w, self.y, self.extras = call.ins[0], call.ins[1], call.outs[0], call.ins[2:]
        self.channels, self.inputs = static(self.w.shape[0]), static(self.w.shape[1])
        self.batch = static(self.x.shape[0])
        self.v_step, self.products_step = _steps(call, self.plan)
        self.v_element = _uneven(_in_workspace(call, self.plan) * self.v_step)
        self.products_element = _uneven(self.plan.per_block * self.products_step)
        self.tiles_across, self.tiles = -(-static(self.y.shape[3]) // self.plan.m), _tiles(call, self.plan.m)

    def context(self) -> dict[str, Any]:
        plan = self.plan
        units = Units() if plan.cut == IN_PHASES else None
        ends = {BY_BLOCKS: f" && block < end * {plan.per_block}", IN_PHASES: f" && end > {self.tiles}"}
        x_of, y_of = f"f32x{plan.x_lanes}", f"f32x{plan.lanes}"
        names = [f"d{number}" for number in range(plan.alpha)]
        return {
            "m": plan.m,
            "alpha": plan.alpha,
            "per_block": plan.per_block,
            "patches": units.loop("tile", 0, 1, self.tiles, 1) if units else "",
            "first": f"begin * {plan.per_block}" if plan.cut == BY_BLOCKS else "0",
            "end": ends.get(plan.cut, ""),
            "v": f"({named('v')} + {named('block')} * {self.v_step})" if units else "v",
            "tiles": self.tiles,
            "tiles_across": self.tiles_across,
            "pads": self.kind.pads[:2],
            "height": static(self.x.shape[2]),
            "width": static(self.x.shape[3]),
            "out_height": static(self.y.shape[2]),
            "outer": [Range("n", self.batch)] if self.batch != 1 else [],
            "v_size": plan.alpha**2 * self.v_element,
            "v_element": self.v_element,
            "products_element": self.products_element,
            "v_step": self.v_step,
            "products_step": self.products_step,
            "x_vector": f"mcc_{x_of}",
            "y_vector": f"mcc_{y_of}",
            "x_of": x_of,
            "y_of": y_of,
            "x_at": self.place(self.x, ["y0", "x0"], "0"),
            "input": input_transform(names, plan.m, x_of),
            "output": output_transform(names, plan.m, y_of),
            "chunks": self.chunks(),
            "groups": self.groups(units),
            "out_parts": self.out_parts(),
        }

    def place(self, view: View, counters: Sequence[str], channel: str) -> str:
        strides = [static(view.strides[0]), 1, *(static(stride) for stride in view.strides[2:])]
        return index_c(strides, ["n" if self.batch != 1 else "0", channel, *counters])

    def chunks(self) -> list[dict[str, str]]:
        """Vectors of input channels, and how those of one element of a patch are read."""
        down, across = (static(stride) for stride in self.x.strides[2:])
        found = []
        for chunk in chunks("c", self.inputs, self.plan.x_lanes):
            direct = chunk.load(self.plan.x_lanes, named("x"), f"(x_at + c + ROW * {down} + j * {across})", 1)
            element = chunk.load(self.plan.x_lanes, named("x"), f"(x_at + c + i * {down} + j * {across})", 1)
            found.append({"header": chunk.header, "direct": direct, "element": element})
        return found

    def groups(self, units: Units | None) -> list[Group]:
        """The matrix products: patches x output channels, for each element."""
        plan, found = self.plan, []
        groups = Groups(plan.size, self.channels)
        padded = groups.padded
        headers = groups.headers("o", units)
        for header, (_, _, vectors, _) in zip(headers, groups.parts(), strict=True):
            step = vectors * plan.lanes
            ahead = fetched_ahead(step * self.inputs, plan.alpha**2 * padded * self.inputs)
            whole = plan.per_block // plan.points * plan.points
            parts = []
            for first, stop, count in ((0, whole, plan.points), (whole, plan.per_block, plan.per_block - whole)):
                if stop == first:
                    continue
                row, opens = str(first), "{"
                if stop - first > count:
                    row, opens = "q", Range("q", stop, str(first), step=count).header
                y_at = index_c([self.products_element, self.products_step, 1], ["element", row, "o"])
                y = Reference("products", f"({y_at})", self.products_step, 1)
                k = "k" if self.inputs > 1 else "0"
                v_at = index_c([self.v_element, self.v_step, 1], ["element", row, k])
                w_at = index_c([padded * self.inputs, self.inputs, step], ["element", "o", k])
                loops = (Range("k", self.inputs),) if self.inputs > 1 else ()
                taps = taken_together(Taps(tuple(range(count)), loops, v_at, w_at), plan.together, step)
                passes = (Pass((), taps),)
                long = is_long(passes, count, vectors)
                epilogue = epilogue_statements(None, plan.lanes, count, vectors, plan.lanes, y, [], long=long)
                tile = Tile(plan.lanes, count, vectors, self.v_step, passes, epilogue, ahead=ahead)
                parts.append(Part(opens, tile))
            found.append(Group(header, tuple(parts)))
        return found

    def out_parts(self) -> list[dict[str, Any]]:
        """Vectors of output channels; the results of a row of a patch one by one."""
        plan, width = self.plan, static(self.y.shape[3])
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
                at = ["(p0 + i)", f"(p1 + {column})" if column else "p1"]

                def reference(view: View, name: str, at: list[str] = at) -> Reference:
                    lane = 1 if name == "y" else min(static(view.strides[1]), 1) if view.shape[1] != 1 else 0
                    return Reference(name, self.place(view, at, "o" if lane else "0"), 0, lane)

                extras = [reference(view, name) for view, name in zip(self.extras, self.names[2:], strict=True)]
                y = reference(self.y, "y")
                after = epilogue_statements(self.kind.epilogue, plan.lanes, 1, 1, chunk.lanes, y, extras)
                missing = self.tiles_across * plan.m - width > plan.m - 1 - column
                header = f"if (p1 + {column} < {width}) {{" if missing else "{"
                columns.append({"header": header, "lines": [*after.hoisted, *after.stores]})
            found.append({"header": opens, "columns": columns})
        return found


def _allowed(target: Target) -> list[int]:
    most = target.option("winograd", 4) if target.prefer == Prefer.TIME else 0
    return [m for m in (2, 4) if m <= most]


def _plans(call: Call, target: Target) -> list[Plan]:
    x, w = call.ins[:2]
    channels, inputs = static(w.shape[0]), static(w.shape[1])
    cuts = (NOT_CUT,) if call.workers == 1 else (BY_BLOCKS, IN_PHASES) if x.shape[0] == 1 else (BY_BLOCKS,)
    found = []
    for m in _allowed(target):
        tiles = _tiles(call, m)
        weights = (m + 2) ** 2 * channels * inputs * 4
        each = (m + 2) ** 2 * (channels + inputs) * 4
        most = max(8, max(SMALL_BLOCK, weights // 2) // each)
        x_lanes = best_lanes(static(x.shape[1]), target)
        for cut in cuts:
            workers = call.workers if cut == BY_BLOCKS else 1
            passes = -(-tiles // (most * workers)) * workers
            per_block = -(-tiles // passes)
            draft = Plan(m, per_block, x_lanes, best_lanes(channels, target), 1, 1, cut=cut)
            workers = call.workers if cut == IN_PHASES else 1
            size = best_tile(per_block, channels, inputs, _steps(call, draft)[0] * 4, target, workers, inputs)
            tile = {"points": size.points, "vectors": size.vectors, "together": size.together}
            found.append(replace(draft, **tile))
    return found


def _tiles(call: Call, m: int) -> int:
    """Patches of a picture."""
    height, width = call.outs[0].shape[2:]
    return -(-static(height) // m) * -(-static(width) // m)


def _in_workspace(call: Call, plan: Plan) -> int:
    """Patches whose transforms lie in the workspace at the same time: those of a block, or all."""
    return -(-_tiles(call, plan.m) // plan.per_block) * plan.per_block if plan.cut == IN_PHASES else plan.per_block


def _barrier(call: Call, plan: Plan) -> int:
    """All patches are transformed before they are multiplied."""
    return _tiles(call, plan.m) if plan.cut == IN_PHASES else 0


def _units(call: Call, plan: Plan) -> tuple[int, ...]:
    """What workers share: blocks of patches; or patches to be transformed, and then groups of channels."""
    tiles = _tiles(call, plan.m)
    if plan.cut != IN_PHASES:
        return tuple(min(plan.per_block, tiles - first) for first in range(0, tiles, plan.per_block))
    channels, inputs = static(call.ins[1].shape[0]), static(call.ins[1].shape[1])
    groups = Units()
    Groups(plan.size, channels).headers("o", groups)
    vector = tiles * plan.alpha**2 * (inputs + TRANSFORM)  # cycles for all patches
    patch = plan.alpha**2 * TRANSFORM * -(-inputs // plan.x_lanes)
    return (patch,) * tiles + tuple(vectors * vector for vectors in groups.sizes)


def _steps(call: Call, plan: Plan) -> tuple[int, int]:
    """Floats from patch to patch in the workspace, of inputs and of products."""
    channels, inputs = static(call.ins[1].shape[0]), static(call.ins[1].shape[1])
    return _uneven(-(-inputs // plan.x_lanes) * plan.x_lanes), _uneven(-(-channels // plan.lanes) * plan.lanes)


def _uneven(floats: int) -> int:
    """A distance at which neighbours do not fall on the same places of a cache."""
    lines = -(-floats // LINE)
    return (lines + 1 - lines % 2) * LINE


def _cycles(call: Call, plan: Plan, target: Target) -> float:
    """Of all workers together."""
    channels, inputs = static(call.ins[1].shape[0]), static(call.ins[1].shape[1])
    passes = -(-_tiles(call, plan.m) // plan.per_block) * static(call.outs[0].shape[0])
    weights = plan.alpha**2 * channels * inputs * 4
    product = plan.alpha**2 * row_cycles(plan.size, plan.per_block, channels, inputs, target)
    one = plan.alpha**2 * TRANSFORM * (1 if plan.lanes == 16 else 0.6)
    into = plan.per_block * one * -(-inputs // plan.x_lanes)
    back = plan.per_block * one * -(-channels // plan.lanes)
    also = 0.0
    if plan.cut == BY_BLOCKS:  # every worker reads all weights
        also = max(weights - SECOND_LEVEL, 0) / FROM_OTHERS
    elif plan.cut == IN_PHASES:
        also = plan.per_block * plan.alpha**2 * inputs * 4 / JUST_WRITTEN
    unfair = slowest(_units(call, plan), call.workers, _barrier(call, plan)) if plan.cut else 1.0
    return passes * (max(product, weights / FROM_MEMORY) + into + back + also) * unfair


def _case(name: str, kind: Conv, x: tuple[int, ...], channels: int) -> Case:
    w = (channels, x[1], 3, 3)
    out = TensorType(f32, kind.out_shape(x, w))
    last = (0, 2, 3, 1)
    types = (TensorType(f32, x), TensorType(f32, w))
    case = Case(name, kind, types, (out,), permute={0: last}, permute_outs={0: last}, constant=frozenset({1}))
    return replace(case, error=1e-5)
