"""gemm of two int8 matrices that are computed, and of several: each matrix b is packed into the workspace, then the
tiles are those of constant weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8, u8
from mccompile.base.marked import named, read
from mccompile.codegen.int8.batch_cases import batches_case, with_floats
from mccompile.codegen.int8.dot_forms import form_in, form_of
from mccompile.codegen.int8.dot_products import (
    epilogue_of_products,
    has_sums,
    late_zero,
    product_groups,
    products_refusal,
)
from mccompile.codegen.int8.dot_tiles import NUMBER, best_dot_tile, dot_headers, row_cycles, shifted
from mccompile.codegen.int8.zero_points import is_one_number
from mccompile.codegen.loops import Nest, index_c, nest
from mccompile.codegen.tiles import Range, epilogue_alias, is_constant
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kernels.work import Units
from mccompile.kinds.gemm import Gemm

WHOLE, SINGLY = 0.5, 3.0  # cycles to pack a byte: of columns side by side or by steps, and one at a time


class BatchDots(Kernel):
    kind = Gemm

    def cases(self) -> Sequence[Case]:
        sizes = [(1, 1, 1), (3, 7, 15), (7, 2, 16), (15, 16, 17), (5, 31, 66), (8, 32, 64)]
        return [
            *(batches_case(f"{rows}x{depth}x{columns}", rows, depth, columns) for rows, depth, columns in sizes),
            batches_case("transposed", 6, 32, 33, turned=True),
            *(
                batches_case(f"u8_{d}x{n}", 5, d, n, u8, u8, zeros="one")
                for d, n in ((17, 64), (18, 16), (19, 50), (1, 5))
            ),
            batches_case("u8_transposed", 5, 22, 40, u8, u8, zeros="one", turned=True),
            batches_case("transposed_odd", 6, 18, 9, turned=True),
            batches_case("heads", 5, 16, 20, heads=True),
            batches_case("zeros_one_by_one", 1, 24, 1, zeros="one"),
            *(batches_case(f"{a}_by_{b}", 9, 24, 37, a, b) for a in (i8, u8) for b in (i8, u8)),
            *(batches_case(f"zeros_{a}_{b}", 9, 24, 67, a, b, zeros="one") for a in (i8, u8) for b in (i8, u8)),
            with_floats(batches_case("floats", 9, 24, 19)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = call.of(Gemm), call.ins[:2], call.outs[0]
        reason = products_refusal(call, target)
        if reason:
            return No(reason)
        if is_constant(b) and all(size == 1 for size in y.shape[:-2]):
            return No("weights are constant")
        if not all(is_one_number(zero) for zero in call.ins[2 : kind.fixed]):
            return No("there are several zero points")
        rows, columns = y.type.static_shape[-2:]
        form = form_of(target)
        size = best_dot_tile(rows, columns, _steps(call, form.depth), target)
        rest = NUMBER * rows if has_sums(call) else 0
        return Needs(
            constant=frozenset(epilogue_of_products(call).tables),
            scratch=_packed_bytes(call, size, form.depth) + rest,
            slack={0: -static(a.shape[-1]) % form.depth},
            alias=epilogue_alias(call, kind.fixed),
            blocks=(size.lanes, size.points, size.vectors, shifted(a.buffer.dtype, target), form.number),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        *batches, rows, columns = call.outs[0].type.static_shape
        form = form_of(target)
        steps = _steps(call, form.depth)
        size = best_dot_tile(rows, columns, steps, target)
        cycles = row_cycles(size, rows, columns, steps, form) + _packing(call, target) * steps * form.depth * columns
        if not epilogue_of_products(call).in_vectors:
            cycles += 4 * rows * columns
        return Cost(cycles * int(np.prod(batches)), code=size.points * size.vectors * 40 + 200)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        return epilogue_of_products(call).pack(constants, TileSize(*call.blocks[:3]))

    def packing(self, call: Call) -> Mapping[int, str]:
        return epilogue_of_products(call).packing(TileSize(*call.blocks[:3]))

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return "_".join(["gemm", *map(str, y.shape[:-2]), f"{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"])

    def headers(self, call: Call) -> frozenset[str]:
        return dot_headers(call) | {"mcc_dot_pack.h"}

    def units(self, call: Call) -> Sequence[int]:
        """Batches, where one loop runs over all."""
        units, loops = Units(), _batches(call).loops
        if len(loops) == 1:
            units.loop(loops[0].counter, 0, 1, static(loops[0].count), 1)
        return units.sizes

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        names, a = self.parameter_names(call)[1], call.ins[0]
        size, batches, sums = TileSize(*call.blocks[:3]), _batches(call), has_sums(call)
        groups = product_groups(call, names, named("packed"), base=batches.index)
        packs = _packs(call, size, batches, names)
        tiles = [tile for _, inner in groups for _, tile in inner]
        lines = " ".join(tile.lines for tile in tiles)
        lines += "".join(arguments for _, arguments in packs) + (late_zero(call) if sums else "")
        units, counters = Units(), [loop.counter for loop in batches.loops]
        return {
            "batches": [
                units.loop(loop.counter, 0, 1, static(loop.count), 1)
                if call.workers > 1
                else Range.over(loop.counter, loop.count).header
                for loop in batches.loops
            ],
            "packs": packs,
            "groups": groups,
            "scope": [*counters, "i", "j", "const int8_t *packed", "const int32_t *rest"],
            "sums": sums,
            "rest_at": _packed_bytes(call, size, form_in(call).depth),
            "rows": static(call.outs[0].shape[-2]),
            "sum": f"mcc_sum_{a.buffer.dtype}_i32x{size.lanes}",
            "row": index_c([1, 1, static(a.strides[-2])], ["a", batches.index(1), "i"]),
            "depth": static(a.shape[-1]),
            "a_zero": late_zero(call),
            "unread": [name for name in names[2:] if name not in read(lines).names],
        }


def _steps(call: Call, depth: int) -> int:
    return -(-static(call.ins[0].shape[-1]) // depth)


def _packed_bytes(call: Call, size: TileSize, depth: int) -> int:
    """Of a matrix, a multiple of what sums of rows need to lie behind it."""
    columns = Groups(size, static(call.outs[0].shape[-1])).padded
    return columns * (_steps(call, depth) * depth + NUMBER)


def _packing(call: Call, target: Target) -> float:
    """Cycles for a byte, as mcc_dot_pack copies it."""
    down, along = (static(stride) for stride in call.ins[1].strides[-2:])
    form = form_of(target)
    by_steps = not form.by_elements and (down == 1 or (along == 1 and form.depth == 4))
    return WHOLE if by_steps else SINGLY


def _batches(call: Call) -> Nest:
    return nest(call.outs[0].shape[:-2], [call.outs[0], *call.ins], prefix="n")


def _packs(call: Call, size: TileSize, batches: Nest, names: Sequence[str]) -> list[tuple[str, str]]:
    """Loops over groups of columns, and what packs one."""
    b, columns = call.ins[1], static(call.outs[0].shape[-1])
    kind, epilogue, form = call.of(Gemm), epilogue_of_products(call), form_in(call)
    depth = static(b.shape[-2])
    down, along = (static(stride) for stride in b.strides[-2:])
    shift = call.blocks[3]
    zero = f"{late_zero(call)} + {shift}" if kind.a_zero else str(shift)
    bias, bias_step = "NULL", 0
    if epilogue.bias is not None:
        view = call.ins[epilogue.bias]
        bias_step = static(view.strides[-1])
        bias = index_c([1, bias_step], [names[epilogue.bias], "j"])
    group = index_c([1, form.depth * _steps(call, form.depth) + NUMBER], [named("packed"), "j"])
    groups, found = Groups(size, columns), []
    for header, (_, end, vectors, last) in zip(groups.headers("j"), groups.parts(), strict=True):
        width = vectors * size.lanes
        there = width if end <= columns else width - size.lanes + last
        zipped = size.lanes if epilogue.in_fours(vectors) else 0
        flip = "0x80u" if b.buffer.dtype is u8 else "0u"
        arguments = [group, index_c([1, 1, along], [names[1], batches.index(2), "j"]), width, there, depth, down, along]
        arguments += [form.depth, int(form.by_elements), zipped, flip, int(zero != "0"), zero, bias, bias_step]
        found.append((header, ", ".join(map(str, arguments))))
    return found
