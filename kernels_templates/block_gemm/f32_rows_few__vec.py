"""block_gemm in vectors along the columns for a few rows, which are computed at once: what reading the weights takes.

Weights are converted under a mask where they lie in their words, and used for every row; what is multiplied with them
has been made smaller by powers of two for that, in the workspace. The products of a block are added up before its zero
points, times the sum of the block, are taken away and its scale is multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import bool_, f32
from mccompile.codegen.blocks.block_digits import NO_DIGITS, digit_headers, digits_of
from mccompile.codegen.blocks.block_few import few_rows, room
from mccompile.codegen.blocks.block_weights import case_of, cases, kind_of, vector_refusal_of
from mccompile.codegen.blocks.block_words import WordsKernel
from mccompile.codegen.tiles import epilogue_alias
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize, best_lanes, vector_registers
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views
from mccompile.kernels.work import Units
from mccompile.kinds.block_gemm import BlockGemm

MOST_ROWS = 4
MAX_VECTORS = 6
SPARE = 3  # registers for what comes by


class RowsFew(WordsKernel):
    kind = BlockGemm

    def cases(self) -> Sequence[Case]:
        return [case for case in cases() if static(case.ins[0].shape[0]) <= MOST_ROWS]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [block_gemm_few]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = kind_of(call)
        reason = static_views(call) or vector_refusal_of(call, target) or refusals(kind.expressions(), f32, (bool_,))
        if reason:
            return No(reason)
        if static(call.ins[0].shape[0]) > MOST_ROWS:
            return No(f"there are more than {MOST_ROWS} rows")
        size = _size(call, target)
        digits = digits_of(call, size, target) if size.points == 1 else NO_DIGITS
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            align={1: size.lanes * 4},
            constant=frozenset(range(1, kind.fixed)),
            numeric="ulp",
            scratch=room(call, size, digits),
            blocks=(size.lanes, size.points, size.vectors, digits),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        size, (depth, columns) = _size(call, target), map(static, call.ins[1].shape)
        vectors = -(-columns // size.lanes)
        return Cost(depth * vectors * (0.9 + 0.55 * size.points), code=300 + 40 * size.vectors * size.points)

    def headers(self, call: Call) -> frozenset[str]:
        return super().headers(call) | digit_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        units = Units()
        Groups(self.size(call), static(call.outs[0].shape[1])).headers("j", units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        return {"f": few_rows(call, self.size(call), self.parameter_names(call)[1], call.blocks[-1])}


def _size(call: Call, target: Target) -> TileSize:
    """Accumulators of a block and totals of each row, the words of all vectors and their zero points in registers."""
    rows, columns = static(call.ins[0].shape[0]), static(call.ins[1].shape[1])
    lanes = best_lanes(columns, target)
    wanted = -(-columns // (lanes * call.workers))
    each = 2 * rows + 1 + kind_of(call).zeros
    most = max(min((vector_registers(lanes, target) - SPARE) // each, MAX_VECTORS, wanted), 1)
    return TileSize(lanes, rows, min(range(1, most + 1), key=lambda n: (-(-wanted // n) * (n + 0.3), -n)))


def block_gemm_few(rows: int, depth: int, columns: int) -> Case:
    return case_of(f"{rows}_{depth}_{columns}", (min(rows, MOST_ROWS), depth, columns), "u4", 7, True)
