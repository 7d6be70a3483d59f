"""What was learned, written back into the file that it comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.base.errors import WrongUse
from mccompile.frontend.learned import write_learned

TEXT = """<ir_version: 10, opset_import: ["": 18]> g (float[1,2] x) => (float[1,3] z)
    <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {0, 0, 0}> { y = MatMul(x, w) z = Add(y, b) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(TEXT), path, save_as_external_data=True, location="weights", size_threshold=0)
    return path


def test_weights_of_other_files_come_along(model: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_learned(model, {"b": np.float32([7, 8, 9])}, elsewhere / "learned.onnx")
    arrays = [numpy_helper.to_array(tensor) for tensor in onnx.load(elsewhere / "learned.onnx").graph.initializer]
    assert [array.ravel().tolist() for array in arrays] == [[1, 2, 3, 4, 5, 6], [7, 8, 9]]


def test_weights_that_the_file_does_not_hold_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="c cannot be written back"):
        write_learned(model, {"c": np.float32([1])}, tmp_path / "learned.onnx")
    assert not (tmp_path / "learned.onnx").exists()


def test_floats_take_the_place_of_what_dequantizes_integers(tmp_path: Path) -> None:
    path, learned = tmp_path / "model.onnx", tmp_path / "learned.onnx"
    onnx.save(
        parser.parse_model("""<ir_version: 10, opset_import: ["": 18]> g (float[1,2] x) => (float[1,3] z)
        <int8[2,3] q = {1, 2, 3, 4, 5, 6}, float s = {0.5}> { w = DequantizeLinear(q, s) z = MatMul(x, w) }"""),
        path,
    )
    write_learned(path, {"w": np.ones((2, 3), np.float32)}, learned)
    graph = onnx.load(learned).graph
    assert [node.op_type for node in graph.node] == ["MatMul"]
    assert numpy_helper.to_array(graph.initializer[-1]).tolist() == [[1, 1, 1], [1, 1, 1]]
