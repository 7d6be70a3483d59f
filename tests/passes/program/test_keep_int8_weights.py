"""Weights that the model stores as bytes stay bytes where memory counts, and give what their floats give."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mccompile.driver import Options, compile
from mccompile.measure.correctness import check
from tests.passes.program.test_narrow_weights import network
from tests.small_models import node, save


def stored(zero: int = 0) -> onnx.ModelProto:
    """The network of all kinds of products, its weights behind DequantizeLinear."""
    made, rng = network(), np.random.default_rng(0)
    for tensor in list(made.graph.initializer):
        shape = tuple(tensor.dims)
        axis = 0 if len(shape) > 2 else 1
        arrays = {
            "q": rng.integers(-127, 128, shape).astype(np.int8),
            "s": rng.uniform(0.001, 0.01, shape[axis]).astype(np.float32),
            "z": np.full(shape[axis], zero, np.int8),
        }
        made.graph.initializer.remove(tensor)
        made.graph.initializer.extend(numpy_helper.from_array(a, tensor.name + part) for part, a in arrays.items())
        names = " ".join(tensor.name + part for part in arrays)
        made.graph.node.insert(0, node("DequantizeLinear", names, tensor.name, axis=axis))
    return made


def dtypes(path: Path, options: Options) -> list[str]:
    return sorted(entry.contents.type.dtype.name for entry in compile(path, options).plan.entries)


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_a_quarter_of_the_bytes_and_the_same_results(target: str, tmp_path: Path) -> None:
    path = save(stored(), tmp_path)
    floats = compile(path, Options(target=target, without=frozenset({"keep_int8_weights"}))).plan
    plan = compile(path, Options(target=target)).plan
    assert sum(e.contents.type.max_bytes for e in plan.entries if e.contents.type.dtype.name == "i8") >= 40_000
    assert plan.data_bytes < 0.3 * floats.data_bytes
    assert check(path, Options(target=target), runs=1).ok


def test_where_time_comes_first_they_are_floats(tmp_path: Path) -> None:
    assert set(dtypes(save(stored(), tmp_path), Options(target="generic", prefer="time"))) == {"f32"}


def test_zero_points_keep_floats(tmp_path: Path) -> None:
    assert set(dtypes(save(stored(zero=3), tmp_path), Options())) == {"f32"}
    assert dtypes(save(stored(), tmp_path), Options()).count("i8") == 4


def layer(op: str, direction: str, along: int | None, bits: int = 8, zero: int = 0) -> onnx.ModelProto:
    """A recurrent layer whose weights are integers, with a scale for each index of an axis or one for all."""
    rng, hidden, inputs = np.random.default_rng(1), 24, 16
    directions, rows = 1 + (direction == "bidirectional"), hidden * {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    nodes, arrays = [], {"b": rng.uniform(-1, 1, (directions, 2 * rows)).astype(np.float32)}
    for name, shape in (("w", (directions, rows, inputs)), ("r", (directions, rows, hidden))):
        most = (1 << (bits - 1)) - 1 - abs(zero)
        arrays[f"{name}q"] = rng.integers(-most, most + 1, shape).astype(np.int8 if bits == 8 else ml_dtypes.int4)
        count = () if along is None else (shape[along],)
        arrays[f"{name}s"] = rng.uniform(0.5 / most, 1 / most, count).astype(np.float32)
        arrays[f"{name}z"] = np.full(count, zero, arrays[f"{name}q"].dtype)
        nodes.append(node("DequantizeLinear", f"{name}q {name}s {name}z", name, axis=along or 0))
    nodes.append(node(op, "x w r b", "y", hidden_size=hidden, direction=direction))
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (5, 1, inputs))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (5, directions, 1, hidden))],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    ("direction", "along", "bits", "zero"),
    [("forward", None, 8, 0), ("forward", 1, 8, 3), ("bidirectional", 1, 4, 0), ("bidirectional", 0, 8, 0)],
)
def test_recurrent_layers_keep_bytes(
    op: str, direction: str, along: int | None, bits: int, zero: int, tmp_path: Path
) -> None:
    path = save(layer(op, direction, along, bits, zero), tmp_path)
    plan = compile(path, Options()).plan
    bytes = sum(e.contents.type.max_bytes for e in plan.entries if e.contents.type.dtype.name == "i8")
    directions, rows = 1 + (direction == "bidirectional"), 24 * {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    assert bytes == directions * rows * (16 + 24)
    assert check(path, Options(), runs=2).ok
