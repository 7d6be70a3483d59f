"""Cases of the test matrix that several kernels have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.dtypes import f32
from ..expr.ir import apply, literal, operand
from ..kernels.api import Case

RELU_OF_SUM = apply("max", apply("add", operand(0, f32), operand(1, f32)), literal(0, f32))


def with_picture(case: Case, repeated: Sequence[int] = ()) -> Case:
    """The case with one more operand, for the epilogue: as the result, with channels last, and the same along the axes
    in `repeated`."""
    number, last = len(case.ins), (0, *range(2, case.outs[0].rank), 1)
    permute, along = {**case.permute, number: last}, {number: tuple(repeated)} if repeated else {}
    return replace(case, ins=(*case.ins, case.outs[0]), permute=permute, repeated={**case.repeated, **along})
