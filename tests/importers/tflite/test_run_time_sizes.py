"""Operators whose results have sizes that are known only at run time, and others that have no random cases."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile
from mccompile.base.errors import UnsupportedModel

from .build import Net
from .litert import Litert

_COMPILER = shutil.which("tcc") or "cc"


def run(net: Net, outputs: list[int], *inputs: np.ndarray) -> None:
    data = net.file(outputs)
    found = mccompile.load(data, target="generic", cc=_COMPILER)(*inputs)
    for got, wanted in zip(found, Litert(data)(inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_where_gives_the_places_of_what_is_true() -> None:
    net = Net()
    x, y = net.input((3, 4), "BOOL"), net.tensor((5, 2), "INT64")
    net.op("WHERE", [x], [y], "WhereOptions")
    run(net, [y], np.random.default_rng(0).random((3, 4)) < 0.4)


def test_a_range_of_known_numbers_is_a_constant() -> None:
    net = Net()
    x, y, made = net.input((3,), "INT32"), net.tensor((3,), "INT32"), net.tensor((3,), "INT32")
    net.op("RANGE", [net.constant(np.array(n, np.int32)) for n in (2, 8, 2)], [y], "RangeOptions")
    net.op("ADD", [x, y], [made], "AddOptions")
    run(net, [made], np.array([3, 1, 5], np.int32))


def test_a_range_of_numbers_that_are_computed_is_refused() -> None:
    net = Net()
    limit, y = net.input((), "INT32"), net.tensor((5,), "INT32")
    start, step = (net.constant(np.array(n, np.int32)) for n in (0, 1))
    net.op("RANGE", [start, limit, step], [y], "RangeOptions")
    with pytest.raises(UnsupportedModel, match=r"RANGE cannot be compiled(?s:.*)operand 1 .* is computed at run time"):
        mccompile.compile(net.file([y]))


@pytest.mark.parametrize("count", [1, 3, 6])
def test_how_many_are_the_largest_is_computed(count: int) -> None:
    net = Net()
    x, k, less = net.input((2, 6)), net.input((), "INT32"), net.tensor((), "INT32")
    y, places = net.tensor((2, 1), open=[1]), net.tensor((2, 1), "INT32", open=[1])
    net.op("SUB", [k, net.constant(np.array(1, np.int32))], [less], "SubOptions")
    net.op("TOPK_V2", [x, less], [y, places], "TopKV2Options")
    x_of = np.random.default_rng(4).standard_normal((2, 6)).astype(np.float32)
    run(net, [y, places], x_of, np.array(count + 1, np.int32))


def test_unique_gives_values_in_the_order_of_their_first_place() -> None:
    net = Net()
    x, y, places = net.input((6,), "INT32"), net.tensor((6,), "INT32"), net.tensor((6,), "INT32")
    net.op("UNIQUE", [x], [y, places], "UniqueOptions", IdxOutType=2)
    run(net, [y, places], np.array([3, 1, 3, 2, 1, 9], np.int32))


def test_sparse_to_dense_puts_values_on_a_default() -> None:
    net = Net()
    x, y = net.input((2,)), net.tensor((2, 3))
    constants = [np.array([[0, 1], [1, 2]], np.int32), np.array([2, 3], np.int32), np.array(-1, np.float32)]
    places, shape, default = (net.constant(array) for array in constants)
    net.op("SPARSE_TO_DENSE", [places, shape, x, default], [y])
    run(net, [y], np.array([5, 6], np.float32))


def test_a_single_step_of_a_recurrent_layer() -> None:
    net, chance = Net(), np.random.default_rng(1)
    x, y, state = net.input((1, 2)), net.tensor((1, 3)), net.tensor((1, 3), variable=True)
    weights = [net.constant(chance.uniform(-1, 1, shape).astype(np.float32)) for shape in ((3, 2), (3, 3), (3,))]
    net.op("RNN", [x, *weights, state], [y], "RNNOptions", FusedActivationFunction=4)
    run(net, [y], np.array([[0.5, -0.7]], np.float32))


def test_a_composite_is_what_its_subgraph_does() -> None:
    net = Net()
    x, y = net.input((4,)), net.tensor((4,))
    number, inside = net.subgraph("inside")
    a, made = inside.input((4,)), inside.tensor((4,))
    inside.op("ABS", [a], [made], "AbsOptions")
    inside.outputs = [made]
    net.op("STABLEHLO_COMPOSITE", [x], [y], "StableHLOCompositeOptions", DecompositionSubgraphIndex=number)
    (found,) = mccompile.load(net.file([y]), target="generic", cc=_COMPILER)(np.array([-1, 2, -3, 4], np.float32))
    np.testing.assert_array_equal(found, [1, 2, 3, 4])
