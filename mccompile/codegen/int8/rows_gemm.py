"""What matrix products of 8-bit integers with constant weights share: what they can do, and what is left of the
epilogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, f32, i8, i32, u8
from ...base.tensor import TensorType
from ...expr.ir import apply, cast, operand
from ...expr.scalar_c import load_c, store_c, to_statements
from ...kernels.api import Call, Case, View, viewed
from ...kinds.gemm import Gemm
from ..loops import index_c
from ..tiles import is_constant
from .dot import RAISED_SHIFTS, channel_numbers, epilogue_of, left_over
from .rates import Work
from .short_sums import Int8Sums


class RowsGemm(Int8Sums):
    kind = Gemm
    code = 300
    block: ClassVar[int] = 4  # elements of a row are taken so many at a time

    def cases(self) -> Sequence[Case]:
        return [
            product_case("one_row", 1, 37, 12, shift=1),
            product_case("one_row_odd", 1, 40, 11, shift=2),
            product_case("few_outputs", 1, 8, 2, shift=3),
            replace(product_case("largest_sums", 1, 700, 6), ranges={0: (-128, -128), 1: (-128, -128)}),
            product_case("rows", 7, 16, 6, shift=5),
            product_case("rows_u8", 8, 33, 10, u8, shift=6),
            product_case("rows_one_more", 5, 12, 4, shift=7),
            product_case("rows_odd", 6, 9, 5, shift=8),
            _floats("floats", product_case("", 1, 24, 10)),
            _floats("rows_of_floats", product_case("", 9, 24, 10)),
            *(self.raised_cases() if self.raises else ()),
        ]

    def raised_cases(self) -> Sequence[Case]:
        return [
            product_case("raised_row", 1, 37, 12, shift=12),
            product_case("raised_row_odd", 1, 40, 11, shift=14),
            product_case("raised_rows", 5, 33, 10, shift=16),
        ]

    def refusal(self, call: Call, shifts: range, totals: bool = False) -> str:
        """Why rows of this call cannot be copied like that, or nothing; the rest as `sums_refusal` takes it."""
        kind, (a, b), y = gemm_of(call), call.ins[:2], call.outs[0]
        reason = self.sums_refusal(call, kind.accumulator, shifts, totals)
        if reason:
            return reason
        if a.buffer.dtype not in (i8, u8) or b.buffer.dtype not in self.stored or kind.a_zero or kind.b_zero:
            return "operands are not 8-bit integers, or have zero points"
        if not is_constant(b) or any(size != 1 for size in y.shape[:-2]) or 0 in (*a.shape, *y.shape):
            return "weights are computed, or there are several matrices"
        if any(view.strides[-1] != 1 and view.shape[-1] != 1 for view in (a, y)):
            return "rows of a or of the result are not contiguous"
        return ""

    def depth(self, call: Call) -> int:
        """Elements of a row, in blocks."""
        depth = static(call.ins[0].shape[-1])
        return depth + -depth % self.block

    def work(self, call: Call) -> Work:
        rows, outs = call.outs[0].type.static_shape[-2:]
        each = self.at_once(call)
        computed, depth = outs + -outs % each, self.depth(call)
        rest = rows * outs if left_over(call, self.raises) is not None else 0
        return Work(rows * computed * depth, rows * depth, rows * computed, rest, rows, rows)

    def columns(self, call: Call, constants: Mapping[int, Constant]) -> np.ndarray:
        """The weights of each column of the result: a row."""
        b = viewed(call.ins[1], constants[1])
        return b.reshape(b.shape[-2:]).T

    def at_once(self, call: Call) -> int:
        """Columns that the functions of the runtime compute together."""
        return 4

    def units(self, call: Call) -> Sequence[int]:
        """Columns of the result; each worker lays the rows out for itself."""
        return (1,) * -(-static(call.outs[0].shape[-1]) // self.at_once(call))

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return f"gemm_{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"

    def sizes(self, call: Call) -> Mapping[str, int]:
        a, y = call.ins[0], call.outs[0]
        rows, outs = y.type.static_shape[-2:]
        stride = outs if left_over(call, self.raises) else static(y.strides[-2])
        several = {"rows": rows, "a_row": static(a.strides[-2]), "y_row": stride}
        numbers = {"inputs": static(a.shape[-1]), "outs": outs, "depth": self.depth(call)}
        return {**numbers, **several} if rows > 1 else numbers

    def rest(self, call: Call) -> dict[str, Any]:
        """What is left to do with the result or total `found[o]` of column o of row `at`; what workers share."""
        y, left = call.outs[0], left_over(call, self.raises)
        found = {"shared": call.workers > 1, "step": self.at_once(call)}
        if left is None:
            return {**found, "rest": False}

        def place(view: View) -> str:
            row = "at" if y.shape[-2] != 1 else "0"
            return index_c([static(stride) for stride in view.strides[-2:]], [row, "o"])

        names = self.parameter_names(call)[1]
        loads = ["found[o]"]
        loads += [load_c(v.buffer.dtype, name, place(v)) for v, name in zip(call.ins[2:], names[2:], strict=True)]
        lines, value = to_statements(left, loads, local="v")
        return {**found, "rest": True, "rest_lines": lines, "rest_store": store_c(y.buffer.dtype, "y", place(y), value)}


def gemm_of(call: Call) -> Gemm:
    return call.of(Gemm)


def product_case(
    name: str, rows: int, depth: int, columns: int, dtype: DType = i8, shift: int = 4, short: bool = False
) -> Case:
    out, numbers = (rows, columns), channel_numbers(columns, shift, short)
    count, packed = len(numbers), short and shift in RAISED_SHIFTS
    return Case(
        name,
        Gemm(i32, epilogue_of(dtype, shift, tuple(range(1, count + 1)), packed)),
        (TensorType(dtype, (rows, depth)), TensorType(i8, (depth, columns)), *[TensorType(i32, out)] * count),
        (TensorType(dtype, out),),
        constant=frozenset(range(1, count + 2)),
        ranges={0: (dtype.low, dtype.high), 1: (-128, 127)},
        values={2 + i: np.broadcast_to(array, out) for i, array in enumerate(numbers)},
        repeated=dict.fromkeys(range(2, count + 2), (0,)) | ({count + 1: (0, 1)} if short else {}),
    )


def _floats(name: str, case: Case) -> Case:
    """The result as floats."""
    assert isinstance(case.kind, Gemm) and case.kind.epilogue is not None
    rest = apply("mul", cast(case.kind.epilogue, f32), operand(4, f32))
    out = TensorType(f32, case.outs[0].shape)
    return replace(case, name=name, kind=replace(case.kind, epilogue=rest), ins=(*case.ins, out), outs=(out,))


def totals_case(name: str, rows: int, depth: int, columns: int, dtype: DType = i8) -> Case:
    """One that makes floats of its totals."""
    case = product_case(name, rows, depth, columns, dtype)
    out = TensorType(f32, case.outs[0].shape)
    floats = apply("mul", cast(operand(0, i32), f32), operand(1, f32))
    kind, ins = Gemm(i32, floats), (*case.ins[:2], out)
    return replace(case, kind=kind, ins=ins, outs=(out,), constant=frozenset({1}), values={}, repeated={})
