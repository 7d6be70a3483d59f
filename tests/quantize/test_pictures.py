"""A folder of pictures is refused with the command that makes samples of them, in the layout of the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from mccompile.base.errors import BadFile
from mccompile.frontend.load import load
from mccompile.quantize.samples import read_samples


@pytest.mark.parametrize(
    ("shape", "fix"),
    [
        ("1,3,24,32", "convert('RGB').resize((32, 24)), 'f4').reshape(24, 32, 3).transpose(2, 0, 1) / 255"),
        ("1,24,32,1", "convert('L').resize((32, 24)), 'f4').reshape(24, 32, 1) / 255"),
        ("1,4", "give an .npz file"),
    ],
)
def test_pictures_are_refused_with_what_makes_samples_of_them(shape: str, fix: str, tmp_path: Path) -> None:
    text = f'<ir_version: 9, opset_import: ["" : 17]> g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}'
    (tmp_path / "g.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    (tmp_path / "pictures" / "cats").mkdir(parents=True)
    (tmp_path / "pictures" / "cats" / "1.png").touch()
    with pytest.raises(BadFile) as refused:
        read_samples(tmp_path / "pictures", load(tmp_path / "g.onnx"))
    assert fix in str(refused.value)
