"""NaN, infinities, zeros with a sign and the ends of integers, as the requirements of operators have them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from .bundle import One, Outcome, outcomes

NAN, INF = np.nan, np.inf
ODD = np.array([NAN, INF, -INF, -0.0, 0.0, -1.0], np.float32)
PICTURE = np.array([[[[NAN, 1, 2, 3], [4, 5, 6, -INF], [-1, -2, -3, -4], [-5, -6, INF, -8]]]], np.float32)
ONE, MIDDLE = np.array(1, np.float32), np.array(128, np.uint8)
IDENTITY = np.eye(2, dtype=np.float32)
KEPT = frozenset({1, 2, 3, 4})


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def u8(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint8)


CASES: dict[str, tuple[One, np.ndarray]] = {
    one.label: (one, want)
    for one, want in [
        (One("relu", "Relu", [ODD]), f32(NAN, INF, 0, 0, 0, 0)),
        (One("clip", "Clip", [ODD, f32(-2).reshape(()), f32(3).reshape(())]), f32(NAN, 3, -2, 0, 0, -1)),
        (One("clip_crossed", "Clip", [f32(-5, 0, 5), f32(3).reshape(()), f32(1).reshape(())]), f32(1, 1, 1)),
        (One("add", "Add", [ODD, ODD[::-1].copy()]), f32(NAN, INF, -INF, -INF, INF, NAN)),
        (One("add_infinities", "Add", [f32(INF, 3e38), f32(-INF, 3e38)]), f32(NAN, INF)),
        (One("mul", "Mul", [f32(INF, NAN, -1, 3e38), f32(0, 1, 0, -10)]), f32(NAN, NAN, -0.0, -INF)),
        (One("sigmoid", "Sigmoid", [f32(NAN, INF, -INF, 0)]), f32(NAN, 1, 0, 0.5)),
        (One("tanh", "Tanh", [f32(NAN, INF, -INF, -0.0)]), f32(NAN, 1, -1, -0.0)),
        (One("softmax_nan", "Softmax", [f32(1, NAN, 2)]), f32(NAN, NAN, NAN)),
        (One("softmax_nothing", "Softmax", [f32(-INF, -INF)]), f32(NAN, NAN)),
        (One("softmax_large", "Softmax", [f32(1e38, -INF, 1e38)]), f32(0.5, 0, 0.5)),
        (One("matmul", "MatMul", [f32(INF, 1, NAN, 0).reshape(2, 2), IDENTITY]),
         f32(INF, NAN, NAN, NAN).reshape(2, 2)),
        (One("gemm_beta", "Gemm", [IDENTITY, IDENTITY, f32(NAN, NAN)], {"beta": 0.0}), IDENTITY),
        (One("average_pool", "AveragePool", [PICTURE], {"kernel_shape": (2, 2), "strides": (2, 2)}),
         f32(NAN, -INF, -3.5, INF).reshape(1, 1, 2, 2)),
        (One("max_pool_pads", "MaxPool", [f32(-1, -2, -3, -4).reshape(1, 1, 4)],
             {"kernel_shape": (3,), "pads": (1, 1)}), f32(-1, -1, -2, -3).reshape(1, 1, 4)),
        (One("average_pool_pads", "AveragePool", [f32(2, 4, 6, 8).reshape(1, 1, 4)],
             {"kernel_shape": (3,), "pads": (1, 1)}), f32(3, 4, 6, 7).reshape(1, 1, 4)),
        (One("global_average_pool", "GlobalAveragePool", [PICTURE[:, :, 1:3]]), f32(-INF).reshape(1, 1, 1, 1)),
        (One("quantize_ends", "QuantizeLinear", [f32(INF, -INF, 300, -300), ONE, np.array(3, np.int8)]),
         np.array([127, -128, 127, -128], np.int8)),
        (One("quantize_ties", "QuantizeLinear", [f32(0.5, 1.5, 2.5, -0.5, -1.5), ONE, np.array(10, np.uint8)]),
         u8(10, 12, 12, 10, 8)),
        (One("dequantize", "DequantizeLinear", [u8(0, 255, 128), f32(0.5).reshape(()), MIDDLE]),
         f32(-64, 63.5, 0)),
        (One("reshape", "Reshape", [ODD, np.array([2, -1])], constant=frozenset({1})), ODD.reshape(2, 3)),
        (One("transpose", "Transpose", [ODD.reshape(2, 3)], {"perm": (1, 0)}), ODD.reshape(2, 3).T),
        (One("flatten", "Flatten", [ODD.reshape(1, 2, 3)], {"axis": 2}), ODD.reshape(2, 3)),
        (One("concat", "Concat", [ODD, ODD[:1]], {"axis": 0}), np.concatenate([ODD, ODD[:1]])),
        (One("pad", "Pad", [f32(1, 2, 3), np.array([2, -1]), f32(NAN).reshape(())], constant=frozenset({1})),
         f32(NAN, NAN, 1, 2)),
        (One("pad_reflect", "Pad", [f32(1, 2, 3), np.array([2, 1])], {"mode": "reflect"}, frozenset({1})),
         f32(3, 2, 1, 2, 3, 2)),
        (One("conv", "Conv", [f32(1, INF, 1, 1).reshape(1, 1, 4), f32(1, 0).reshape(1, 1, 2)]),
         f32(NAN, INF, 1).reshape(1, 1, 3)),
        (One("batch_normalization", "BatchNormalization",
             [f32(NAN, INF, 3).reshape(1, 1, 3), f32(2), f32(1), f32(1), f32(4)], {"epsilon": 0.0}, KEPT),
         f32(NAN, INF, 3).reshape(1, 1, 3)),
        (One("sub", "Sub", [f32(INF, INF, -3e38, NAN), f32(INF, -INF, 3e38, 1)]), f32(NAN, INF, -INF, NAN)),
        (One("div", "Div", [f32(1, -1, 0, INF, 1, NAN), f32(0, 0, 0, INF, -INF, 1)]),
         f32(INF, -INF, NAN, NAN, -0.0, NAN)),
        (One("div_of_ints", "Div", [np.array([-7, 7, -7], np.int32), np.array([2, -2, -2], np.int32)]),
         np.array([-3, -3, 3], np.int32)),
        (One("neg", "Neg", [f32(NAN, INF, 0.0, -0.0)]), f32(NAN, -INF, -0.0, 0.0)),
        (One("sqrt", "Sqrt", [f32(NAN, INF, -1, -0.0, 4)]), f32(NAN, INF, NAN, -0.0, 2)),
        (One("reciprocal", "Reciprocal", [f32(NAN, INF, -INF, 0.0, -0.0)]), f32(NAN, 0, -0.0, INF, -INF)),
        (One("exp", "Exp", [f32(NAN, INF, -INF, 0, 1000, -1000)]), f32(NAN, INF, 0, 1, INF, 0)),
        (One("erf", "Erf", [f32(NAN, INF, -INF, 0)]), f32(NAN, 1, -1, 0)),
        (One("softplus", "Softplus", [f32(NAN, INF, -INF, 200)]), f32(NAN, INF, 0, 200)),
        (One("elu", "Elu", [f32(NAN, INF, -INF, 2)]), f32(NAN, INF, -1, 2)),
        (One("selu", "Selu", [f32(NAN, INF, -INF)]), f32(NAN, INF, -1.7580993)),
        (One("pow", "Pow", [f32(NAN, -8, 0, 2, INF, 4), f32(0, 1 / 3, 0, INF, -1, 0.5)]), f32(1, NAN, 1, INF, 0, 2)),
        (One("prelu", "PRelu", [f32(NAN, INF, -INF, -2), f32(2, 2, 2, 0.5)]), f32(NAN, INF, -INF, -1)),
        (One("equal", "Equal", [f32(NAN, INF, 0.0, 1), f32(NAN, INF, -0.0, 2)]), np.array([0, 1, 1, 0], np.bool_)),
        (One("less", "Less", [f32(NAN, 1, -INF, 0.0), f32(1, NAN, INF, -0.0)]), np.array([0, 0, 1, 0], np.bool_)),
        (One("where", "Where", [np.array([True, False]), f32(NAN, 1), f32(1, -INF)]), f32(NAN, -INF)),
        (One("cast_to_bool", "Cast", [f32(NAN, -0.0, 0.3)], {"to": 9}), np.array([1, 0, 1], np.bool_)),
        (One("cast_wraps", "Cast", [np.array([300, -129, 128], np.int32)], {"to": 3}),
         np.array([44, 127, -128], np.int8)),
        (One("gather", "Gather", [ODD, np.array([-1, 0, 5])], constant=frozenset({1})), f32(-1, NAN, -1)),
        (One("slice", "Slice", [ODD, *(np.array([n]) for n in (-1, -9, 0, -2))], constant=KEPT), f32(-1, -0.0, INF)),
        (One("reduce_max", "ReduceMax", [f32(1, -INF, INF)]), f32(INF)),
        (One("reduce_mean", "ReduceMean", [f32(INF, 1, -INF)]), f32(NAN)),
        (One("arg_max_nan", "ArgMax", [f32(1, NAN, 3, NAN)]), np.array([1], np.int64)),
        (One("log_softmax", "LogSoftmax", [f32(1e38, -INF, 1e38)]), f32(np.log(0.5), -INF, np.log(0.5))),
        (One("layer_normalization", "LayerNormalization", [f32(NAN, 1, 5, 5).reshape(2, 2), f32(1, 1), f32(0, 3)],
             constant=KEPT), f32(NAN, NAN, 0, 3).reshape(2, 2)),
        (One("instance_normalization", "InstanceNormalization",
             [f32(INF, 1, 5, 5).reshape(1, 2, 2), f32(1, 1), f32(0, 3)], constant=KEPT),
         f32(NAN, NAN, 3, 3).reshape(1, 2, 2)),
        (One("depth_to_space", "DepthToSpace", [ODD[:4].reshape(1, 4, 1, 1)], {"blocksize": 2}),
         ODD[:4].reshape(1, 1, 2, 2)),
        (One("conv_transpose", "ConvTranspose", [f32(INF, 1).reshape(1, 1, 2), f32(0, 2).reshape(1, 1, 2)]),
         f32(NAN, INF, 2).reshape(1, 1, 3)),
        (One("one_hot", "OneHot", [np.array([-1, 3, 9]), np.array(4), f32(-0.5, NAN)], constant=frozenset({1})),
         f32(-0.5, -0.5, -0.5, NAN, -0.5, -0.5, -0.5, NAN, -0.5, -0.5, -0.5, -0.5).reshape(3, 4)),
        (One("expand", "Expand", [f32(NAN), np.array([1, 3])], constant=frozenset({1})),
         f32(NAN, NAN, NAN).reshape(1, 3)),
    ]
}  # fmt: skip


@cache
def results() -> dict[str, list[Outcome]]:
    return outcomes(21, [one for one, _ in CASES.values()])


@pytest.mark.parametrize("label", CASES)
def test_special_values(label: str) -> None:
    (outcome,), (_, want) = results()[label], CASES[label]
    assert outcome.got.dtype == want.astype(outcome.got.dtype).dtype and outcome.got.shape == want.shape
    np.testing.assert_allclose(outcome.got, want, rtol=1e-6, atol=0)
    if label not in ("relu", "clip"):  # the sign of a zero among two is open
        assert (np.signbit(outcome.got) == np.signbit(want))[want == 0].all()
