"""Files that commands write: never one that ONNX's checker or our own reader refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from mccompile import cli
from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.written import checked_bytes

HEAD = '<ir_version: 10, opset_import: ["": 18]> g (float[n,3] x) => (float[n,3] z) '
SORTED, UNSORTED = "{ y = Abs(x) z = Neg(y) }", "{ z = Neg(y) y = Abs(x) }"


def test_a_valid_model_with_open_sizes_is_written_as_it_is() -> None:
    model = parser.parse_model(HEAD + SORTED)
    assert checked_bytes(model, Path()) == model.SerializeToString()


def test_what_an_importer_made_wrong_is_refused() -> None:
    model = parser.parse_model(HEAD + SORTED)
    model.graph.node[0].output[0] = ""
    with pytest.raises(UnsupportedModel, match="no valid ONNX model"):
        checked_bytes(model, Path())


def test_convert_leaves_no_broken_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, made = tmp_path / "a.onnx", tmp_path / "b.onnx"
    source.write_bytes(parser.parse_model(HEAD + UNSORTED).SerializeToString())
    assert cli.run(["convert", str(source), "-o", str(made)]) == 3
    assert not made.exists() and "nothing is written" in capsys.readouterr().err


def test_operators_that_onnx_calls_deprecated_stay(tmp_path: Path) -> None:
    """PyTorch writes this one for opset 18, and runtimes compute it; a broken file of another reason stays refused."""
    text = "(float[1,4,3] x) => (float[1,4,3] y) <float[2] s = {1, 2}> { y = GroupNormalization<num_groups=2>(x, s, s)"
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> g {text} }}')
    assert checked_bytes(model, Path(), model) == model.SerializeToString()
    with pytest.raises(UnsupportedModel, match="deprecated"):
        checked_bytes(model, Path())
    with pytest.raises(UnsupportedModel, match="deprecated"):
        checked_bytes(model, Path(), parser.parse_model(HEAD + SORTED))
    source, made = tmp_path / "a.onnx", tmp_path / "b.onnx"
    source.write_bytes(model.SerializeToString())
    assert cli.run(["convert", str(source), "-o", str(made)]) == 0
