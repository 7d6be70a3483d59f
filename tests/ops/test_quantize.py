"""Quantization: ties, saturation, and parameters that do not fit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mccompile.base.dtypes import f32, i8, u8
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site
from mccompile.ops.api import registry

from .bundle import One, Outcome, outcomes

TIES = np.array([-1e9, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9], np.float32)
ONE = np.array(1.0, np.float32)

NODES = [
    One("ties", "QuantizeLinear", [TIES, ONE, np.array(3, np.int8)]),
    One("ties_u8", "QuantizeLinear", [TIES, ONE, np.array(3, np.uint8)]),
    One("ties_u16", "QuantizeLinear", [TIES, ONE, np.array(60000, np.uint16)]),
    One("of_zeros", "DynamicQuantizeLinear", [np.zeros(4, np.float32)], outs=3),
    One("all_negative", "DynamicQuantizeLinear", [-np.abs(TIES[1:-1])], outs=3),
    One("from_i32", "DequantizeLinear", [np.array([-(2**31), 5, 2**24 + 1], np.int32), np.array(0.5, np.float32)]),
    One("to_half", "DequantizeLinear", [np.array([-7, 99], np.int8), np.array(0.1, np.float16), np.array(2, np.int8)]),
]


@cache
def results() -> dict[str, list[Outcome]]:
    return outcomes(21, NODES)


@pytest.mark.parametrize("label", [one.label for one in NODES])
def test_hard_values(label: str) -> None:
    for outcome in results()[label]:
        assert outcome.got.dtype == outcome.want.dtype
        np.testing.assert_array_equal(outcome.got, outcome.want)


def infer(op: str, *types: TensorType, **attributes: int) -> list[Fact]:
    return list(registry()["", op](**attributes).infer(Site(tuple(Fact(type) for type in types), 1)))


def test_a_scale_per_axis_has_its_length() -> None:
    with pytest.raises(Invalid, match="does not fit axis 1"):
        infer("QuantizeLinear", TensorType(f32, (2, 3)), TensorType(f32, (2,)), axis=1)


def test_a_scale_per_block_has_one_element_per_block() -> None:
    with pytest.raises(Invalid, match="blocks of 2"):
        infer("QuantizeLinear", TensorType(f32, (2, 6)), TensorType(f32, (2, 2)), axis=1, block_size=2)


def test_scale_and_zero_point_agree() -> None:
    with pytest.raises(Invalid, match="zero point"):
        infer("QuantizeLinear", TensorType(f32, (2, 3)), TensorType(f32, (3,)), TensorType(u8, (2,)))


def test_output_dtype_and_zero_point_agree() -> None:
    with pytest.raises(Invalid, match="output_dtype"):
        infer("QuantizeLinear", TensorType(f32, (2,)), TensorType(f32, ()), TensorType(i8, ()), output_dtype=2)
