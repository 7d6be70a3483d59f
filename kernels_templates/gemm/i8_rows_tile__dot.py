"""gemm of 8-bit integers with constant weights in dot products of vectors: tiles of rows x vectors of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import apply, cast, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, viewed
from mccompile.kernels.dot import epilogue_of
from mccompile.kernels.dot_tiles import (
    DEPTH,
    HEADERS,
    DotEpilogue,
    DotTile,
    Place,
    best_dot_tile,
    dot_refusal,
    row_cycles,
    shifted,
)
from mccompile.kernels.loops import index_c
from mccompile.kernels.tiles import Range, epilogue_alias, is_constant
from mccompile.kernels.vector_tiles import SECOND_LEVEL, Groups, TileSize
from mccompile.kernels.work import Units
from mccompile.kinds.gemm import Gemm

AHEAD = 2048  # bytes


class RowDots(Kernel):
    kind = Gemm
    isa = "dot"

    def cases(self) -> Sequence[Case]:
        sizes = [(1, 1, 1), (2, 3, 2), (3, 7, 15), (7, 2, 16), (15, 16, 17), (16, 31, 31), (17, 33, 33), (1, 200, 130)]
        return [
            *(_case(f"{rows}x{depth}x{columns}", rows, depth, columns) for rows, depth, columns in sizes),
            _case("u8", 5, 18, 20, u8),
            _with_zero(_case("zero", 5, 18, 20, u8)),
            _floats(_case("floats", 9, 24, 19)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = _kind(call), call.ins[:2], call.outs[0]
        reason = dot_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if a.buffer.dtype not in (i8, u8) or b.buffer.dtype is not i8 or kind.b_zero:
            return No("operands are not of 8 bits, or weights have zero points")
        if not is_constant(b) or any(size != 1 for size in y.shape[:-2]) or 0 in (*a.shape, *y.shape):
            return No("weights are computed, or there are several matrices")
        if kind.a_zero and not (is_constant(call.ins[2]) and _is_one_number(call.ins[2])):
            return No("the zero point changes from row to row")
        if a.strides[-1] != 1 and a.shape[-1] != 1:
            return No("rows of a have gaps")
        epilogue, (rows, columns) = _epilogue(call), y.type.static_shape[-2:]
        depth = static(a.shape[-1])
        size = best_dot_tile(rows, columns, -(-depth // DEPTH), target)
        return Needs(
            constant=frozenset(range(1, kind.fixed)) | epilogue.constants,
            align={1: 4},
            slack={0: -depth % DEPTH},
            alias=epilogue_alias(call, kind.fixed),
            blocks=(size.lanes, size.points, size.vectors, shifted(a.buffer.dtype, target)),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        rows, columns = call.outs[0].type.static_shape[-2:]
        steps = -(-static(call.ins[0].shape[-1]) // DEPTH)
        size = best_dot_tile(rows, columns, steps, target)
        cycles = row_cycles(size, rows, columns, steps)
        if not _epilogue(call).in_vectors:
            cycles += 4 * static(call.outs[0].type.count)
        return Cost(cycles / 3e9, code=size.points * size.vectors * 40)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        epilogue = _epilogue(call)
        size, shift = TileSize(*call.blocks[:3]), call.blocks[3]
        b = viewed(call.ins[1], constants[1])
        rows = np.pad(b.reshape(b.shape[-2:]).T, [(0, 0), (0, -b.shape[-2] % DEPTH)])
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if _kind(call).a_zero else 0
        begins = epilogue.begins(constants) - (zero + shift) * rows.astype(np.int64).sum(1)
        return {1: epilogue.pack_weights(rows, begins, size), **epilogue.pack(constants, size)}

    def packing(self, call: Call) -> Mapping[int, str]:
        epilogue = _epilogue(call)
        size, shift = TileSize(*call.blocks[:3]), call.blocks[3]
        bias = "" if epilogue.bias is None else "_bias"
        return {1: f"dots_{epilogue.order(size)}_{shift}{bias}", **epilogue.packing(size)}

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return f"gemm_{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return HEADERS

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        kind = _kind(call)
        return ["y"], ["a", "b", *["a_zero"] * kind.a_zero, *(f"e{i}" for i in range(len(call.ins) - kind.fixed))]

    def units(self, call: Call) -> Sequence[int]:
        """Groups of columns."""
        units = Units()
        Groups(TileSize(*call.blocks[:3]), static(call.outs[0].shape[-1])).headers("j", units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        size, (rows, columns) = TileSize(*call.blocks[:3]), call.outs[0].type.static_shape[-2:]
        groups, names = Groups(size, columns), self.parameter_names(call)[1]
        whole = rows // size.points * size.points
        runs = [(0, size.points, whole)] if whole else []
        runs += [(whole, rows - whole, rows)] if whole < rows else []
        headers = groups.headers("j", Units() if call.workers > 1 else None)
        found = [
            (header, [(_header(run), _tile(call, run[1], size, part, names)) for run in runs])
            for header, part in zip(headers, groups.parts(), strict=True)
        ]
        lines = " ".join(line for _, inner in found for _, tile in inner for line in (*tile.hoisted, *tile.stores))
        return {
            "groups": found,
            "unused": [n for n in names[2:] if not re.search(rf"\b{n}\b", lines)],
        }


def _tile(call: Call, points: int, size: TileSize, part: tuple[int, int, int, int], names: Sequence[str]) -> DotTile:
    kind, a = _kind(call), call.ins[0]
    _, _, vectors, last = part

    def place(view: View, name: str) -> Place:
        row, column = (static(stride) for stride in view.strides[-2:])
        return Place(name, view, index_c([row, column], ["i", "j"]), row, column)

    extras = [place(v, n) for v, n in zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)]
    hoisted, stores = _epilogue(call).statements(size, points, vectors, last, place(call.outs[0], "y"), extras)
    depth, row = static(a.shape[-1]), static(a.strides[-2])
    return DotTile(
        size.lanes,
        points,
        vectors,
        index_c([1, (-(-depth // DEPTH) + 1) * DEPTH], ["b", "j"]),
        (Range("c", depth, step=DEPTH),),
        index_c([1, row], ["a", "i"]),
        row,
        a.buffer.dtype,
        hoisted,
        stores,
        AHEAD if depth * static(call.outs[0].shape[-1]) > SECOND_LEVEL else 0,
    )


def _header(run: tuple[int, int, int]) -> str:
    first, points, end = run
    if end - first == points:
        return f"{{ const mcc_index i = {first};"
    return Range("i", end, str(first), step=points).header


def _is_one_number(view: View) -> bool:
    return all(stride == 0 or size == 1 for size, stride in zip(view.shape, view.strides, strict=True))


def _epilogue(call: Call) -> DotEpilogue:
    kind = _kind(call)
    return DotEpilogue(call, kind.fixed, len(call.outs[0].shape) - 1, kind.epilogue)


def _kind(call: Call) -> Gemm:
    assert isinstance(call.kind, Gemm)
    return call.kind


def _case(name: str, rows: int, depth: int, columns: int, dtype: DType = i8) -> Case:
    chance = np.random.default_rng(columns)
    per_column = [
        np.broadcast_to(chance.integers(low, high, (1, columns)).astype(np.int32), (rows, columns))
        for low, high in ((-3000, 3000), (1 << 27, 1 << 29), (-400, 400))
    ]
    out = (rows, columns)
    return Case(
        name,
        Gemm(i32, epilogue_of(dtype, 4, (1, 2, 3))),
        (TensorType(dtype, (rows, depth)), TensorType(i8, (depth, columns)), *[TensorType(i32, out)] * 3),
        (TensorType(dtype, out),),
        constant=frozenset({1, 2, 3, 4}),
        ranges={0: (dtype.low, dtype.high), 1: (-128, 127)},
        values={2 + i: array for i, array in enumerate(per_column)},
        repeated=dict.fromkeys((2, 3, 4), (0,)),
    )


def _with_zero(case: Case) -> Case:
    """Of all rows the same."""
    assert isinstance(case.kind, Gemm)
    rows, dtype = case.ins[0].static_shape[0], case.ins[0].dtype
    return replace(
        case,
        kind=replace(case.kind, a_zero=True),
        ins=(*case.ins[:2], TensorType(dtype, (rows,)), *case.ins[2:]),
        constant=frozenset(range(1, 6)),
        ranges={**case.ranges, 2: (dtype.low, dtype.high)},
        values={index + 1: array for index, array in case.values.items()},
        repeated={2: (0,), **dict.fromkeys((3, 4, 5), (0,))},
    )


def _floats(case: Case) -> Case:
    """The result as floats."""
    assert isinstance(case.kind, Gemm) and case.kind.epilogue is not None
    rest = apply("mul", cast(case.kind.epilogue, f32), operand(4, f32))
    out = TensorType(f32, case.outs[0].shape)
    return replace(case, kind=replace(case.kind, epilogue=rest), ins=(*case.ins, out), outs=(out,))
