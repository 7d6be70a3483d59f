"""How a convolution goes by Winograd's method: tiles, blocks of patches, the division of the work, and what it costs.

Invariant: a plan is the `blocks` of its call, from which all its sizes follow.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dims import static
from ...base.dtypes import DType, f16
from ...base.records import dataclass
from ...base.summation_error import allowed
from ...kernels.api import terms
from ...kernels.work import Units, slowest
from ...kinds.conv import Conv
from ...program.ir import Call
from ...targets.api import Prefer, Target
from .vector_groups import Groups
from .vector_runs import HALF_RUN, cutting, longest_run
from .vector_tiles import (
    NARROW_CORE,
    SECOND_LEVEL,
    TileSize,
    best_lanes,
    best_tile,
    computed_in,
    row_cycles,
)
from .winograd import HALF_TERMS, rounding
from .winograd_geometry import Geometry, geometry

NOT_CUT, BY_BLOCKS, IN_PHASES = range(3)  # how the work is cut for several workers
SMALL_BLOCK = 48 << 10  # bytes of workspace that are never too much; else half of what the weights take
LINE = 64  # bytes of a line of a cache
TRANSFORM = 5  # cycles per vector of an element of a patch
ONE_AT_A_TIME = 16  # of those where a cycle begins one instruction, and few vectors fit registers
TOTAL = 4  # instructions that add a vector of 16-bit sums to its total
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


def largest_tile(target: Target) -> int:
    return target.option("winograd", 4) if target.prefer == Prefer.TIME else 0


def allowed_tiles(call: Call, target: Target) -> list[int]:
    """In 16 bits, F(4x4,3x3) would be off by ten times as much as products without a transform."""
    most = largest_tile(target)
    if computed_in(call) is f16:
        return [2] if most >= 2 else []
    error = allowed(call.of(Conv).rounding, terms(call))
    return [m for m in (2, 4) if m <= most and rounding_of(call, m) <= error]


def rounding_of(call: Call, m: int) -> float:
    shape = shape_of(call)
    return rounding(
        m, 2 if shape.rows else 1, static(call.ins[1].shape[1]) * shape.frames.kernel, call.of(Conv).rounding
    )


def size_of(dtype: DType) -> int:
    return dtype.bits // 8


def shape_of(call: Call) -> Geometry:
    found = geometry(call)
    assert found is not None
    return found


def best_plan(call: Call, target: Target) -> Plan:
    return min(_plans(call, target), key=lambda plan: plan_cycles(call, plan, target))


def _plans(call: Call, target: Target) -> list[Plan]:
    x, w = call.ins[:2]
    channels, inputs, dtype = static(w.shape[0]), static(w.shape[1]), computed_in(call)
    bytes_each, shape = size_of(dtype), shape_of(call)
    frames, one = shape.frames, x.shape[0] == 1 and shape.apart < 2
    cuts = (NOT_CUT,) if call.workers == 1 else (BY_BLOCKS, IN_PHASES) if one else (BY_BLOCKS,)
    found = []
    for m in allowed_tiles(call, target):
        tiles = shape.patches(m)
        weights = shape.elements(m) * frames.kernel * channels * inputs * bytes_each
        each = shape.elements(m) * (channels * frames.out + inputs * frames.size) * bytes_each
        most = max(-(-8 // frames.out), max(SMALL_BLOCK, weights // 2) // each)
        x_lanes = best_lanes(static(x.shape[1]), target, dtype)
        for cut in cuts:
            workers = call.workers if cut == BY_BLOCKS else 1
            passes = -(-tiles // (most * workers)) * workers
            per_block = -(-tiles // passes)
            draft = Plan(m, per_block, x_lanes, best_lanes(channels, target, dtype), 1, 1, cut=cut)
            workers = call.workers if cut == IN_PHASES else 1
            step = steps(call, draft)[0] * bytes_each
            size = best_tile(per_block, channels, inputs * frames.kernel, step, target, workers, inputs, dtype)
            tile = {"points": size.points, "vectors": size.vectors, "together": size.together}
            found.append(replace(draft, **tile))
    return found


def in_workspace(call: Call, plan: Plan) -> tuple[int, int]:
    """Patches of a frame whose transforms, and those whose products lie in the workspace at the same time: those of a
    block, or all."""
    blocks = -(-shape_of(call).patches(plan.m) // plan.per_block) if plan.cut == IN_PHASES else 1
    return blocks * plan.per_block, plan.per_block


def phase_barrier(call: Call, plan: Plan) -> int:
    """All patches are transformed before they are multiplied."""
    return shape_of(call).patches(plan.m) if plan.cut == IN_PHASES else 0


def work_units(call: Call, plan: Plan) -> tuple[int, ...]:
    """What workers share: blocks of patches; or patches to be transformed, and then groups of channels."""
    shape = shape_of(call)
    tiles, elements, frames = shape.patches(plan.m), shape.elements(plan.m), shape.frames
    if plan.cut != IN_PHASES:
        return tuple(min(plan.per_block, tiles - first) for first in range(0, tiles, plan.per_block))
    channels, inputs = static(call.ins[1].shape[0]), static(call.ins[1].shape[1])
    groups = Units()
    Groups(plan.size, channels).headers("o", groups)
    vector = tiles * frames.out * elements * (inputs * frames.kernel + TRANSFORM)  # cycles for all patches
    patch = frames.size * elements * TRANSFORM * -(-inputs // plan.x_lanes)
    return (patch,) * tiles + tuple(vectors * vector for vectors in groups.sizes)


def steps(call: Call, plan: Plan) -> tuple[int, int]:
    """Numbers from patch to patch in the workspace, of inputs and of products."""
    wide = zip((call.ins[1].shape[1], call.ins[1].shape[0]), (plan.x_lanes, plan.lanes), strict=True)
    inputs, products = (uneven(-(-static(n) // lanes) * lanes, computed_in(call)) for n, lanes in wide)
    return inputs, products


def uneven(numbers: int, dtype: DType) -> int:
    """A distance at which neighbours do not fall on the same places of a cache."""
    line = LINE // size_of(dtype)
    lines = -(-numbers // line)
    return (lines + 1 - lines % 2) * line


def plan_cycles(call: Call, plan: Plan, target: Target) -> float:
    """Of all workers together."""
    channels, inputs, dtype = static(call.ins[1].shape[0]), static(call.ins[1].shape[1]), computed_in(call)
    shape = shape_of(call)
    elements, frames = shape.elements(plan.m), shape.frames
    pictures = static(call.outs[0].shape[0]) * max(shape.apart, 1)
    passes = -(-shape.patches(plan.m) // plan.per_block) * pictures
    weights = elements * frames.kernel * channels * inputs * size_of(dtype)
    row = row_cycles(plan.size, plan.per_block, channels, inputs * frames.kernel, target) * frames.out
    if longest_run(inputs * HALF_TERMS, dtype):
        sums = plan.per_block * -(-channels // plan.lanes) * -(-inputs * HALF_TERMS // HALF_RUN)
        row += sums * TOTAL / target.machine.issue
    product = elements * row * cutting(inputs * frames.kernel, call.of(Conv).rounding)
    narrow = target.machine.issue < NARROW_CORE
    one = elements * (ONE_AT_A_TIME if narrow else TRANSFORM if plan.lanes == 16 else 0.6 * TRANSFORM)
    into = plan.per_block * frames.size * one * -(-inputs // plan.x_lanes)
    back = plan.per_block * frames.out * one * -(-channels // plan.lanes)
    also = 0.0
    if plan.cut == BY_BLOCKS:  # every worker reads all weights
        also = max(weights - SECOND_LEVEL, 0) / FROM_OTHERS
    elif plan.cut == IN_PHASES:
        also = plan.per_block * frames.size * elements * inputs * size_of(dtype) / JUST_WRITTEN
    unfair = slowest(work_units(call, plan), call.workers, phase_barrier(call, plan)) if plan.cut else 1.0
    return passes * (max(product, weights / FROM_MEMORY) + into + back + also) * unfair
