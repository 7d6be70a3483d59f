"""Files of other formats: recognised by what is in them, answered with commands that can be pasted."""

from __future__ import annotations

import io
import pickle
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mccompile.base.errors import MccError
from mccompile.frontend.load import read_proto


class Net:
    """Pickled in place of what is not installed."""


def zipped(*names: str, **contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, contents.get(name.rpartition("/")[2].partition(".")[0], b""))
    return file.getvalue()


def pickled(*modules: str) -> bytes:
    """A pickle that names a class of each module."""
    return b"\x80\x02(" + b"".join(b"c" + module.encode() + b"\nThing\n" for module in modules) + b"t."


CONTENTS = {
    "onnxruntime's own": (b"\x1c\0\0\0ORTM" + bytes(16), "name the .onnx file"),
    "(HDF5)": (b"\x89HDF\r\n\x1a\n" + bytes(16), "add --trust"),
    "a Keras model": (zipped("metadata.json", "config.json", "model.weights.h5"), "add --trust"),
    "TorchScript": (zipped("n/data.pkl", "n/code/__torch__.py", "n/constants.pkl"), "torch.jit.load('"),
    "PyTorch model": (zipped("serialized_exported_program.json"), "add --trust"),
    "weights only": (
        zipped("n/data.pkl", "n/version", data=pickled("collections", "torch._utils", "torch")),
        "load_state_dict(torch.load('",
    ),
    "pickled PyTorch module": (zipped("n/data.pkl", data=pickled("torch._utils", "nets.mine")), "weights_only=False"),
    "Ultralytics": (zipped("n/data.pkl", data=pickled("ultralytics.nn.tasks", "torch")), "yolo export model="),
    "pickled Python object": (pickle.dumps(Net(), 4), "test_foreign.Net"),
    "LightGBM dumped": (b'{"name": "tree", "version": "v4"}', "save it with Booster.save_model, as .txt"),
    "XGBoost dumped": (b'[\n  { "nodeid": 0, "depth": 0}]', "save it with Booster.save_model, as .ubj"),
    "old binary format": (b"binf\0\0\0\0", "save it as .ubj"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", " lfs pull"),
    "web page": (
        b"\n<!DOCTYPE html><link rel=canonical href=https://github.com/a/b/blob/main/m/n.onnx>",
        "https://github.com/a/b/raw/main/m/n.onnx",
    ),
    "safetensors": (b'\x10\0\0\0\0\0\0\0{"a": 1}', "torch.onnx.export(model, "),
    "arrays of numpy": (zipped("x.npy"), "name the ONNX model in its place"),
    "zip archive": (zipped("README.md", "a/net.onnx"), "unzip -p "),
    "gzip": (b"\x1f\x8b\x08", "gunzip -c "),
}


def told(path: Path) -> str:
    with pytest.raises(MccError) as caught:
        read_proto(path)
    return str(caught.value)


@pytest.mark.parametrize("what", CONTENTS)
@pytest.mark.parametrize("name", ["net.onnx", "net.keras"])
def test_content_says_what_it_is(what: str, name: str, tmp_path: Path) -> None:
    contents, way = CONTENTS[what]
    (tmp_path / name).write_bytes(contents)
    said = told(tmp_path / name)
    assert what in said and way in said and "FILE" not in said and "MODEL.onnx" not in said


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a.tflite", "TensorFlow Lite"),
        ("a.h5", "Keras"),
        ("a.keras", "Keras"),
        ("a.pt", "TorchScript"),
        ("a.pth", "weights only"),
        ("a.pt2", "PyTorch"),
        ("a.pkl", "scikit-learn"),
        ("a.joblib", "scikit-learn"),
        ("a.mlmodel", "Core ML"),
        ("saved_model.pb", "SavedModel"),
    ],
)
def test_else_the_name_does(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\xff\xff\xff\xff what nobody knows")
    assert what in told(tmp_path / name)


def test_folders(tmp_path: Path) -> None:
    saved, models = tmp_path / "saved", tmp_path / "models"
    saved.mkdir()
    models.mkdir()
    assert "name an ONNX file" in told(models)
    (saved / "saved_model.pb").write_bytes(b"")
    assert "TensorFlow runs operators of it" in told(saved)
    assert f"name the folder it lies in: {saved}" in told(saved / "saved_model.pb")
    (models / "a b.onnx").write_bytes(b"")
    assert f"did you mean {shlex.quote(str(models / 'a b.onnx'))}?" in told(models)


def test_a_command_takes_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a \"b\" $HOME 'c' \\d.gz"
    path.write_bytes(b"\x1f\x8b\x08")
    command = told(path).splitlines()[-1].strip()
    assert str(path) in shlex.split(command)
    path = path.with_suffix(".pt")
    path.write_bytes(CONTENTS["TorchScript"][0])
    command = next(line for line in told(path).splitlines() if "load('" in line).strip()
    names = command.replace("python", sys.executable, 1).partition("import")[0] + "import sys; print("
    text = command[command.index("load('") + 5 : command.index(").eval()")]
    shown = subprocess.run(["bash", "-c", f'{names}{text})"'], capture_output=True, text=True, check=True)
    assert shown.stdout == f"{path}\n"


def test_nothing_that_is_pickled_runs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (tmp_path / "a.pkl").write_bytes(
        b"\x80\x02cpathlib\nPath\n(X" + len(str(made)).to_bytes(4, "little") + str(made).encode() + b"tR."
    )
    assert "pickled Python object" in told(tmp_path / "a.pkl") and not made.exists()
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04\x95\xff\xff")
    assert "pickled Python object" in told(tmp_path / "a.pkl")


@pytest.mark.parametrize(
    ("address", "fix"),
    [
        ("https://a.example/b/net.onnx", "curl -LO https://a.example/b/net.onnx   # then name net.onnx"),
        ("hf://some/model", "hf download some/model --local-dir model"),
    ],
)
def test_addresses_are_downloaded_first(address: str, fix: str) -> None:
    with pytest.raises(MccError) as refused:
        read_proto(Path(address))
    assert fix in str(refused.value)


def test_an_output_folder_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(MccError, match="a folder that mccompile has written"):
        read_proto(tmp_path)
