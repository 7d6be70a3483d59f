"""Weights that the model stores as bytes stay bytes where memory counts, and give what their floats give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

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
    floats = compile(path, Options(target=target, without=frozenset({"byte_weights"}))).plan
    plan = compile(path, Options(target=target)).plan
    assert sum(e.contents.type.max_bytes for e in plan.entries if e.contents.type.dtype.name == "i8") >= 40_000
    assert plan.data_bytes < 0.3 * floats.data_bytes
    assert check(path, Options(target=target), runs=1).ok


def test_where_time_comes_first_they_are_floats(tmp_path: Path) -> None:
    assert set(dtypes(save(stored(), tmp_path), Options(target="generic", prefer="time"))) == {"f32"}


def test_zero_points_keep_floats(tmp_path: Path) -> None:
    assert set(dtypes(save(stored(zero=3), tmp_path), Options())) == {"f32"}
    assert dtypes(save(stored(), tmp_path), Options()).count("i8") == 4
