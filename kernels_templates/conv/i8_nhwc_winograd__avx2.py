"""int8 conv 3x3 with stride 1 by Winograd's F(4x4, 3x3) in vectors of AVX2 or AVX-512, exactly: 36 products of 16-bit
integers instead of 144 of bytes, where an instruction adds up two products of words or four of bytes in every lane.

Tiles of 6x6 inputs are transformed in blocks, multiplied with a few vectors of channels, element by element, and
transformed back. The products wrap (codegen/int8/integer_winograd.py): where so many channels are summed up that a sum
does not follow from them, they are cut into runs whose sums are transformed back each. The blob grows by 7 times the
weights, so it is only for those who ask for time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, i8, i32, u8
from mccompile.base.marked import read
from mccompile.base.records import dataclass
from mccompile.codegen.int8.dot_conv import conv_of, is_late
from mccompile.codegen.int8.dot_tiles import (
    MAX_VECTORS,
    NUMBER,
    SHIFT,
    DotEpilogue,
    Place,
    best_dot_tile,
    dot_headers,
    dot_lanes,
    dot_refusal,
    row_cycles,
)
from mccompile.codegen.int8.integer_winograd import ELEMENTS_OF_SIX, TILE, equal_runs, transformed_of_six
from mccompile.codegen.int8.patch_conv import rescaled_case, residual_case, saturated, totals_case
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias, is_constant
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import SECOND_LEVEL, TileSize
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Prefer, Target, View, static_views, viewed
from mccompile.kinds.conv import Conv

WORD = 2  # bytes of what is multiplied
LINE = 64  # bytes of a line of a cache
SMALL_BLOCK = 48 << 10  # bytes of workspace that are never too much; else half of what the weights take
PER_TILE, PER_INPUTS, PER_RESULTS = 150, 200, 190  # cycles of a tile; per vector of it: inputs, results
FROM_MEMORY = 8.0  # bytes per cycle in which weights arrive
FROM_OUTSIDE = 16.0  # the same beside products, of what the second-level cache does not keep


class Winograd(Kernel):
    kind = Conv

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        inside = replace(plain, pads=(0,) * 4, x_zero=False)
        cases = [
            rescaled_case("3x3", plain, (1, 32, 6, 8), (16, 32, 3, 3)),
            rescaled_case("3x3_u8", plain, (1, 32, 5, 7), (48, 32, 3, 3), u8, shift=1),
            rescaled_case("inside", inside, (1, 32, 8, 5), (80, 32, 3, 3), shift=2),
            rescaled_case("one_position", inside, (1, 32, 3, 3), (16, 32, 3, 3), u8, shift=8),
            rescaled_case("one_pixel", plain, (1, 32, 1, 1), (16, 32, 3, 3), u8, shift=8),
            rescaled_case("two_pictures", plain, (2, 96, 4, 3), (32, 96, 3, 3), shift=5),
            rescaled_case("uneven_pads", replace(plain, pads=(2, 0, 1, 5)), (1, 32, 4, 6), (16, 32, 3, 3), shift=3),
            rescaled_case("blocks", plain, (1, 32, 17, 39), (16, 32, 3, 3), shift=6),
            rescaled_case("one_run", plain, (1, 224, 3, 6), (16, 224, 3, 3), u8, shift=8),
            rescaled_case("two_runs", plain, (1, 256, 5, 2), (16, 256, 3, 3), u8, shift=8),
            rescaled_case("runs_of_two", plain, (2, 480, 2, 7), (32, 480, 3, 3), shift=8),
            saturated(residual_case("residual", plain, (1, 32, 4, 4), (16, 32, 3, 3))),
            saturated(residual_case("residual_odd", plain, (2, 32, 5, 3), (32, 32, 3, 3))),
            totals_case("floats", plain, (1, 32, 5, 6), (16, 32, 3, 3)),
        ]
        return [*cases, *(_largest(dtype, signs) for dtype in (i8, u8) for signs in (False, True))]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        if target.prefer != Prefer.TIME or target.option("winograd", TILE) < TILE:
            return No("it is for speed, at the price of a larger blob")
        reason = dot_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype is not i8 or kind.w_zero or not is_constant(w):
            return No("operands are not 8-bit integers, or weights have zero points or are computed")
        if w.shape[2:] != (3, 3) or set((*kind.strides, *kind.dilations, kind.group)) != {1} or min(kind.pads) < 0:
            return No("it is for 3x3 windows with stride 1 and one group")
        if is_late(call) or 0 in (*x.shape, *y.shape):
            return No("the zero point of x is computed, or a tensor is empty")
        lanes = dot_lanes(target)
        if static(w.shape[1]) % (2 * lanes) or static(w.shape[0]) % lanes:
            return No(f"channels are not multiples of {2 * lanes} and {lanes}")
        epilogue = _epilogue(call)
        if not epilogue.in_vectors or x.strides[1] != 1:
            return No(epilogue.refusal or "channels of x are not contiguous")
        plan = _plan(call, target)
        return Needs(
            constant=frozenset({1, *range(2, kind.fixed)}) | epilogue.constants,
            align={1: NUMBER * lanes},
            alias=epilogue_alias(call, kind.fixed),
            scratch=plan.v_bytes + plan.m_bytes + plan.inputs,
            scratch_align=LINE,
            blocks=(lanes, plan.size.points, plan.size.vectors, plan.block),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        plan = _plan(call, target)
        weights = ELEMENTS_OF_SIX * plan.inputs * plan.outs
        steps = plan.inputs // 2
        products = ELEMENTS_OF_SIX * row_cycles(plan.size, plan.block, plan.outs, steps)
        transforms = plan.inputs // (2 * plan.size.lanes) * PER_INPUTS
        transforms += plan.outs // plan.size.lanes * (PER_RESULTS + (plan.runs - 1) * PER_RESULTS // 2)
        products += max(WORD * weights - SECOND_LEVEL, 0) / FROM_OUTSIDE
        block = max(products, WORD * weights / FROM_MEMORY) + plan.block * (transforms + PER_TILE)
        blocks = -(-_tiles(call.outs[0]) // plan.block) * static(call.outs[0].shape[0])
        return Cost(blocks * block, code=4000, blob=WORD * weights - 9 * plan.inputs * plan.outs)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        kind, epilogue, plan = conv_of(call), _epilogue(call), _plan_of(call)
        w = viewed(call.ins[1], constants[1])
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if kind.x_zero else 0
        sums = w.astype(np.int64).sum((1, 2, 3))
        begins = epilogue.begins(constants) + (_middle(call.ins[0].buffer.dtype) - zero) * sums
        # [element, step, out, input of two]
        turned = transformed_of_six(w).reshape(plan.outs, -1, 2, ELEMENTS_OF_SIX).transpose(3, 1, 0, 2)
        tiles = [
            turned[:, :, first : first + vectors * plan.size.lanes].reshape(-1)
            for begin, end, vectors, _ in plan.groups.parts()
            for first in range(begin, end, vectors * plan.size.lanes)
        ]
        weights = np.concatenate(tiles).astype("<i2").view(np.int8)
        packed = np.concatenate([begins.astype(np.int32).view(np.int8), weights])
        return {1: packed, **epilogue.pack(constants, _one(call))}

    def packing(self, call: Call) -> Mapping[int, str]:
        epilogue, (lanes, _, vectors, _) = _epilogue(call), call.blocks
        more = f"_{_middle(call.ins[0].buffer.dtype)}" + "_bias" * (epilogue.bias is not None)
        return {1: f"dot_winograd_{vectors}x{lanes}{more}", **epilogue.packing(_one(call))}

    def label(self, call: Call) -> str:
        x, w = call.ins[:2]
        return f"winograd4_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return dot_headers(call) | {"mcc_dot_winograd.h"}

    def units(self, call: Call) -> Sequence[int]:
        """Blocks of tiles."""
        blocks = -(-_tiles(call.outs[0]) // call.blocks[3])
        return (1,) * blocks if call.outs[0].shape[0] == 1 else ()

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y, plan = conv_of(call), call.ins[0], call.outs[0], _plan_of(call)
        names, lanes = self.parameter_names(call)[1], plan.size.lanes
        batch = "n" if x.shape[0] != 1 else "0"
        height, width = y.type.static_shape[2:]

        def place(view: View, name: str) -> Place:
            sizes = zip(view.shape, view.strides, strict=True)
            first, channel, *others = (0 if size == 1 else static(stride) for size, stride in sizes)
            index = index_c([first, *others, channel], [batch, "p0", "p1", "o"])
            return Place(name, view, index, 0, static(view.strides[1]))

        more = zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)
        places = [place(view, name) for view, name in more]
        hoisted, (results,) = _epilogue(call).statements(_one(call), 1, 1, lanes, place(y, "y"), places)
        run = "run" if plan.runs > 1 else "0"
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "of": f"i32x{lanes}",
            "lanes": lanes,
            "zero": "x_zero[0]" if kind.x_zero else "0",
            "batch": static(x.shape[0]) if x.shape[0] != 1 else 0,
            "picture": index_c([1, static(x.strides[0])], ["x", batch]),
            "x_height": static(x.shape[2]),
            "x_width": static(x.shape[3]),
            "x_row": static(x.strides[2]),
            "x_pixel": static(x.strides[3]),
            "pads": kind.pads[:2],
            "tiles": _tiles(y),
            "across": -(-width // TILE),
            "height": height,
            "width": width,
            "block": plan.block,
            "first": f"begin * {plan.block}" if call.workers > 1 else "0",
            "end": f" && block < end * {plan.block}" if call.workers > 1 else "",
            "inputs": plan.inputs,
            "outs": plan.outs,
            "runs": plan.runs,
            "run": plan.inputs // plan.runs,
            "v_element": plan.v_element,
            "m_element": plan.m_element,
            "x_at": index_c([plan.v_element, plan.inputs // plan.runs], ["element", run]),
            "to_at": index_c([ELEMENTS_OF_SIX * plan.m_element, plan.m_element], [run, "element"]),
            "groups": [
                _group(plan, header, vectors, run)
                for header, (_, _, vectors, _) in zip(plan.groups.headers("first"), plan.groups.parts(), strict=True)
            ],
            "pieces": _pieces(plan),
            "hoisted": hoisted,
            "results": results,
            "unread": [
                n
                for n in names
                if n not in {"x", "w", "x_zero"} and n not in read(" ".join((*hoisted, *results))).names
            ],
        }


@dataclass(frozen=True)
class _Plan:
    """All sizes of one call. `block`: tiles whose transforms wait in the workspace."""

    size: TileSize
    block: int
    inputs: int
    outs: int

    @property
    def runs(self) -> int:
        return equal_runs(self.inputs)

    @property
    def groups(self) -> Groups:
        return Groups(self.size, self.outs)

    @property
    def v_element(self) -> int:
        """Words from an element of transformed inputs to the next."""
        return _uneven(self.block * self.inputs * WORD) // WORD

    @property
    def m_element(self) -> int:
        """Sums from an element of products to the next."""
        return _uneven(self.block * min(self.size.channels, self.outs) * NUMBER) // NUMBER

    @property
    def v_bytes(self) -> int:
        return ELEMENTS_OF_SIX * self.v_element * WORD

    @property
    def m_bytes(self) -> int:
        return self.runs * ELEMENTS_OF_SIX * self.m_element * NUMBER


def _uneven(size: int) -> int:
    """Bytes at whose distance neighbours do not fall on the same places of a cache."""
    return (-(-size // LINE) | 1) * LINE


def _plan(call: Call, target: Target) -> _Plan:
    outs, inputs = (static(size) for size in call.ins[1].shape[:2])
    lanes, runs = dot_lanes(target), equal_runs(inputs)
    each = ELEMENTS_OF_SIX * (WORD * inputs + NUMBER * runs * min(MAX_VECTORS * lanes, outs))
    most = max(8, max(SMALL_BLOCK, ELEMENTS_OF_SIX * inputs * outs * WORD // 2) // each)
    tiles = _tiles(call.outs[0])
    passes = -(-tiles // (most * call.workers)) * call.workers
    block = -(-tiles // passes)
    return _Plan(best_dot_tile(block, outs, inputs // runs // 2, target), block, inputs, outs)


def _plan_of(call: Call) -> _Plan:
    outs, inputs = (static(size) for size in call.ins[1].shape[:2])
    return _Plan(TileSize(*call.blocks[:3]), call.blocks[3], inputs, outs)


def _group(plan: _Plan, header: str, vectors: int, run: str) -> dict[str, Any]:
    """Channels that are computed together, from the channel `first` on."""
    width = vectors * plan.size.lanes
    strides = [ELEMENTS_OF_SIX * plan.inputs, plan.inputs * width, plan.inputs // plan.runs * width]
    return {
        "header": header,
        "vectors": vectors,
        "width": width,
        "weights": index_c(strides, ["first", "element", run]),
        "sums": index_c([ELEMENTS_OF_SIX * plan.m_element, width, 1], [run, "t", "o - first"]),
    }


def _pieces(plan: _Plan) -> list[tuple[str, int]]:
    """Loops over the tiles of a block, and how many are multiplied with the same weights."""
    points, block = plan.size.points, plan.block
    whole = block // points * points
    found = [(Range("t", whole, step=points).header, points)] if whole else []
    return [*found, (f"{{\nconst mcc_index t = {whole};", block - whole)] if whole < block else found


def _one(call: Call) -> TileSize:
    """Results are made vector by vector."""
    return TileSize(call.blocks[0], 1, 1)


def _epilogue(call: Call) -> DotEpilogue:
    kind = conv_of(call)
    return DotEpilogue(call, kind.fixed, 1, kind.epilogue)


def _tiles(y: View) -> int:
    """Of a picture."""
    height, width = y.type.static_shape[2:]
    return -(-height // TILE) * -(-width // TILE)


def _middle(dtype: DType) -> int:
    """What is taken off inputs, so that they have 8 bits with a sign."""
    return SHIFT if dtype is u8 else 0


def _largest(dtype: DType, signs: bool) -> Case:
    """Products of the largest size only, with one sign, or with those that sum up in the transforms."""
    chance, plain = np.random.default_rng(signs), Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
    case = rescaled_case(f"largest_{dtype}_{signs}", plain, (1, 224, 6, 6), (16, 224, 3, 3), dtype, shift=8)
    x, w = np.full(case.ins[0].static_shape, dtype.low), np.full(case.ins[1].static_shape, -128)
    if signs:
        x[..., chance.integers(0, 2, x.shape[2:]) == 1] = dtype.high
        w[..., chance.integers(0, 2, w.shape[2:]) == 1] = 127
    zero = np.array(dtype.high if signs else dtype.low)
    values = {0: x.astype(dtype.numpy), 1: w.astype(np.int8), 2: zero.astype(dtype.numpy)}
    return replace(case, values={**case.values, **values})
