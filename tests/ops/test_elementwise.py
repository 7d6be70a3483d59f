"""Elementwise operators where it is easy to go wrong: large arguments, NaN, overflow, narrow floats, wrong shapes."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from mccompile.base.dims import symbol
from mccompile.base.dtypes import f32, i32
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site, Unsupported
from mccompile.ops.api import registry

from .bundle import One, Outcome, outcomes

LARGE = np.array([-1e4, -700, -90, -30, -1e-4, 1e-4, 30, 90, 700, 1e4])
HALVES = np.array([-60000, -2.5, -1e-3, 0, 0.3, 3.7, 60000], np.float16)
NANS = np.array([np.nan, 1, -1], np.float32)
EDGES = np.array([-(2**31), 2**31 - 1, 2**30], np.int32)

NODES = [
    One("softplus", "Softplus", [LARGE]),
    One("sigmoid", "Sigmoid", [LARGE]),
    One("mish", "Mish", [LARGE]),
    One("elu", "Elu", [LARGE]),
    One("max_nan", "Max", [NANS, NANS[::-1].copy()]),
    One("min_nan", "Min", [NANS, NANS[::-1].copy()]),
    One("relu_nan", "Relu", [NANS]),
    One("clip_nan", "Clip", [NANS, np.array(0, np.float32), None]),
    One("add_wraps", "Add", [EDGES, EDGES]),
    One("mul_wraps", "Mul", [EDGES, EDGES]),
    One("abs_wraps", "Abs", [EDGES]),
    One("add_halves", "Add", [HALVES, HALVES]),
    One("exp_halves", "Exp", [HALVES[1:-1]]),
    One("gelu_halves", "Gelu", [HALVES[1:-1]]),
    One("mul_bfloats", "Mul", [HALVES.astype(ml_dtypes.bfloat16), HALVES.astype(ml_dtypes.bfloat16)]),
    One("to_u4", "Cast", [np.array([0.0, 3.9, 15.0], np.float32)], {"to": TensorProto.UINT4}),
    One("to_f8", "Cast", [np.array([1e9, -1e9, 0.3], np.float32)], {"to": TensorProto.FLOAT8E4M3FN}),
    One("to_f8_wild", "Cast", [np.array([1e9, 0.3], np.float32)], {"to": TensorProto.FLOAT8E4M3FN, "saturate": 0}),
    One("like_i16", "CastLike", [np.array([70000, -1], np.int32), np.zeros(1, np.int16)]),
    One("shrink_ints", "Shrink", [np.array([-3, 0, 2], np.int64)], {"lambd": 1.5, "bias": 0.5}),
    One("no_bounds", "Clip", [NANS]),
    One("one_operand", "Mean", [NANS]),
]


@cache
def results() -> dict[str, list[Outcome]]:
    return outcomes(21, NODES)


@pytest.mark.parametrize("label", [one.label for one in NODES])
def test_hard_values(label: str) -> None:
    (outcome,) = results()[label]
    assert outcome.got.dtype == outcome.want.dtype
    loose = 2e-3 if outcome.want.dtype.itemsize == 2 else 1e-6
    got, want = outcome.got.astype(np.float64), outcome.want.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=loose, atol=1e-15)


def facts(*types: TensorType) -> Site:
    return Site(tuple(Fact(type) for type in types), 1)


def test_shapes_that_do_not_broadcast_contradict_the_standard() -> None:
    with pytest.raises(Invalid, match="2x3, 4 do not broadcast"):
        registry()["", "Add"]().infer(facts(TensorType(f32, (2, 3)), TensorType(f32, (4,))))


def test_a_free_dimension_against_a_number_is_not_guessed() -> None:
    free = TensorType(f32, (symbol("n", 1, 9),))
    with pytest.raises(Unsupported, match="only where n is 4"):
        registry()["", "Add"]().infer(facts(free, TensorType(f32, (4,))))


def test_free_dimensions_stay() -> None:
    n = symbol("n", 1, 9)
    (fact,) = registry()["", "Mul"]().infer(facts(TensorType(f32, (n, 1)), TensorType(f32, (4,))))
    assert fact.type == TensorType(f32, (n, 4))


@pytest.mark.parametrize("op", ["Sqrt", "Gelu"])
def test_integers_are_not_taken_for_floats(op: str) -> None:
    with pytest.raises(Invalid, match=f"{op} takes floats, operand 0 is i32"):
        registry()["", op]().infer(facts(TensorType(i32, (2,))))


def test_operands_of_two_types() -> None:
    with pytest.raises(Invalid, match="different types"):
        registry()["", "Add"]().infer(facts(TensorType(f32, (2,)), TensorType(i32, (2,))))


def test_a_condition_is_bool() -> None:
    x = TensorType(f32, (2,))
    with pytest.raises(Invalid, match="condition"):
        registry()["", "Where"]().infer(facts(x, x, x))


def test_a_slope_does_not_widen_x() -> None:
    with pytest.raises(Invalid, match="slope"):
        registry()["", "PRelu"]().infer(facts(TensorType(f32, (3,)), TensorType(f32, (2, 3))))
