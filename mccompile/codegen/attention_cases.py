"""Cases of the test matrix that all kernels of attention share: sizes, layouts, scores and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..base.dtypes import DType, bf16, bool_, f16, f32, i8
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, literal, operand
from ..kernels.api import Case
from ..kinds.attention import Attention
from .cases import RELU_OF_SUM

PLAIN = Attention(f32)
SCALED = apply("mul", operand(0, f32), literal(0.25, f32))
MASKED = apply("select", operand(1, bool_), SCALED, literal(-float("inf"), f32))
BIASED = apply("add", SCALED, operand(1, f32))
TURNED = {1: (0, 2, 1)}  # keys as they come: a row for each


def attention_case(
    name: str,
    kind: Attention,
    sizes: tuple[int, int, int, int, int],
    permute: Mapping[int, tuple[int, ...]] | None = None,
) -> Case:
    """Of batches, rows, depth, keys and channels. Operands of the score and the epilogue are floats."""
    batch, rows, depth, keys, channels = sizes
    out = TensorType(f32, (batch, rows, channels))
    ins = [TensorType(f32, (batch, *shape)) for shape in ((rows, depth), (depth, keys), (keys, channels))]
    extras = [out] if kind.epilogue else []
    score = [TensorType(f32, (batch, rows, keys))] * kind.operands
    return Case(name, kind, (*ins, *score, *extras), (out,), permute or {})


def with_score(expr: Expr, operands: int = 0) -> Attention:
    return replace(PLAIN, score=expr, operands=operands)


def attention_cases() -> Sequence[Case]:
    sizes = [(1, 1, 2, 2, 3), (2, 2, 3, 7, 5), (1, 3, 8, 16, 15), (1, 7, 9, 17, 16), (1, 15, 4, 33, 17)]
    sizes += [(1, 16, 16, 31, 31), (2, 5, 6, 64, 33), (1, 9, 5, 130, 8), (1, 3, 7, 300, 20)]
    cases = [attention_case("x".join(map(str, s)), PLAIN, s) for s in sizes]
    cases += [attention_case("turned_" + "x".join(map(str, s)), PLAIN, s, TURNED) for s in sizes[1:]]
    small = (2, 5, 70, 150, 9)  # keys enough for several blocks
    plain = attention_case("scaled", with_score(SCALED), small)
    biased = attention_case("bias", with_score(BIASED, 1), small, TURNED)
    seen = with_score(MASKED, 1)
    masked = replace(biased, name="mask", kind=seen, ins=(*biased.ins[:3], TensorType(bool_, (2, 5, 150))))
    some = np.broadcast_to(np.arange(5)[:, None] > 1, (2, 5, 150))
    wide = {number: (-4.0, 4.0) for number in (0, 1)}
    ended = attention_case("epilogue", replace(with_score(SCALED), epilogue=RELU_OF_SUM), small, TURNED)
    return [
        *cases,
        attention_case("many_rows", with_score(SCALED), (1, 33, 66, 200, 37), TURNED),
        attention_case("many_rows_as_they_are", with_score(SCALED), (1, 33, 66, 203, 64)),
        replace(plain, permute=TURNED),
        biased,
        attention_case("row", with_score(BIASED, 1), (1, 1, 1, 4, 7)),
        replace(biased, name="bias_of_keys", repeated={3: (0, 1)}),
        replace(biased, name="bias_of_rows", repeated={3: (2,)}),
        replace(biased, name="bias_across", permute={**TURNED, 3: (2, 0, 1)}),
        masked,
        replace(masked, name="mask_of_keys", repeated={3: (1,)}),
        replace(masked, name="mask_of_rows", repeated={3: (2,)}),
        replace(masked, name="mask_of_late_keys", values={3: np.broadcast_to(np.arange(150) > 140, (2, 5, 150))}),
        replace(masked, name="nothing_seen", kind=replace(seen, or_zero=True), values={3: some}),
        replace(masked, name="mask_across", permute={**TURNED, 3: (0, 2, 1)}),
        ended,
        replace(ended, name="epilogue_across", permute={3: (0, 2, 1)}, permute_outs={0: (0, 2, 1)}),
        replace(ended, name="epilogue_of_columns", repeated={3: (0, 1)}),
        replace(attention_case("wide", PLAIN, (2, 5, 6, 150, 9), TURNED), ranges=wide),
        attention_case("long_sum", PLAIN, (1, 3, 700, 9, 5), TURNED),
        replace(plain, name="shared_keys", permute=TURNED, repeated={1: (0,), 2: (0,)}),
        replace(plain, name="rows_between", permute={0: (1, 0, 2), 1: (2, 0, 1), 2: (1, 0, 2)}),
        replace(plain, name="values_across", permute={2: (0, 2, 1)}, permute_outs={0: (1, 0, 2)}),
    ]


def stored_cases() -> Sequence[Case]:
    """Keys and values in fewer bits, with a factor of each that is part of the score, or in front of the values."""
    found = []
    for dtype, rows, keys in ((f16, 1, 70), (f16, 9, 150), (bf16, 4, 9), (i8, 1, 70), (i8, 9, 150)):
        name = f"{dtype}_{rows}_{keys}"
        found.append(narrowed(attention_case(name, with_score(SCALED), (2, rows, 19, keys, 13), TURNED), dtype))
    scored = with_score(apply("mul", SCALED, operand(1, f32)), 1)
    for rows in (1, 6):
        case = narrowed(
            attention_case(f"scaled_{rows}", replace(scored, scaled=True), (2, rows, 16, 131, 24), TURNED), i8
        )
        scale = TensorType(f32, (2, rows, 131))
        found.append(replace(case, ins=(*case.ins, scale), repeated={3: (1,), 4: (1,)}))
    return found


def narrowed(case: Case, dtype: DType) -> Case:
    q, *stored = case.ins[:3]
    return replace(case, ins=(q, *(TensorType(dtype, type.shape) for type in stored), *case.ins[3:]))


def attention(rows: int, keys: int, channels: int) -> Case:
    return attention_case(f"{rows}_{keys}_{channels}", with_score(SCALED), (1, rows, 5, keys, channels), TURNED)


def attention_in_blocks(rows: int, depth: int, channels: int) -> Case:
    """More keys than a block has."""
    kind = replace(with_score(SCALED), epilogue=RELU_OF_SUM)
    return attention_case(f"{rows}_{depth}_{channels}", kind, (1, rows, depth + 90, 131, channels))
