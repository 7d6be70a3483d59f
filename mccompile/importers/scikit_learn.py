"""Estimators, transformers and pipelines of scikit-learn, through skl2onnx; .skops files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, Problem
from ..base.extras import install
from . import pickles
from .api import Importer, InputHints, Reading, Source, quiet, refusal
from .tables import declared, named_batch

_Function = Callable[..., Any]
_FIX = (
    "change the estimator that it names for one that skl2onnx knows\n"
    "or give an example of the input: mccompile.compile(model, args=(x[:1],))"
)


class ScikitLearn(Importer):
    what = "a scikit-learn model"
    extra = "sklearn"
    needs = ("sklearn", "skl2onnx")
    suffixes = (".skops",)
    classes = ("sklearn.base.BaseEstimator",)

    def opens(self, source: Source) -> bool:
        if not source.data.startswith(b"PK\x03\x04"):
            return False
        try:
            with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
                return "schema.json" in archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return False

    def risk(self, source: Source) -> str:
        return f"skops imports the types that the file names, and has them made\n{_unknown_types(source)}"

    def read(self, source: Source, reading: Reading) -> Any:
        if find_spec("skops") is None:
            raise BadFile(Problem("skops is not installed", str(source.path), "", install("sklearn")))
        import skops.io

        try:
            with quiet():
                return skops.io.loads(source.data, trusted=skops.io.get_untrusted_types(data=source.data))
        except Exception as error:  # whatever its objects raise
            why, fix = f"{type(error).__name__}: {error}", "save it again with the installed versions"
            raise BadFile(Problem(f"skops cannot load {source.name}", str(source.path), why, fix)) from error

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        import skl2onnx
        from sklearn.base import is_classifier

        versions = _with_others(model)
        types = declared(model, given, "skl2onnx.common.data_types")
        options = {id(model): {"zipmap": False}} if is_classifier(model) else None
        try:
            with quiet():
                made = skl2onnx.to_onnx(model, initial_types=types, options=options, target_opset=versions)
        except Exception as error:
            raise refusal("skl2onnx cannot convert the model", "", error, _FIX) from error
        return named_batch(made, type(model).__name__)


def _unknown_types(source: Source) -> str:
    if find_spec("skops") is None:
        return "skops, which would say which ones, is not installed"
    import skops.io

    try:
        with quiet():
            found = skops.io.get_untrusted_types(data=source.data)
    except Exception as error:  # of files that are damaged
        return f"skops cannot say which ones: {type(error).__name__}: {error}"
    return f"it does not know {pickles.listed(found)}" if found else "it knows all of them"


def _with_others(model: Any) -> dict[str, int] | None:
    """Makes converters of other libraries known, where a pipeline has one of their models; the versions they want."""
    parts = model.get_params(deep=True).values()
    if not {"lightgbm", "xgboost"} & {type(part).__module__.partition(".")[0] for part in parts}:
        return None
    if find_spec("onnxmltools") is None:
        what, fix = "models of LightGBM and XGBoost need onnxmltools, which is missing", "pip install onnxmltools"
        raise BadFile(Problem(what, "", "", fix))
    from skl2onnx import get_latest_tested_opset_version, update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes as classifier
    from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes as regressor

    def register(cls: type, alias: str, shapes: _Function, convert: _Function, **options: Any) -> None:
        update_registered_converter(cls, alias, shapes, convert, options=options)

    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier, LGBMRegressor
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

        forms = {"zipmap": [True, False, "columns"], "nocl": [True, False]}
        register(LGBMClassifier, "LightGbmLGBMClassifier", classifier, convert_lightgbm, **forms)
        register(LGBMRegressor, "LightGbmLGBMRegressor", regressor, convert_lightgbm, split=None)
    if find_spec("xgboost") is not None:
        from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost
        from xgboost import XGBClassifier, XGBRegressor

        forms = {"zipmap": [True, False, "columns"], "nocl": [True, False]}
        register(XGBClassifier, "XGBoostXGBClassifier", classifier, convert_xgboost, **forms)
        register(XGBRegressor, "XGBoostXGBRegressor", regressor, convert_xgboost)
    return {"": get_latest_tested_opset_version(), "ai.onnx.ml": 3}
