"""Models of CatBoost, which writes ONNX itself; its .cbm and .json files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, Problem, WrongUse
from .api import Importer, InputHints, Reading, Source, quiet, refusal
from .tables import named_batch


def _is_json(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{" and b'"features_info"' in data and b'trees"' in data


def _check_whole(data: bytes) -> None:
    """CatBoost reads what is left of a file that was cut off."""
    if _is_json(data):
        json.loads(data)
    elif len(data) < 8 + int.from_bytes(data[4:8], "little"):
        raise ValueError("it was cut off")


class CatBoost(Importer):
    what = "a CatBoost model"
    extra = "catboost"
    needs = ("catboost",)
    suffixes = (".cbm",)
    classes = ("catboost.core.CatBoost",)

    def opens(self, source: Source) -> bool:
        return source.data.startswith(b"CBM1") or _is_json(source.data)

    def read(self, source: Source, reading: Reading) -> Any:
        import catboost

        try:
            _check_whole(source.data)
            with quiet():
                if not _is_json(source.data):
                    return catboost.CatBoost().load_model(blob=source.data)
                with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
                    path = Path(folder, "model.json")
                    path.write_bytes(source.data)
                    return catboost.CatBoost().load_model(str(path), format="json")
        except (catboost.CatBoostError, ValueError) as error:
            why, fix = f"{type(error).__name__}: {error}", "save it again with save_model"
            raise BadFile(Problem(f"CatBoost cannot load {source.name}", str(source.path), why, fix)) from error

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        if given.args or given.kwargs or given.dynamic:
            why = "CatBoost says itself how many features it takes, and leaves the number of rows open, as batch"
            raise WrongUse(Problem("args and dynamic say nothing here", "", why, "leave them out"))
        with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
            path = Path(folder, "model.onnx")
            try:
                with quiet():
                    model.save_model(str(path), format="onnx")
            except Exception as error:
                fix = "train it without categorical and text features, and with labels that are numbers or text"
                raise refusal("CatBoost cannot write the model as ONNX", "", error, fix) from error
            made = ModelProto.FromString(path.read_bytes())
        return named_batch(made, type(model).__name__)
