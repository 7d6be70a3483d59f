"""Models of XGBoost, through onnxmltools; the .ubj and .json files that it saves."""

from __future__ import annotations

import re
from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, Problem
from .api import Importer, InputHints, Reading, Source, quiet, refusal
from .tables import FIX, declared, named_batch

_JSON = re.compile(rb'\s*\{\s*"learner"\s*:')


class XGBoost(Importer):
    what = "an XGBoost model"
    extra = "xgboost"
    needs = ("xgboost", "onnxmltools")
    suffixes = (".ubj",)
    classes = ("xgboost.sklearn.XGBModel", "xgboost.core.Booster")

    def opens(self, source: Source) -> bool:
        binary = source.data.startswith(b"{L") and b"learner" in source.data[:64]
        return binary or _JSON.match(source.data[:64]) is not None

    def read(self, source: Source, reading: Reading) -> Any:
        import xgboost

        made = xgboost.Booster()
        try:
            with quiet():
                made.load_model(bytearray(source.data))
        except (xgboost.core.XGBoostError, ValueError) as error:
            why, fix = f"{type(error).__name__}: {error}", "save it again with Booster.save_model"
            raise BadFile(Problem(f"XGBoost cannot load {source.name}", str(source.path), why, fix)) from error
        return made

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        from onnxmltools import convert_xgboost

        count = model.num_features() if hasattr(model, "num_features") else 0
        types = declared(model, given, "onnxmltools.convert.common.data_types", count)
        try:
            with quiet():
                made = convert_xgboost(model, initial_types=types)
        except Exception as error:
            raise refusal("onnxmltools cannot convert the model", "", error, FIX) from error
        return named_batch(made, type(model).__name__)
