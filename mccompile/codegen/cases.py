"""Cases of the test matrix that several kernels have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.dtypes import f32
from ..base.tensor import Shape, TensorType
from ..expr.ir import apply, literal, operand
from ..kernels.api import Case
from ..kinds.conv import Conv

RELU_OF_SUM = apply("max", apply("add", operand(0, f32), operand(1, f32)), literal(0, f32))
PADDED_CONV = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32)


def with_picture(case: Case, repeated: Sequence[int] = ()) -> Case:
    """The case with one more operand, for the epilogue: as the result, with channels last, and the same along the axes
    in `repeated`."""
    number, last = len(case.ins), (0, *range(2, case.outs[0].rank), 1)
    permute, along = {**case.permute, number: last}, {number: tuple(repeated)} if repeated else {}
    return replace(case, ins=(*case.ins, case.outs[0]), permute=permute, repeated={**case.repeated, **along})


def conv_case(name: str, kind: Conv, x: Shape, w: Shape, error: float = 0.0) -> Case:
    """A convolution of pictures with channels last, by constant weights."""
    last, out = (0, *range(2, len(x)), 1), TensorType(f32, kind.out_shape(x, w))
    types, places = (TensorType(f32, x), TensorType(f32, w)), {0: last}
    constant = frozenset({1})
    return Case(name, kind, types, (out,), permute=places, permute_outs=places, constant=constant, error=error)


def sized_conv(kind: Conv, x: Shape, w: Shape, error: float = 0.0) -> Case:
    """The same with an epilogue that adds a picture. Its sizes are its name: channels, width, height."""
    name = "_".join(map(str, (x[1], w[0], *x[:1:-1])))
    return with_picture(conv_case(name, replace(kind, epilogue=RELU_OF_SUM), x, w, error))
