"""Files that LiteRT runs though they say less than converters write: without names, without shapes, with numbers of 32
bits that stand for floats, with complex numbers that change their shape."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile

from .build import Net
from .litert import Litert

_COMPILER = shutil.which("tcc") or "cc"
CHANCE = np.random.default_rng(5)


def same(data: bytes, *inputs: np.ndarray, within: float = 0) -> None:
    found = mccompile.load(data, target="generic", cc=_COMPILER)(*inputs)
    for got, wanted in zip(found, Litert(data)(inputs), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=within, atol=within)


@pytest.mark.parametrize(("source", "target"), [("INT16", "INT32"), ("INT32", "INT16"), ("INT32", "INT8")])
def test_integers_of_32_bits_that_stand_for_floats(source: str, target: str) -> None:
    scales = {"INT8": 0.5, "INT16": 0.01, "INT32": 0.0003}
    net = Net()
    x = net.input((1, 40), source, scales[source], 0, name="x")
    y = net.tensor((1, 40), target, scales[target], 0)
    net.op("QUANTIZE", [x], [y], "QuantizeOptions")
    given = CHANCE.integers(-30000, 30001, (1, 40)).astype(source.lower())
    found = mccompile.load(net.file([y]), target="generic", cc=_COMPILER)(given)[0]
    assert np.abs(found.astype(np.int64) - Litert(net.file([y]))([given])[0]).max() <= 1  # it rounds twice


def test_what_has_no_name() -> None:
    net = Net()
    x, first, last = net.input((1, 5), name=""), net.tensor((1, 5), name=""), net.tensor((1, 5), name="")
    net.op("ABS", [x], [first])
    net.op("NEG", [first], [last])
    same(net.file([last]), CHANCE.standard_normal((1, 5)).astype(np.float32))


def test_complex_numbers_in_another_shape() -> None:
    net = Net()
    x = net.input((3, 1, 16), name="x")
    spectra, flat = net.tensor((3, 1, 9), "COMPLEX64"), net.tensor((3, 9), "COMPLEX64")
    y = net.tensor((3, 9))
    net.op("RFFT2D", [x, net.constant(np.array([1, 16], np.int32))], [spectra], "Rfft2dOptions")
    net.op("RESHAPE", [spectra, net.constant(np.array([3, 9], np.int32))], [flat], "ReshapeOptions")
    net.op("COMPLEX_ABS", [flat], [y])
    same(net.file([y]), CHANCE.standard_normal((3, 1, 16)).astype(np.float32), within=1e-5)


def test_what_operators_make_without_shapes() -> None:
    net = Net()
    x = net.input((1, 6, 6, 2), name="x")
    w = net.constant(CHANCE.standard_normal((3, 3, 3, 2)).astype(np.float32))
    made, pooled, flat = (net.tensor(()) for _ in range(3))
    net.op("CONV_2D", [x, w, net.constant(np.ones(3, np.float32))], [made], "Conv2DOptions", StrideH=1, StrideW=1)
    net.op(
        "AVERAGE_POOL_2D", [made], [pooled], "Pool2DOptions", StrideH=2, StrideW=2, FilterHeight=2, FilterWidth=2,
    )  # fmt: skip
    net.op("RESHAPE", [pooled, net.constant(np.array([1, -1], np.int32))], [flat], "ReshapeOptions")
    y = net.tensor(())
    net.op("SOFTMAX", [flat], [y], "SoftmaxOptions", Beta=1.0)
    same(net.file([y]), CHANCE.standard_normal((1, 6, 6, 2)).astype(np.float32), within=1e-5)
