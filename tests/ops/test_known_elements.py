"""Shape arithmetic keeps its dimensions, and says nothing where something could go wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dims import Dim, symbol
from mccompile.base.dtypes import DType, bool_, f16, f32, f64, i8, i64
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Site, constant_fact
from mccompile.ops.api import registry

N = symbol("n", 2, 10)


def vector(*elements: Dim, dtype: DType = i64) -> Fact:
    value = np.empty(len(elements), dtype=object)
    value[:] = elements
    return Fact(TensorType(dtype, (len(elements),)), value)


def known(op: str, *facts: Fact | None, **attributes: object) -> list[Dim] | None:
    value = registry()["", op](**attributes).infer(Site(facts, 1))[0].value
    return None if value is None else list(value.reshape(-1))


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [
        ("Add", (N, 1), (4, 2), [N + 4, 3]),
        ("Mul", (N, 3), (N, 2), [N * N, 6]),
        ("Div", (8 * N, -7), (4, 2), [2 * N, -3]),
        ("Mod", (8 * N, -7), (4, 3), [0, 2]),
        ("Max", (N, 5), (1, 3), [N, 5]),
        ("Min", (N, 5), (100, 3), [N, 3]),
        ("Equal", (N, 5), (N, 3), [True, False]),
        ("Less", (N, 5), (11, 3), [True, False]),
    ],
)
def test_arithmetic_over_dimensions(op: str, left: Sequence[Dim], right: Sequence[Dim], result: list[Dim]) -> None:
    assert known(op, vector(*left), vector(*right)) == result


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        ("Div", (N,), (0,)),  # the run-time function has its own answer
        ("Div", (1 - N,), (2,)),  # rounds toward zero, dimensions round down
        ("Equal", (N,), (5,)),
        ("Less", (N,), (5,)),
    ],
)
def test_what_is_not_certain_is_unknown(op: str, left: Sequence[Dim], right: Sequence[Dim]) -> None:
    assert known(op, vector(*left), vector(*right)) is None


def test_overflow_is_left_to_the_run() -> None:
    assert known("Add", vector(100, dtype=i8), vector(100, dtype=i8)) is None


def test_where_takes_the_branch_that_is_certain() -> None:
    condition = vector(True, False, dtype=bool_)
    assert known("Where", condition, vector(N, 1), vector(7, 8)) == [N, 8]


def test_clip_with_one_bound() -> None:
    assert known("Clip", vector(-1, 4, 9), None, vector(5)) == [-1, 4, 5]


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [
        ("Add", (N, 1), (4, 2), [N + 4, 3]),
        ("Sub", (N, 3), (N, 5), [0, -2]),
        ("Mul", (N, 0), (2, 3), [2 * N, 0]),
        ("Div", (8 * N, 6), (4, 3), [2 * N, 2]),
        ("Less", (N, 5), (11, 3), [True, False]),
        ("Div", (N,), (2,), None),
        ("Div", (2 * N,), (N,), None),
        ("Div", (-2 * N,), (2,), None),
        ("Mul", (0,), (-1,), None),  # a negative zero
        ("Mul", (N,), (1 << 23,), None),
    ],
)
def test_floats_that_are_whole_numbers(
    op: str, left: Sequence[Dim], right: Sequence[Dim], result: list[Dim] | None
) -> None:
    assert known(op, vector(*left, dtype=f32), vector(*right, dtype=f32)) == result


@pytest.mark.parametrize("op", ["Floor", "Ceil", "Round"])
def test_whole_numbers_are_round(op: str) -> None:
    assert known(op, vector(N, -3, dtype=f32)) == [N, -3]


@pytest.mark.parametrize(
    ("dtype", "size", "exact"), [(f16, 204, True), (f16, 205, False), (f32, 1 << 24, False), (f64, 1 << 24, True)]
)
def test_sizes_go_through_floats_that_hold_them(dtype: DType, size: int, exact: bool) -> None:
    assert known("Cast", vector(size * N), to=dtype.onnx) == ([size * N] if exact else None)
    if exact:
        assert known("Cast", vector(size * N, dtype=dtype), to=7) == [size * N]


@pytest.mark.parametrize(
    ("elements", "are_known"),
    [
        ((1, 2, -3), True), ((0.5,), False), ((-0.0,), False), ((1 << 24,), True), ((1 << 25,), False),
        ((np.inf,), False),
    ],
)  # fmt: skip
def test_few_floats_are_known_where_they_are_whole(elements: tuple[float, ...], are_known: bool) -> None:
    for count, expected in ((len(elements), are_known), (17, False)):
        found = constant_fact(Constant.of(np.resize(np.array(elements, np.float32), count))).value
        assert (None if found is None else list(found)) == (list(elements) if expected else None)


def test_cast_to_bool_and_back_to_numbers() -> None:
    assert known("Cast", vector(N, 0), to=9) == [True, False]


def test_a_cast_that_may_not_fit_is_unknown() -> None:
    assert known("Cast", vector(100 * N), to=3) is None


def test_product_of_a_shape() -> None:
    assert known("ReduceProd", vector(N, 3, 4), keepdims=0) == [12 * N]
