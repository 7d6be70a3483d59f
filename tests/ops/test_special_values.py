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
