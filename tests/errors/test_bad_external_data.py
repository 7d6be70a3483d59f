"""Tensors in files of their own: what is said when they cannot be had, and that nothing outside the folder is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import BadFile
from mccompile.frontend.load import load, load_proto


def model(folder: Path, location: str, count: int = 4, **entries: object) -> Path:
    keys = "".join(f', "{key}": "{value}"' for key, value in entries.items())
    text = f"""<ir_version: 9, opset_import: ["" : 17]>
        g (float[{count}] x) => (float[{count}] y) <float[{count}] w = ["location": "{location}"{keys}]>
        {{ y = Add(x, w) }}"""
    path = folder / "net.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return path


def told(path: Path) -> list[str]:
    with pytest.raises(BadFile) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert lines[:2] == ["error: a tensor cannot be read", "  where  initializer 'w' in net.onnx"]
    return [line.strip() for line in lines[2:]]


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    assert told(model(tmp_path, "w.bin")) == [
        "why    its data lies in 'w.bin', which does not exist",
        "fix    copy that file beside the model",
    ]


@pytest.mark.parametrize("location", ["/etc/passwd", "../w.bin", "sub/../../w.bin", "C:/w.bin", "..\\\\w.bin"])
def test_a_file_outside_the_folder_by_name(tmp_path: Path, location: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    folder = tmp_path / "models"
    folder.mkdir()
    shown = location.replace("\\\\", "\\")
    assert told(model(folder, location)) == [
        f"why    its data lies in {shown!r}, which points outside the model's folder",
        "fix    keep the data beside the model and name it by a relative path",
    ]


def test_a_file_outside_the_folder_by_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(16))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "secret")
    assert "points outside the model's folder" in told(model(folder, "w.bin"))[0]


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(19))
    assert told(model(tmp_path, "w.bin", offset=4)) == [
        "why    w.bin has 19 bytes, the tensor takes those from 4 to 20",
        "fix    copy the file again; it is probably truncated",
    ]


def test_a_length_that_is_not_that_of_the_tensor(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(32))
    assert told(model(tmp_path, "w.bin", length=32))[0] == (
        "why    it says its data is 32 bytes long, but f32[4] takes 16"
    )


def test_an_offset_that_is_not_a_number(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(32))
    assert told(model(tmp_path, "w.bin", offset="-7"))[0] == "why    its external offset '-7' is not a number"


def test_a_tensor_in_the_model_that_is_too_short() -> None:
    proto = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]>
        g (float[4] x) => (float[4] y) <float[4] w = {1,2,3}> { y = Add(x, w) }"""
    )
    with pytest.raises(BadFile, match=r"it holds 3 elements in float_data, but f32\[4\] takes 4"):
        load_proto(proto)


def test_data_is_mapped_and_not_read_before_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8) + np.arange(32, dtype="<f4").tobytes())
    graph = load(model(tmp_path, "w.bin", count=32, offset=8, length=128))
    constant = next(value.constant for value in graph.constants() if value.constant)
    assert "array" not in vars(constant)
    assert isinstance(constant.array, np.memmap)
    assert constant.array.tolist() == list(range(32))
