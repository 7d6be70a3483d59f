"""gemm of 8-bit integers with constant weights, for cores with Helium: two rows of a at a time, or twice the only one,
are multiplied with all columns of b, where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import apply, cast, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, viewed
from mccompile.kernels.dot import (
    FARTHEST,
    Rescaling,
    epilogue_of,
    numbers,
    pack_fours,
    rescaling,
    table_of_vectors,
)
from mccompile.kernels.loops import index_c
from mccompile.kernels.tiles import is_constant
from mccompile.kinds.gemm import Gemm


class RowPairs(Kernel):
    kind = Gemm
    isa = "helium"

    def cases(self) -> Sequence[Case]:
        return [
            _case("one_row", 1, 37, 12),
            _case("one_row_odd", 1, 40, 11),
            _case("few_outputs", 1, 8, 2),
            _case("rows", 7, 16, 6),
            _case("pairs", 8, 33, 10),
            _case("rows_one_more", 5, 12, 4),
            _case("rows_odd", 6, 9, 5),
            _floats("floats", _case("", 1, 24, 10)),
            _floats("rows_of_floats", _case("", 9, 24, 10)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = _kind(call), call.ins[:2], call.outs[0]
        reason = static_views(call)
        if reason:
            return No(reason)
        found = rescaling(call, kind.fixed, kind.epilogue, raised=True)
        if found is None or not found.form:
            return No("sums are not rescaled to 8 bits with short numbers")
        if a.buffer.dtype is not i8 or b.buffer.dtype is not i8 or kind.a_zero or kind.b_zero:
            return No("operands are not of 8 bits, or have zero points")
        if not is_constant(b) or any(size != 1 for size in y.shape[:-2]) or 0 in (*a.shape, *y.shape):
            return No("weights are computed, or there are several matrices")
        if any(view.strides[-1] != 1 and view.shape[-1] != 1 for view in (a, y)):
            return No("rows of a or of the result have gaps")
        if static(y.strides[-2]) + 4 > FARTHEST:
            return No("results of two rows lie far apart")
        results = 2 * (static(y.shape[-1]) + 4) if found.rest else 0
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: 15},
            scratch=results,
            scratch_align=4,
            blocks=(2 if static(y.shape[-2]) > 1 else 1, int(target.prefer == "flash")),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        macs = static(call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs]))
        return Cost(macs * 3e-11, code=300)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, columns = _rescaling(call), static(call.outs[0].shape[-1])
        b = viewed(call.ins[1], constants[1])
        rows = b.reshape(b.shape[-2:]).T
        values = numbers(call, constants, found, columns)
        return {1: pack_fours(rows, 4, 16), **dict.fromkeys(found.tables, table_of_vectors(values, found.shift))}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: "helium_4x16", **dict.fromkeys(_rescaling(call).tables, "table_vectors_less_half")}

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return f"gemm_{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium.h"})

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        names = ["a", "b", *(f"e{i}" for i in range(len(call.ins) - 2))]
        for index, name in zip(_rescaling(call).tables, ("table", "same0", "same1", "same2"), strict=False):
            names[index] = name
        return ["y"], names

    def context(self, call: Call) -> Mapping[str, Any]:
        y, found = call.outs[0], _rescaling(call)
        rows, outs = y.type.static_shape[-2:]
        lanes, small = call.blocks
        return {
            **self.rest(call),
            "y_type": found.dtype.name,
            "y_c_type": found.dtype.storage_c,
            "form": found.form,
            "table_rows": len(found.tables),
            "lanes": lanes,
            "several": rows > 1,
            "again": lanes == 2 and (rows % 2 == 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        a, y = call.ins[0], call.outs[0]
        rows, outs = y.type.static_shape[-2:]
        stride = outs if _rescaling(call).rest else static(y.strides[-2])
        several = {"rows": rows, "a_row": static(a.strides[-2]), "y_row": stride}
        numbers = {"outs": outs, "depth": _depth(call)}
        return {**numbers, **several} if rows > 1 else numbers

    def rest(self, call: Call) -> dict[str, Any]:
        """What is left to do with the 8-bit result `found[o]` of column o of row `at`."""
        y, found = call.outs[0], _rescaling(call)
        if found.rest is None:
            return {"rest": False}

        def place(view: View) -> str:
            row = "at" if y.shape[-2] != 1 else "0"
            return index_c([static(stride) for stride in view.strides[-2:]], [row, "o"])

        names = self.parameter_names(call)[1]
        loads = ["found[o]"]
        loads += [load_c(v.buffer.dtype, name, place(v)) for v, name in zip(call.ins[2:], names[2:], strict=True)]
        lines, value = to_statements(found.rest, loads, local="v")
        return {"rest": True, "rest_lines": lines, "rest_store": store_c(y.buffer.dtype, "y", place(y), value)}


def _depth(call: Call) -> int:
    """Elements of a row, in blocks of 16."""
    depth = static(call.ins[0].shape[-1])
    return depth + -depth % 16


def _kind(call: Call) -> Gemm:
    assert isinstance(call.kind, Gemm)
    return call.kind


def _rescaling(call: Call) -> Rescaling:
    found = rescaling(call, _kind(call).fixed, _kind(call).epilogue, raised=True)
    assert found is not None  # `match` has seen it
    return found


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


def _floats(name: str, case: Case) -> Case:
    """The result as floats."""
    assert isinstance(case.kind, Gemm) and case.kind.epilogue is not None
    rest = apply("mul", cast(case.kind.epilogue, f32), operand(4, f32))
    out = TensorType(f32, case.outs[0].shape)
    return replace(case, name=name, kind=replace(case.kind, epilogue=rest), ins=(*case.ins, out), outs=(out,))
