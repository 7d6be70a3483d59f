"""Random inputs suit what they are for; stored ones are read as ONNX's own tests have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from mccompile.base.errors import BadFile
from mccompile.check.inputs import random_sets, stored_sets
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from tests.small_models import node


def graph_of(*nodes: object, **types: tuple[int, tuple[int, ...]]) -> Graph:
    inputs = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in types.items()]
    output = helper.make_empty_tensor_value_info("y")
    table = numpy_helper.from_array(np.zeros((7, 2), np.float32), "table")
    graph = helper.make_graph(list(nodes), "g", inputs, [output], [table])
    return load_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def test_the_same_seed_gives_the_same_inputs() -> None:
    graph = graph_of(node("Neg", "x", "y"), x=(TensorProto.FLOAT, (100,)))
    first, again, other = ([data.inputs["x"] for data in random_sets(graph, seed, 2)] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[0], other[0])
    assert 0.7 < np.std(first[0]) < 1.3


@pytest.mark.parametrize("through", ["", "Cast"])
def test_an_index_stays_in_its_table(through: str) -> None:
    nodes = [node("Gather", "table i", "y")]
    dtype = TensorProto.INT64
    if through:
        nodes.insert(0, node("Cast", "x", "i", to=TensorProto.INT64))
        dtype = TensorProto.FLOAT
    graph = graph_of(*nodes, **{"x" if through else "i": (dtype, (500,))})
    (data,) = random_sets(graph, 0, 1)
    (values,) = data.inputs.values()
    assert set(np.unique(values)) == set(range(7))


def test_every_8_bit_value_is_tried() -> None:
    graph = graph_of(node("Cast", "x", "y", to=TensorProto.FLOAT), x=(TensorProto.UINT8, (9999,)))
    (data,) = random_sets(graph, 0, 1)
    assert len(np.unique(data.inputs["x"])) == 256


def test_stored_sets(tmp_path: Path) -> None:
    for number in (0, 1):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        for name in ("input_0", "input_1", "output_0"):
            array = np.full(2, number, np.int32)
            (folder / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    found = stored_sets(tmp_path, ["a", "b"])
    assert [data.name for data in found] == ["test_data_set_0", "test_data_set_1"]
    np.testing.assert_array_equal(found[1].inputs["b"], [1, 1])
    assert found[1].outputs is not None and len(found[1].outputs) == 1
    assert len(stored_sets(tmp_path / "test_data_set_1", ["a", "b"])) == 1
    with pytest.raises(BadFile, match="2 inputs, the model takes 1: a"):
        stored_sets(tmp_path, ["a"])


def test_stored_nonsense_is_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "input_0.pb").write_bytes(b"nonsense")
    with pytest.raises(BadFile, match="bad test data"):
        stored_sets(tmp_path, ["a"])


def test_what_indices_are_counted_from_is_0_or_1() -> None:
    count = node("CumSum", "mask axis", "places")
    graph = graph_of(
        node("Constant", "", "axis", value_int=0),
        count,
        node("Gather", "table places", "y"),
        mask=(TensorProto.INT64, (500,)),
    )
    (data,) = random_sets(graph, 0, 1)
    assert set(np.unique(data.inputs["mask"])) == {0, 1}


def test_places_in_a_cache_stay_inside() -> None:
    text = "(float[1,4,2] x, float[1,1,2] u, int64[1] at) => (float[1,4,2] y) { y = TensorScatter(x, u, at) }"
    graph = load_proto(parser.parse_model(f'<ir_version: 11, opset_import: ["": 24]> g {text}'))
    assert {int(made.inputs["at"][0]) for made in random_sets(graph, 0, 40)} == {0, 1, 2, 3}


def test_integers_that_no_output_depends_on_are_1() -> None:
    text = """(float[3] x, int64[1,5] mask, int64[2] b) => (float[3] y) {
        s = Shape(mask)
        total = ReduceSum(mask)
        less = Sub(total, total)
        n = Cast<to = 1>(s)
        k = ReduceSum(n)
        c = Cast<to = 1>(b)
        j = ReduceSum<keepdims = 0>(c)
        z = Mul(x, k)
        y = Mul(z, j)
    }"""
    graph = load_proto(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}'))
    (made,) = random_sets(graph, 0, 1)
    assert (made.inputs["mask"] == 1).all() and not (made.inputs["b"] == 1).all()
