"""Cases of int8 products of two computed matrices in batches, as attention has them, for kernels that rescale them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from ...base.dtypes import DType, f32, i8, i32
from ...base.tensor import TensorType
from ...expr.ir import apply, cast, operand
from ...kernels.api import Case
from ...kinds.gemm import Gemm
from .dot import epilogue_of


def batches_case(
    name: str,
    rows: int,
    depth: int,
    columns: int,
    a: DType = i8,
    b: DType = i8,
    zeros: Literal["", "one", "each"] = "",
    turned: bool = False,
    heads: bool = False,
) -> Case:
    """Two batches of two; `zeros`: one zero point, or one of each row and column; `turned`: b lies by its columns;
    `heads`: batches lie within rows, as heads of tokens do."""
    out, number = (2, 2, rows, columns), (2, 2, 1, 1)
    chance = np.random.default_rng(columns)
    limits = ((-3000, 3000), (1 << 27, 1 << 29), (-400, 400))
    rest = [np.broadcast_to(chance.integers(low, high, number).astype(np.int32)[:1, :1], out) for low, high in limits]
    fixed = 4 if zeros else 2
    points = (TensorType(a, (2, 2, rows)), TensorType(b, (2, 2, columns))) if zeros else ()
    matrices = TensorType(a, (2, 2, rows, depth)), TensorType(b, (2, 2, depth, columns))
    repeated = dict.fromkeys(range(fixed, fixed + 3), (0, 1, 2, 3))
    return Case(
        name,
        Gemm(i32, epilogue_of(i8, 4, (1, 2, 3)), a_zero=bool(zeros), b_zero=bool(zeros)),
        (*matrices, *points, *[TensorType(i32, out)] * 3),
        (TensorType(i8, out),),
        permute={1: (0, 1, 3, 2)} if turned else {0: (0, 2, 1, 3), 1: (0, 2, 1, 3)} if heads else {},
        constant=frozenset(range(fixed, fixed + 3)),
        ranges={0: (a.low, a.high), 1: (b.low, b.high), 2: (a.low, a.high), 3: (b.low, b.high)},
        values={fixed + i: array for i, array in enumerate(rest)},
        repeated=repeated | (dict.fromkeys(range(2, fixed), (0, 1, 2)) if zeros == "one" else {}),
    )


def with_floats(case: Case) -> Case:
    """The result as floats."""
    assert isinstance(case.kind, Gemm) and case.kind.epilogue is not None
    rest = apply("mul", cast(case.kind.epilogue, f32), operand(4, f32))
    out = TensorType(f32, case.outs[0].shape)
    return replace(case, kind=replace(case.kind, epilogue=rest), ins=(*case.ins, out), outs=(out,))
