"""Keras 3 models, through Keras' own export to ONNX.

Invariant: files are loaded in Keras' safe mode, unless their users trust them.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onnx import ModelProto

from ..base.errors import BadFile, Problem, WrongUse
from ..base.extras import install
from . import pickles
from .api import Importer, InputHints, Reading, Source, quiet, refusal

_HDF5 = b"\x89HDF\r\n\x1a\n"
_BACKENDS = ("torch", "tensorflow", "jax")  # those that the export knows
_FIX = (
    "change the layer that it names, or export with another backend (KERAS_BACKEND=torch, tensorflow or jax):\n"
    "model.export('model.onnx', format='onnx'), and compile that file"
)


class Keras(Importer):
    what = "a Keras model"
    extra = "keras"
    needs = ("keras",)
    suffixes = (".keras", ".h5", ".hdf5")
    classes = ("keras.src.models.model.Model",)

    def opens(self, source: Source) -> bool:
        return source.data.startswith(_HDF5) or _config(source) is not None

    def risk(self, source: Source) -> str:
        if source.data.startswith(_HDF5):
            return "Keras checks files of this older format (HDF5) less than .keras files: they may hold code"
        try:
            found = sorted(set(_foreign(json.loads(_config(source) or b""))))
        except (ValueError, RecursionError):
            return "its configuration cannot be read, so nobody knows what it would do"
        return f"it names what is not of Keras: {pickles.listed(found)}" if found else ""

    def read(self, source: Source, reading: Reading) -> Any:
        keras = _imported(str(source.path))
        with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
            path = Path(folder, "model.h5" if source.data.startswith(_HDF5) else "model.keras")
            path.write_bytes(source.data)
            try:
                with quiet():
                    return keras.saving.load_model(path, compile=False, safe_mode=not reading.trust)
            except Exception as error:  # whatever its layers raise
                why = "\n".join(f"{type(error).__name__}: {error}".splitlines()[:4])
                fix = "give the model to mccompile.compile in the Python that defines its layers, or save it again"
                raise BadFile(Problem(f"Keras cannot load {source.name}", str(source.path), why, fix)) from error

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        import keras

        if given.dynamic:
            fix = "leave it out; sizes that the model leaves open stay so, and the first one is called batch"
            raise WrongUse(Problem("dynamic says nothing of a Keras model", "", "", fix))
        example = [*given.args, *given.kwargs.values()]
        inputs = getattr(model, "inputs", None)
        if not example and not inputs:
            fix = "mccompile.compile(model, args=(x[:1],)) with an example of its input"
            raise WrongUse(Problem("the model does not say what its inputs are", "", "it has never been called", fix))
        with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
            path = Path(folder, "model.onnx")
            try:
                with quiet():
                    shapes = [([n or 1 for n in each.shape], each.dtype) for each in inputs or ()]
                    tried = example or [keras.ops.zeros(*each) for each in shapes]
                    model(tried[0] if len(tried) == 1 else tried)  # the export wants one that has been called
                    model.export(str(path), format="onnx", verbose=False)
            except Exception as error:
                raise refusal("Keras cannot export the model to ONNX", "", error, _FIX) from error
            made: ModelProto = ModelProto.FromString(path.read_bytes())
        made.graph.name = str(model.name)
        for entry in made.graph.input:
            shape = entry.type.tensor_type.shape
            if shape.dim and not shape.dim[0].HasField("dim_value"):
                shape.dim[0].dim_param = "batch"
        _name_outputs(made.graph, _outputs(model))
        return made


def _outputs(model: Any) -> list[str]:
    """What the model calls its outputs; a sequence of layers calls its only one as the last of them."""
    last = model.layers[-1:] if type(model).__name__ == "Sequential" else []
    return list(getattr(model, "output_names", [])) or [str(layer.name) for layer in last]


def _name_outputs(graph: Any, names: list[str]) -> None:
    """As the model calls them, not by numbers."""
    known = {name for node in graph.node for name in (*node.input, *node.output)}
    if len(names) != len(graph.output) or known & set(names):
        return
    titles = {entry.name: name for entry, name in zip(graph.output, names, strict=True)}
    for entry in graph.output:
        entry.name = titles[entry.name]
    for node in graph.node:
        for ends in (node.input, node.output):
            for place, name in enumerate(ends):
                ends[place] = titles.get(name, name)


def _config(source: Source) -> bytes | None:
    """The text in a .keras file that says what its layers are."""
    if not source.data.startswith(b"PK\x03\x04"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            if not {"config.json", "metadata.json"} <= set(archive.namelist()):
                return None
            found: bytes = archive.read("config.json")
            return found
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        return None


def _foreign(config: Any) -> Iterator[str]:
    """Code, and objects of modules that are not Keras' own."""
    if isinstance(config, dict):
        name, module = config.get("class_name"), config.get("module")
        if name in ("Lambda", "__lambda__"):
            yield str(name)
        elif isinstance(name, str) and module is not None and str(module).partition(".")[0] != "keras":
            yield f"{module}.{name}"
        elif config.get("registered_name") and ">" in str(config["registered_name"]):
            yield str(config["registered_name"])
        for value in config.values():
            yield from _foreign(value)
    elif isinstance(config, list):
        for value in config:
            yield from _foreign(value)


def _imported(where: str) -> Any:
    """Keras, with a backend that is there: it takes tensorflow where nobody says which, installed or not."""
    there = [name for name in _BACKENDS if find_spec(name) is not None]
    asked = os.environ.get("KERAS_BACKEND") or _in_settings()
    if asked not in there:
        if not there or "KERAS_BACKEND" in os.environ:
            why = f"it asks for the backend {asked}, and there is {' and '.join(there) or 'none'}"
            fix = f"KERAS_BACKEND={there[0]}" if there else install("keras")
            raise BadFile(Problem("Keras cannot be imported", where, why, fix))
        os.environ["KERAS_BACKEND"] = there[0]
    import keras

    return keras


def _in_settings() -> str:
    """The backend that Keras' own settings name."""
    try:
        folder = os.environ.get("KERAS_HOME") or Path.home() / ".keras"
        return str(json.loads(Path(folder, "keras.json").read_text(encoding="utf-8")).get("backend", "tensorflow"))
    except (OSError, ValueError, AttributeError):
        return "tensorflow"
