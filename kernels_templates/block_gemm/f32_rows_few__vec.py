"""block_gemm in vectors along the columns for a few rows, which are computed at once: what reading the weights takes.

Weights are converted under a mask where they lie in their words, and used for every row; what is multiplied with them
has been made smaller by powers of two for that, in the workspace. The products of a block are added up before its zero
points, times the sum of the block, are taken away and its scale is multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import bool_, f32
from mccompile.codegen.blocks.block_weights import case_of, cases, kind_of, vector_refusal_of
from mccompile.codegen.blocks.block_words import Words, WordsKernel
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Epilogue, Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize, best_lanes, vector_registers
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views
from mccompile.kernels.work import Units
from mccompile.kinds.block_gemm import BlockGemm

MOST_ROWS = 4
MAX_VECTORS = 6
SPARE = 3  # registers for what comes by


@dataclass(frozen=True)
class Group:
    """Tiles along the columns."""

    header: str
    vectors: int
    epilogue: Epilogue
    words: list[str]  # declarations of the words of its vectors


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
        words = Words(call, size)
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            align={1: size.lanes * 4},
            constant=frozenset(range(1, kind.fixed)),
            numeric="ulp",
            scratch=size.points * (words.words * words.per_word + words.blocks) * 4,
            blocks=(size.lanes, size.points, size.vectors),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        size, (depth, columns) = _size(call, target), map(static, call.ins[1].shape)
        vectors = -(-columns // size.lanes)
        return Cost(depth * vectors * (0.9 + 0.55 * size.points), code=300 + 40 * size.vectors * size.points)

    def units(self, call: Call) -> Sequence[int]:
        units, size = Units(), TileSize(*call.blocks)
        Groups(size, static(call.outs[0].shape[1])).headers("j", units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        size = TileSize(*call.blocks)
        words = Words(call, size)
        headers = words.groups.headers("j", Units() if call.workers > 1 else None)
        names = self.parameter_names(call)[1]
        parts = zip(headers, words.groups.parts(), strict=True)
        down, along = (static(stride) for stride in call.ins[0].strides)
        return {
            "words": words,
            "of": f"f32x{size.lanes}",
            "rows": size.points,
            "groups": [_group(call, names, size, header, vectors, last) for header, (_, _, vectors, last) in parts],
            "along": along,
            "down": down,
            "elements": words.words * words.per_word,
            "first_of_rest": (words.words - words.stretches[-1].all_words) * words.per_word,
        }


def _group(call: Call, names: Sequence[str], size: TileSize, header: str, vectors: int, last: int) -> Group:
    def reference(view: Any, name: str) -> Reference:
        down, across = (static(stride) for stride in view.strides)
        return Reference(
            name, index_c([across], ["j"]), down if size.points > 1 else 0, across, stored=view.buffer.dtype
        )

    kind = kind_of(call)
    extras = [reference(view, name) for view, name in list(zip(call.ins, names, strict=True))[kind.fixed :]]
    of = (size.lanes, size.points, vectors, last)
    return Group(
        header,
        vectors,
        epilogue_statements(kind.epilogue, *of, reference(call.outs[0], "y"), extras, sums=True, long=True),
        [f"mcc_i32x{size.lanes} u{vector}" for vector in range(vectors)],
    )


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
