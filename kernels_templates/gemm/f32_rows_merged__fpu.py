"""gemm of floats with a constant matrix, for cores whose FPU multiplies and adds one pair at a time: tiles of two
rows x up to eight columns, whose sums stay in registers, with four numbers of a row or the weights of a step by one
load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f32, i8
from mccompile.base.records import dataclass
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.fpu import (
    BYTE,
    CALL,
    best_lanes,
    filled_c,
    float_refusal,
    function_c,
    padded_lanes,
    portable,
)
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.tiles import Range, Tile, cut_sum, epilogue_alias, is_constant, parts
from mccompile.expr.ir import operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types, viewed
from mccompile.kernels.column_tiles import ColumnTiles
from mccompile.kernels.work import Units
from mccompile.kinds.gemm import Gemm


@dataclass(frozen=True)
class Block:
    """What the template prints for some of the rows."""

    header: str
    tile: Tile
    lines: Sequence[str]
    store: str


class MergedRows(Kernel):
    kind = Gemm
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = Gemm(f32)
        return [
            _case("vector", plain, (1, 40), (40, 48)),
            _case("eights", plain, (1, 7), (7, 24)),
            _case("rows", plain, (3, 9), (9, 16)),
            _case("many_rows", plain, (6, 10), (10, 8), permute={1: (1, 0)}),
            _case("long_sum", plain, (2, 1501), (1501, 16)),
            _case("one_term", plain, (2, 1), (1, 8)),
            _case("transposed", plain, (1, 17), (17, 16), permute={1: (1, 0)}),
            *(_case(f"to_{n}", plain, (3, 11), (11, n)) for n in (1, 2, 3, 4, 5, 6, 7, 10, 57)),
            _bytes(_case("bytes", plain, (3, 40), (40, 13))),
            _case("epilogue_of_11", replace(plain, epilogue=RELU_OF_SUM), (2, 6), (6, 11), extras=1),
            _case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (2, 6), (6, 32), extras=1),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = call.of(Gemm), call.ins[:2], call.outs[0]
        reason = supports_types(call) or static_views(call) or float_refusal(call, kind.fixed, kind.accumulator)
        if reason:
            return No(reason)
        if not is_constant(b) or upper(y.type.count) == 0 or 0 in b.shape:
            return No("the matrix is computed, or the result is empty")
        if any(dim != 1 for dim in y.shape[:-2]):
            return No("there are batches")
        if a.shape[-1] != 1 and a.strides[-1] != 1:
            return No("elements of a row are not contiguous")
        return Needs(constant=frozenset({1}), align={1: 4}, alias=epilogue_alias(call, kind.fixed), numeric="ulp")

    def cost(self, call: Call, target: Target) -> Cost:
        rows, depth, columns = (static(dim) for dim in (*call.ins[0].shape[-2:], call.ins[1].shape[-1]))
        lanes, points = best_lanes(columns), min(rows, 2)
        step = points * lanes + 1.5 + points / 4 + (BYTE * lanes if call.ins[1].buffer.dtype is i8 else 0)
        tiles = -(-rows // points) * -(-columns // lanes)
        time = tiles * (CALL + depth * step) / portable(call)
        return Cost(time * target.machine.mac, code=400)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        b = viewed(call.ins[1], constants[1])
        return {1: padded_lanes(b.reshape(-1, *b.shape[-2:])[0], best_lanes(b.shape[-1]))}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"rows_of_{best_lanes(static(call.ins[1].shape[-1]))}_columns_padded"}

    def column_tiles(self, call: Call) -> Mapping[int, Sequence[ColumnTiles]]:
        depth, columns = map(static, call.ins[1].shape[-2:])
        return {1: [ColumnTiles(0, columns, best_lanes(columns), depth)]}

    def units(self, call: Call) -> Sequence[int]:
        return self._columns(call)[1].sizes

    def _columns(self, call: Call) -> tuple[str, Units]:
        """C that opens the loop over tiles of columns, as units of work."""
        columns, units = static(call.outs[0].shape[-1]), Units()
        lanes = best_lanes(columns)
        header = units.loop("j", 0, lanes, -(-columns // lanes), 1)
        return (header if call.workers > 1 else Range("j", columns, step=lanes).header), units

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def label(self, call: Call) -> str:
        a, b = call.ins[:2]
        return "gemm_" + "x".join(map(size_name, (a.shape[-2], a.shape[-1], b.shape[-1])))

    def context(self, call: Call) -> Mapping[str, Any]:
        a, y = call.ins[0], call.outs[0]
        results, names = self.parameter_names(call)
        rows, depth, columns = static(y.shape[-2]), static(a.shape[-1]), static(y.shape[-1])
        lanes = best_lanes(columns)
        wide = lanes, filled_c("j", columns, lanes)
        row = "i" if rows > 1 else "0"
        around, inside = cut_sum([Range("k", depth)], f32)
        covered = parts("i", rows, 2) if rows > 1 else [("{", 1)]
        return {
            "columns": self._columns(call)[0],
            "blocks": [
                Block(header, *_stored(call, results[0], names, row, Tile(points, *wide))) for header, points in covered
            ],
            "around": around,
            "inside": inside,
            "a": f"{names[0]} + {index_c([a.strides[-2], 1], [row, 'k'])}",
            "row": index_c([1], [str(static(a.strides[-2]))]),
            "b": f"{names[1]} + {index_c([depth, lanes], ['j', 'k'])}",
            "sums_of": function_c(call),
        }


def _stored(call: Call, result: str, names: Sequence[str], row: str, tile: Tile) -> tuple[Tile, Sequence[str], str]:
    """The tile, and C for one of its results, at `lane` and `point`."""
    kind, y = call.of(Gemm), call.outs[0]
    counters = [row, "point" if tile.points > 1 else "0", "j", "lane" if tile.lanes > 1 else "0"]

    def at(strides: Shape) -> str:
        down, along = strides[-2:]
        return index_c([down, down, along, along], counters)

    extras = zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)
    loads = [load_c(view.buffer.dtype, name, at(view.strides)) for view, name in extras]
    lines, value = to_statements(kind.epilogue or operand(0, f32), ["total", *loads], local="v")
    return tile, lines, store_c(y.buffer.dtype, result, at(y.strides), value)


def _case(name: str, kind: Gemm, a: Shape, b: Shape, **more: Any) -> Case:
    return Case.of_one_type(name, kind, (a, b), (*a[:-1], b[-1]), constant=True, **more)


def _bytes(case: Case) -> Case:
    return replace(case, ins=(case.ins[0], TensorType(i8, case.ins[1].shape)))
