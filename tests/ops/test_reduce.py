"""Reductions where it is easy to go wrong: empty sets, infinities, long sums, bools, axes that do not exist."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mccompile.base.dims import symbol
from mccompile.base.dtypes import f32, i64
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site, Unsupported
from mccompile.ops.api import registry
from mccompile.ops.reduce import ReduceMax

from .bundle import One, Outcome, outcomes

AXIS_1 = np.array([1], np.int64)
LAST = frozenset({1})
EMPTY = np.zeros((2, 0, 3), np.float32)
BITS = np.array([[True, False, True], [False, False, False]])
MIXED = np.array([[-np.inf, -np.inf], [np.inf, 0], [1e4, 1e4], [-np.inf, 3], [np.nan, 0]], np.float32)
LARGE = np.array([[2**31 - 1, 2**31 - 1, 2**31 - 4], [7, -(2**31) + 1, -(2**31) + 3]], np.int64)
NEAR = np.array([[20] * 9, [*range(9)], [0, 64, 2**31 - 4, *[2**31 - 5] * 6], [100, *[36] * 8]], np.int64)

NODES = [
    *(One(f"empty_{op}", f"Reduce{op}", [EMPTY, AXIS_1], {}, LAST) for op in ("Sum", "Prod", "L1", "L2", "SumSquare")),
    *(One(f"empty_{op}", f"Reduce{op}", [EMPTY, AXIS_1], {}, LAST) for op in ("LogSum", "LogSumExp", "Max", "Min")),
    *(One(f"mean_of_no_{dtype}", "ReduceMean", [EMPTY.astype(dtype), AXIS_1], {}, LAST) for dtype in ("f4", "i4")),
    One("log_sum_exp", "ReduceLogSumExp", [MIXED, AXIS_1], {}, LAST),
    *(One(f"log_sum_exp_{d}", "ReduceLogSumExp", [NEAR.astype(d), AXIS_1], {}, LAST) for d in ("i4", "i8")),
    One("max_nan", "ReduceMax", [MIXED[-1:]]),
    One("any", "ReduceMax", [BITS, AXIS_1], {}, LAST),
    One("every", "ReduceMin", [BITS, AXIS_1], {}, LAST),
    One("scalar", "ReduceSum", [np.array(3.0, np.float32)]),
    One("halves", "ReduceMean", [np.full((3, 3000), 0.1, np.float16), AXIS_1], {}, LAST),
    *(One(f"mean_of_large_{dtype}", "ReduceMean", [LARGE.astype(dtype), AXIS_1], {}, LAST) for dtype in ("i4", "u4")),
    One("arg_of_equal", "ArgMax", [np.array([[1, 2, 2, 0]], np.float32)], {"axis": 1}),
    One("backwards", "CumSum", [MIXED[1:3], np.array(1)], {"reverse": 1}, frozenset({1})),
]


@cache
def results() -> dict[str, list[Outcome]]:
    return outcomes(20, NODES)


@pytest.mark.parametrize(
    "label", [one.label for one in NODES if not one.label.startswith(("empty_M", "mean_of", "log_sum_exp_"))]
)
def test_hard_values(label: str) -> None:
    (outcome,) = results()[label]
    assert outcome.got.dtype == outcome.want.dtype
    loose = 1e-3 if outcome.want.dtype.itemsize == 2 else 1e-6
    np.testing.assert_allclose(outcome.got.astype(np.float64), outcome.want.astype(np.float64), rtol=loose)


@pytest.mark.parametrize(("label", "value"), [("empty_Max", -np.inf), ("empty_Min", np.inf)])
def test_the_extreme_of_nothing(label: str, value: float) -> None:
    (outcome,) = results()[label]
    np.testing.assert_array_equal(outcome.got, np.full((2, 1, 3), value, np.float32))


@pytest.mark.parametrize("dtype", ["i4", "u4"])
def test_the_mean_of_integers_lies_among_them(dtype: str) -> None:
    """Where their sum has more than 32 bits, too; onnx.reference wraps it around."""
    (outcome,) = results()[f"mean_of_large_{dtype}"]
    means = [sum(row) / 3 for row in LARGE.astype(dtype).tolist()]
    assert outcome.got.ravel().tolist() == [int(mean) for mean in means]


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_the_mean_of_nothing(dtype: str) -> None:
    """The standard leaves it open, and onnxruntime gives 0: PyTorch's EmbeddingBag has such means for bags of none."""
    (outcome,) = results()[f"mean_of_no_{dtype}"]
    np.testing.assert_array_equal(outcome.got, np.zeros((2, 1, 3), dtype))


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_the_exponentials_of_integers_are_those_of_the_differences(dtype: str) -> None:
    (outcome,) = results()[f"log_sum_exp_{dtype}"]
    exact = NEAR.max(1) + np.log(np.exp((NEAR - NEAR.max(1, keepdims=True)).astype(np.float64)).sum(1))
    assert outcome.got.ravel().tolist() == exact.astype(dtype).tolist()


def test_a_long_sum_keeps_its_digits() -> None:
    terms = np.random.default_rng(0).uniform(0, 1, (1, 300_007)).astype(np.float32)
    (outcome,) = outcomes(13, [One("long", "ReduceSum", [terms, AXIS_1], {}, LAST)])["long"]
    exact = terms.astype(np.float64).sum()
    assert abs(float(outcome.got.item()) - exact) / exact < 3e-7


def test_a_sum_of_integers_wraps_around() -> None:
    terms = np.array([[2**31 - 1, 1], [-5, 2]], np.int32)
    (outcome,) = outcomes(13, [One("wraps", "ReduceSum", [terms, AXIS_1], {"keepdims": 0}, LAST)])["wraps"]
    assert outcome.got.tolist() == [-(2**31), -3]


def axes(*numbers: int) -> Fact:
    return Fact(TensorType(i64, (len(numbers),)), np.array(numbers, dtype=object))


def test_an_axis_that_does_not_exist() -> None:
    with pytest.raises(Invalid, match="axis 2 is outside"):
        registry()["", "ReduceSum"]().infer(Site((Fact(TensorType(f32, (2, 3))), axes(2)), 1))


def test_axes_computed_at_run_time() -> None:
    with pytest.raises(Unsupported, match="known only at run time, and so is an operand"):
        site = Site((Fact(TensorType(f32, (symbol("n", 1, 9), 3))), Fact(TensorType(i64, (1,)))), 1)
        registry()["", "ReduceSum"]().infer(site)


def test_free_dimensions_stay_or_vanish() -> None:
    n = symbol("n", 1, 9)
    (fact,) = ReduceMax(keepdims=0).infer(Site((Fact(TensorType(f32, (n, 3, 4))), axes(1)), 1))
    assert fact.type == TensorType(f32, (n, 4))
