"""Constants as files hold them: sparse, behind the flatbuffer, of half a byte or of half a float."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile
from mccompile.base.errors import BadFile
from mccompile.importers.tflite.file import read

from .build import Net
from .litert import Litert

_COMPILER = shutil.which("tcc") or "cc"


def sparse_layer(blocks: bool) -> tuple[bytes, np.ndarray]:
    """Weights of a layer, row by row, or in blocks of four columns; what they are."""
    chance = np.random.default_rng(0)
    kept = chance.random((5, 3)) < 0.5
    weights = np.where(np.repeat(kept, 4, axis=1), chance.uniform(-2, 2, (5, 12)), 0).astype(np.float32)
    if not blocks:
        weights[chance.random((5, 12)) < 0.3] = 0
    there = kept if blocks else weights != 0
    segments = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    positions = np.nonzero(there)[1]
    if blocks:
        data, levels = weights.reshape(5, 3, 4)[kept].reshape(-1), [5, (segments, positions), 4]
    else:
        data, levels = weights[there], [5, (segments, positions)]
    net = Net()
    x, y = net.input((1, 12)), net.tensor((1, 5))
    sparsity = (range(len(levels)), [1] if blocks else [], levels)
    w = net.tensor((5, 12), data=data, sparsity=sparsity)
    net.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnectedOptions")
    return net.file([y]), weights


@pytest.mark.parametrize("blocks", [False, True])
def test_sparse_weights_are_made_dense(blocks: bool) -> None:
    data, weights = sparse_layer(blocks)
    found = next(t for t in read(data).subgraphs[0].tensors if t.data is not None)
    np.testing.assert_array_equal(found.data, weights)
    x = np.random.default_rng(1).uniform(-1, 1, (1, 12)).astype(np.float32)
    (got,), (wanted,) = mccompile.load(data, target="generic", cc=_COMPILER)(x), Litert(data)([x])
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_sparse_positions_that_do_not_fit_are_refused() -> None:
    net = Net()
    net.tensor((5, 12), data=np.zeros(8, np.float32), sparsity=([0, 1], [], [5, ([0, 1, 2, 3, 4, 8], [12] * 8)]))
    x, y = net.input((1,)), net.tensor((1,))
    net.op("ABS", [x], [y], "AbsOptions")
    with pytest.raises(BadFile, match="positions of a sparse tensor do not fit"):
        mccompile.compile(net.file([y]))


def test_a_buffer_behind_the_flatbuffer() -> None:
    net = Net()
    x, y = net.input((1, 4)), net.tensor((1, 4))
    net.op("ADD", [x, net.constant(np.arange(4, dtype=np.float32))], [y], "AddOptions")
    net.outside = True
    data = net.file([y])
    constant = next(t for t in read(data).subgraphs[0].tensors if t.data is not None)
    np.testing.assert_array_equal(constant.data, np.arange(4))
    x = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(mccompile.load(data, target="generic", cc=_COMPILER)(x)[0], Litert(data)([x])[0])
    with pytest.raises(BadFile, match="outside of the file"):
        mccompile.compile(data[:-8])


@pytest.mark.parametrize("name", ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"])
def test_weights_of_int8_with_activations_of_floats(name: str) -> None:
    """TFLite rounds activations to 8 bits in every run; here they stay floats."""
    chance = np.random.default_rng(2)
    net = Net()
    shapes = {
        "FULLY_CONNECTED": ((1, 64), (40, 64), (1, 40)),
        "CONV_2D": ((1, 6, 6, 8), (5, 3, 3, 8), (1, 6, 6, 5)),
        "DEPTHWISE_CONV_2D": ((1, 6, 6, 8), (1, 3, 3, 8), (1, 6, 6, 8)),
    }
    given_shape, w_shape, out = shapes[name]
    x, y = net.input(given_shape), net.tensor(out)
    axis = 3 if name.startswith("D") else 0
    count = w_shape[axis] if "CONV" in name else 1
    w = net.constant(chance.integers(-127, 128, w_shape).astype(np.int8), np.full(count, 0.01), 0, axis)
    window = {f"{what}{side}": 1 for what, side in (("Stride", "H"), ("Stride", "W"))} if "CONV" in name else {}
    window |= {"DilationHFactor": 1, "DilationWFactor": 1} if "CONV" in name else {}
    window |= {"DepthMultiplier": 1} if name.startswith("D") else {}
    bias = net.constant(np.zeros(out[-1], np.float32))
    options = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions"}
    net.op(name, [x, w, bias], [y], options.get(name, "DepthwiseConv2DOptions"), **window)
    data = net.file([y])
    given = chance.uniform(-1, 1, given_shape).astype(np.float32)
    got, wanted = mccompile.load(data, target="generic", cc=_COMPILER)(given)[0], Litert(data)([given])[0]
    assert np.abs(got - wanted).max() < 0.02 * np.abs(wanted).max()
    assert mccompile.compile(data).check(runs=2).ok


def test_weights_of_int8_stay_bytes_where_memory_comes_first() -> None:
    net = Net()
    x, y = net.input((1, 64)), net.tensor((1, 40))
    w = net.constant(np.random.default_rng(2).integers(-127, 128, (40, 64)).astype(np.int8), 0.01, 0)
    net.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnectedOptions")
    assert mccompile.compile(net.file([y]), target="cortex-m4").report["weights_bytes"] < 40 * 64 * 2


def test_data_that_do_not_have_the_size_of_the_shape() -> None:
    net = Net()
    x, y = net.input((1, 4)), net.tensor((1, 4))
    net.op("ADD", [x, net.tensor((1, 4), data=np.zeros(3, np.float32))], [y], "AddOptions")
    with pytest.raises(BadFile, match=r"'t2' is FLOAT32\[1, 4\], and has 12 bytes"):
        mccompile.compile(net.file([y]))
