"""The list of importers, and the way through them.

Invariant: a file of which something would be executed comes no further than here, unless its user trusts it.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, MccError, Problem, UnsupportedModel, WrongUse
from ..base.extras import install
from .api import Importer, InputHints, Reading, Source
from .catboost import CatBoost
from .exported_decoder import ExportedDecoder
from .gguf import GGUF
from .hugging_face import HuggingFace
from .keras import Keras
from .lightgbm import LightGBM
from .pickled import Pickled
from .pytorch import PyTorch
from .saved_model import SavedModel
from .scikit_learn import ScikitLearn
from .tflite.importer import TFLite
from .xgboost import XGBoost

# The first one that opens a file, or knows an object, takes it.
IMPORTERS: tuple[Importer, ...] = (
    TFLite(),
    GGUF(),
    HuggingFace(),
    ExportedDecoder(),  # beside whose network there may be weights as they were trained, which are taken first
    Keras(),  # whose models are modules of PyTorch too, with that backend
    PyTorch(),
    SavedModel(),
    LightGBM(),  # whose estimators are scikit-learn's too
    XGBoost(),
    CatBoost(),
    ScikitLearn(),
    Pickled(),
)
_last: dict[str, bytes] = {}  # of the file that was read last: one command reads it several times


def importer_of(source: Source) -> Importer | None:
    return next((importer for importer in IMPORTERS if importer.opens(source)), None)


def read(source: Source, reading: Reading) -> ModelProto | None:
    """The ONNX model that a file of another format means; None where no importer opens it."""
    importer = importer_of(source)
    if reading.signature and not (importer and importer.has_signatures):
        why, where = "only a TFLite file has signatures", str(source.path)
        raise WrongUse(Problem(f"there is no signature {reading.signature!r}", where, why, "leave out --signature"))
    if importer is None:
        return None
    risk = importer.risk(source)
    if risk and not reading.trust:
        what = f"{source.name} is not loaded: that would execute what it holds"
        fix = "add --trust (in Python: trust=True) if you trust those who made the file"
        raise WrongUse(Problem(what, str(source.path), f"it is {importer.what}\n{risk}", fix))
    _require(importer, f"{source.name} is {importer.what}", str(source.path))
    key = _key(source, reading, importer.has_sizes)
    if key not in _last:
        made = importer.read(source, reading)
        if not isinstance(made, ModelProto):
            made = converted(made, InputHints(), str(source.path))
        _last.clear()
        _last[key] = made.SerializeToString()
    found: ModelProto = ModelProto.FromString(_last[key])
    return found


def knows(model: object) -> bool:
    return any(importer.knows(model) for importer in IMPORTERS)


def converted(model: Any, given: InputHints, where: str = "") -> ModelProto:
    """The ONNX model that an object means."""
    importer = next((importer for importer in IMPORTERS if importer.knows(model)), None)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if importer is None:
        raise UnsupportedModel(Problem(f"a {kind} is not a model that can be compiled", where, "", CAN_BE))
    _require(importer, f"this is {importer.what}", where or kind)
    try:
        made: ModelProto = importer.convert(model, given)
    except MccError as error:
        raise type(error)(*(_placed(problem, where or kind) for problem in error.problems)) from error
    return made


CAN_BE = (
    "give a path, the bytes of an ONNX or TFLite file, an onnx.ModelProto, or a model of PyTorch, Keras, scikit-learn, "
    "LightGBM, XGBoost or CatBoost"
)


def _placed(problem: Problem, where: str) -> Problem:
    return problem if problem.where else Problem(problem.what, where, problem.why, problem.fix)


def _require(importer: Importer, what: str, where: str) -> None:
    missing = [module for module in importer.needs if find_spec(module) is None]
    if missing:
        why = f"what reads it is not installed: {', '.join(missing)}"
        raise BadFile(Problem(what, where, why, install(importer.extra)))


def _key(source: Source, reading: Reading, has_sizes: bool) -> str:
    sizes = repr((sorted(reading.dims.items()), sorted(reading.shapes.items()))) if has_sizes else ""
    parts = [str(source.path), reading.signature, sizes, hashlib.sha256(source.data).hexdigest()]
    for path in sorted(source.path.rglob("*")) if source.path.is_dir() else ():
        about = path.stat()
        parts.append(f"{path} {about.st_size} {about.st_mtime_ns}")
    return "\n".join(parts)
