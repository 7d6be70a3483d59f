"""Models of LightGBM, through onnxmltools; the text files that it saves."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, Problem
from .api import Importer, InputHints, Reading, Source, quiet, refusal
from .tables import FIX, declared, named_batch


class LightGBM(Importer):
    what = "a LightGBM model"
    extra = "lightgbm"
    needs = ("lightgbm", "onnxmltools")
    classes = ("lightgbm.sklearn.LGBMModel", "lightgbm.basic.Booster")

    def opens(self, source: Source) -> bool:
        return source.data.startswith(b"tree\nversion=")

    def risk(self, source: Source) -> str:
        return "LightGBM does not check what it reads: a file that is made for it may write to any memory"

    def read(self, source: Source, reading: Reading) -> Any:
        import lightgbm

        if b"\nend of trees" not in source.data:
            why, fix = "it was cut off", "save it again with Booster.save_model"
            raise BadFile(Problem(f"LightGBM cannot load {source.name}", str(source.path), why, fix))
        try:
            with quiet():
                return lightgbm.Booster(model_str=source.data.decode())
        except (lightgbm.basic.LightGBMError, ValueError) as error:
            why, fix = f"{type(error).__name__}: {error}", "save it again with Booster.save_model"
            raise BadFile(Problem(f"LightGBM cannot load {source.name}", str(source.path), why, fix)) from error

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        from onnxmltools import convert_lightgbm

        count = model.num_feature() if hasattr(model, "num_feature") else 0
        types = declared(model, given, "onnxmltools.convert.common.data_types", count)
        try:
            with quiet():
                made = convert_lightgbm(model, initial_types=types, zipmap=False)
        except Exception as error:
            raise refusal("onnxmltools cannot convert the model", "", error, FIX) from error
        return named_batch(made, type(model).__name__)
