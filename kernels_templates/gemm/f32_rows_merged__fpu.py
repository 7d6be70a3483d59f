"""gemm of floats with a constant matrix, for cores whose FPU multiplies and adds one pair at a time: tiles of two
rows x eight columns, whose sums stay in registers, with four numbers of a row or eight weights by one load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f32
from mccompile.base.tensor import Shape
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.packed_lanes import pack_rows
from mccompile.codegen.tiles import Range, Tile, cut_sum, epilogue_alias, is_constant, parts
from mccompile.expr.ir import operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types, viewed
from mccompile.kinds.gemm import Gemm

LANES = 8  # columns of a tile
QUICKER = 0.5  # than the portable kernel


@dataclass(frozen=True)
class Block:
    """What the template prints for some of the rows."""

    header: str
    tile: Tile
    lines: Sequence[str]
    store: str


class MergedRows(Kernel):
    kind = Gemm

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
            _case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (2, 6), (6, 32), extras=1),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = call.of(Gemm), call.ins[:2], call.outs[0]
        reason = supports_types(call) or static_views(call)
        if reason:
            return No(reason)
        if kind.accumulator is not f32 or kind.fixed != 2 or any(v.buffer.dtype is not f32 for v in (a, b)):
            return No("operands are not 32-bit floats")
        if not is_constant(b) or upper(y.type.count) == 0 or 0 in b.shape:
            return No("the matrix is computed, or there is nothing to compute")
        if any(dim != 1 for dim in y.shape[:-2]) or static(y.shape[-1]) % LANES:
            return No("there are batches, or columns do not come in eights")
        if a.shape[-1] != 1 and a.strides[-1] != 1:
            return No("numbers of a row do not lie side by side")
        return Needs(constant=frozenset({1}), align={1: 4}, alias=epilogue_alias(call, kind.fixed), numeric="ulp")

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * target.machine.mac * QUICKER, code=400)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        b = viewed(call.ins[1], constants[1])
        return {1: pack_rows(b.reshape(-1, *b.shape[-2:])[0], LANES)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"rows_of_{LANES}_columns"}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def label(self, call: Call) -> str:
        a, b = call.ins[:2]
        return "gemm_" + "x".join(map(size_name, (a.shape[-2], a.shape[-1], b.shape[-1])))

    def context(self, call: Call) -> Mapping[str, Any]:
        a, y = call.ins[0], call.outs[0]
        results, names = self.parameter_names(call)
        rows, depth = static(y.shape[-2]), static(a.shape[-1])
        row = "i" if rows > 1 else "0"
        around, inside = cut_sum([Range("k", depth)], f32)
        covered = parts("i", rows, 2) if rows > 1 else [("{", 1)]
        return {
            "columns": Range("j", static(y.shape[-1]), step=LANES),
            "blocks": [Block(header, *_stored(call, results[0], names, row, points)) for header, points in covered],
            "around": around,
            "inside": inside,
            "a": f"{names[0]} + {index_c([a.strides[-2], 1], [row, 'k'])}",
            "row": index_c([1], [str(static(a.strides[-2]))]),
            "b": f"{names[1]} + {index_c([depth, LANES], ['j', 'k'])}",
        }


def _stored(call: Call, result: str, names: Sequence[str], row: str, points: int) -> tuple[Tile, Sequence[str], str]:
    """A tile of so many rows, and C for one of its results, at `lane` and `point`."""
    kind, y, point = call.of(Gemm), call.outs[0], "point" if points > 1 else "0"

    def at(strides: Shape) -> str:
        down, along = strides[-2:]
        return index_c([down, down, along, along], [row, point, "j", "lane"])

    extras = zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)
    loads = [load_c(view.buffer.dtype, name, at(view.strides)) for view, name in extras]
    lines, value = to_statements(kind.epilogue or operand(0, f32), ["total", *loads], local="v")
    return Tile(points, LANES), lines, store_c(y.buffer.dtype, result, at(y.strides), value)


def _case(name: str, kind: Gemm, a: Shape, b: Shape, **more: Any) -> Case:
    return Case.of_one_type(name, kind, (a, b), (*a[:-1], b[-1]), constant=True, **more)
