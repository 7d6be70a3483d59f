"""gemm of int8 with constant weights in dot products of vectors: tiles of rows x vectors of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, u8
from mccompile.base.marked import read
from mccompile.base.tensor import TensorType
from mccompile.codegen.int8.dot import epilogue_of
from mccompile.codegen.int8.dot_forms import form_in, form_of
from mccompile.codegen.int8.dot_products import (
    b_zero_of,
    epilogue_of_products,
    has_late_zero,
    has_sums,
    late_zero,
    product_groups,
    products_refusal,
)
from mccompile.codegen.int8.dot_tiles import (
    SHIFT,
    best_dot_tile,
    dot_headers,
    row_cycles,
    shifted,
)
from mccompile.codegen.int8.zero_points import weights_c
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import epilogue_alias, is_constant
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize
from mccompile.expr.ir import apply, cast, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, viewed
from mccompile.kernels.work import Units
from mccompile.kinds.gemm import Gemm


class RowDots(Kernel):
    kind = Gemm

    def cases(self) -> Sequence[Case]:
        sizes = [(1, 1, 1), (2, 3, 2), (3, 7, 15), (7, 2, 16), (15, 16, 17), (16, 31, 31), (17, 33, 33), (1, 200, 130)]
        variants = [
            (f"zeros_{of}_{late}_{weights}", of, late, weights)
            for of in (i8, u8)
            for late in ("one", "rows")
            for weights in (None, i8, u8)
        ]
        return [
            *(_case(f"{rows}x{depth}x{columns}", rows, depth, columns) for rows, depth, columns in sizes),
            _case("u8", 5, 18, 20, u8),
            _with_zero(_case("zero", 5, 18, 20, u8)),
            _floats(_case("floats", 9, 24, 19)),
            _by_row(_floats(_case("floats_by_row", 9, 24, 19))),
            *(_by_row(_case(f"{of}_by_row", 9, 24, 67), of) for of in (i8, u8)),
            *(_with_zeros(_case(name, 7, 70, 37, of), late, of_weights) for name, of, late, of_weights in variants),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = call.of(Gemm), call.ins[:2], call.outs[0]
        reason = products_refusal(call, target)
        if reason:
            return No(reason)
        if not is_constant(b) or any(size != 1 for size in y.shape[:-2]):
            return No("weights are computed, or there are several matrices")
        if kind.b_zero and not (is_constant(b_zero_of(call)) and b_zero_of(call).strides[-1] in (0, 1)):
            return No("zero points of the weights are computed, or not contiguous")
        epilogue, (rows, columns) = epilogue_of_products(call), y.type.static_shape[-2:]
        depth = static(a.shape[-1])
        form = form_of(target)
        size = best_dot_tile(rows, columns, -(-depth // form.depth), target)
        return Needs(
            constant=frozenset({1, *([] if has_late_zero(call) else range(2, kind.fixed - kind.b_zero))})
            | frozenset({kind.fixed - 1} if kind.b_zero else ())
            | epilogue.constants,
            align={1: 4},
            scratch=4 * rows if has_sums(call) else 0,
            scratch_align=4,
            slack={0: -depth % form.depth},
            alias=epilogue_alias(call, kind.fixed),
            blocks=(size.lanes, size.points, size.vectors, shifted(a.buffer.dtype, target), form.number),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        rows, columns = call.outs[0].type.static_shape[-2:]
        form = form_of(target)
        steps = -(-static(call.ins[0].shape[-1]) // form.depth)
        size = best_dot_tile(rows, columns, steps, target)
        cycles = row_cycles(size, rows, columns, steps, form)
        if not epilogue_of_products(call).in_vectors:
            cycles += 4 * static(call.outs[0].type.count)
        return Cost(cycles, code=size.points * size.vectors * 40)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        epilogue = epilogue_of_products(call)
        size, shift = TileSize(*call.blocks[:3]), call.blocks[3]
        b = viewed(call.ins[1], constants[1])
        rows = np.pad(b.reshape(b.shape[-2:]).T.astype(np.int64), [(0, 0), (0, -b.shape[-2] % form_in(call).depth)])
        if call.ins[1].buffer.dtype is u8:
            rows[:, : b.shape[-2]] -= SHIFT
        sums = rows.sum(1)
        late = has_late_zero(call)
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if call.of(Gemm).a_zero and not late else 0
        begins = epilogue.begins(constants) - (zero + shift) * sums
        weights = epilogue.pack_weights(rows, [begins, sums] if late else [begins], size, form_in(call))
        found = {1: weights.view(call.ins[1].buffer.dtype.numpy)}
        if call.of(Gemm).b_zero and b_zero_of(call).strides[-1]:
            index = call.of(Gemm).fixed - 1
            row = viewed(call.ins[index], constants[index]).reshape(-1, b.shape[-1])[0]
            found[index] = epilogue.ordered(row, size)
        return {**found, **epilogue.pack(constants, size)}

    def packing(self, call: Call) -> Mapping[int, str]:
        epilogue = epilogue_of_products(call)
        size, shift = TileSize(*call.blocks[:3]), call.blocks[3]
        more = "_bias" * (epilogue.bias is not None) + "_sums" * has_late_zero(call)
        found = {1: form_in(call).named(f"dots_{epilogue.order(size)}_{shift}{more}")}
        if call.of(Gemm).b_zero and b_zero_of(call).strides[-1]:
            found[call.of(Gemm).fixed - 1] = f"table_of_{epilogue.order(size)}"
        return {**found, **epilogue.packing(size)}

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return f"gemm_{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return dot_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        """Groups of columns."""
        units = Units()
        Groups(TileSize(*call.blocks[:3]), static(call.outs[0].shape[-1])).headers("j", units)
        return units.sizes

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        names, rows = self.parameter_names(call)[1], static(call.outs[0].shape[-2])
        size, late = TileSize(*call.blocks[:3]), has_late_zero(call)
        units = Units() if call.workers > 1 else None
        found = product_groups(call, names, weights_c(call.ins[1], "b"), late, units=units)
        tiles = [tile for _, inner in found for _, tile in inner]
        lines = " ".join(tile.lines for tile in tiles)
        a, sums = call.ins[0], has_sums(call)
        lines += late_zero(call) if sums else ""
        return {
            "sums": sums,
            "rows": rows,
            "sum": f"mcc_sum_{a.buffer.dtype}_i32x{size.lanes}",
            "row": index_c([1, static(a.strides[-2])], ["a", "i"]),
            "depth": static(a.shape[-1]),
            "late_zero": late_zero(call),
            "groups": found,
            "scope": ["i", "j", "const int32_t *rest"],
            "unread": [n for n in names[2:] if n not in read(lines).names],
        }


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


def _with_zeros(case: Case, late: str, of_weights: DType | None) -> Case:
    """A zero point of a that is computed, one or one per row; weights of that type with a zero point per column."""
    assert isinstance(case.kind, Gemm)
    columns = case.ins[1].static_shape[1]
    found = replace(_with_zero(case), repeated={**_with_zero(case).repeated, 2: (0,) if late == "one" else ()})
    found = replace(found, constant=found.constant - {2})
    if of_weights is None:
        return found
    weights = TensorType(of_weights, case.ins[1].static_shape)
    return replace(
        found,
        kind=replace(case.kind, a_zero=True, b_zero=True),
        ins=(found.ins[0], weights, found.ins[2], TensorType(of_weights, (columns,)), *found.ins[3:]),
        constant=frozenset({1, 3, 4, 5, 6}),
        ranges={**found.ranges, 1: (of_weights.low, of_weights.high), 3: (of_weights.low, of_weights.high)},
        values={index + 1: array for index, array in found.values.items()},
        repeated={2: found.repeated[2], **dict.fromkeys((4, 5, 6), (0,))},
    )


def _floats(case: Case) -> Case:
    """The result as floats."""
    assert isinstance(case.kind, Gemm) and case.kind.epilogue is not None
    rest = apply("mul", cast(case.kind.epilogue, f32), operand(4, f32))
    out = TensorType(f32, case.outs[0].shape)
    return replace(case, kind=replace(case.kind, epilogue=rest), ins=(*case.ins, out), outs=(out,))


def _by_row(case: Case, dtype: DType = f32) -> Case:
    """With an operand that has one element per row, such as a scale that is computed."""
    assert isinstance(case.kind, Gemm) and case.kind.epilogue is not None
    number = len(case.ins)
    row = cast(operand(number - 1, dtype), case.kind.epilogue.dtype)
    kind = replace(case.kind, epilogue=apply("max", case.kind.epilogue, row))
    more = TensorType(dtype, case.outs[0].shape)
    return replace(case, kind=kind, ins=(*case.ins, more), repeated={**case.repeated, number: (1,)})
