"""SavedModels of TensorFlow, through tf2onnx."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from onnx import ModelProto

from ..base.errors import Problem, UnsupportedModel
from .api import Importer, Reading, Source
from .tables import named_batch

_SHOWN = 4  # last lines of what tf2onnx says


class SavedModel(Importer):
    what = "a SavedModel of TensorFlow"
    extra = "tensorflow"
    needs = ("tensorflow", "tf2onnx")

    def opens(self, source: Source) -> bool:
        return (source.path / "saved_model.pb").is_file()

    def risk(self, source: Source) -> str:
        return "TensorFlow runs operators of it, such as those that read and write files, while it is converted"

    def read(self, source: Source, reading: Reading) -> ModelProto:
        with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
            made = Path(folder, "model.onnx")
            convert = [sys.executable, "-m", "tf2onnx.convert"]
            command = [*convert, "--saved-model", str(source.path), "--output", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode or not made.is_file():
                why = "\n".join(done.stderr.strip().splitlines()[-_SHOWN:])
                fix = "change the operator that it names, or convert the model to .tflite and compile that"
                raise UnsupportedModel(Problem(f"tf2onnx cannot convert {source.name}", str(source.path), why, fix))
            return named_batch(ModelProto.FromString(made.read_bytes()), source.name)
