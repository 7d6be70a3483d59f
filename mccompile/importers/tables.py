"""Inputs of models of tables: rows of features, as the converters want them declared.

Invariant: the number of rows stays open, under the name `batch`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from onnx import ModelProto

from ..base.errors import Problem, WrongUse
from .api import InputHints

BATCH = "batch"
FIX = "train it with options that the converter knows, on numbers alone"
_TYPES = {"f4": "FloatTensorType", "f8": "DoubleTensorType", "i8": "Int64TensorType", "i4": "Int32TensorType"}


def declared(model: Any, given: InputHints, types: str, count: int = 0) -> list[tuple[str, Any]]:
    """Names and types of inputs, in the classes of the module `types`: those of an example; else floats, as many as the
    model was trained with."""
    known = import_module(types)
    example = [*given.args, *given.kwargs.values()]
    if len(example) > 1 or given.dynamic:
        fix = "give one example, args=(x[:1],), or none; the number of rows stays open, as batch"
        raise WrongUse(Problem("a model of tables has one input", "", "", fix))
    if not example:
        count = count or int(getattr(model, "n_features_in_", 0))
        if not count:
            fix = "mccompile.compile(model, args=(x[:1],)) with some of what it was trained with"
            raise WrongUse(Problem("the model does not say how many features it takes", "", "is it trained?", fix))
        return [("x", known.FloatTensorType([None, count]))]
    (value,) = example
    if hasattr(value, "columns"):  # a table of pandas, polars ...: an input for each column
        return [(str(name), _typed(known, np.asarray(value[name]), 1)) for name in value.columns]
    array = np.asarray(value)
    if array.ndim != 2:
        fix = "give rows of features: args=(x[:1],)"
        raise WrongUse(Problem(f"the example has {array.ndim} axes", "", "a model of tables takes two", fix))
    return [(next(iter(given.kwargs), "x"), _typed(known, array, array.shape[1]))]


def _typed(known: Any, array: np.ndarray, columns: int) -> Any:
    if array.dtype.kind in "OSU":
        return known.StringTensorType([None, columns])
    name = _TYPES.get(array.dtype.str[1:])
    if name is None:
        fix = "give floats, doubles, whole numbers or text"
        raise WrongUse(Problem(f"the example has elements of {array.dtype}", "", "", fix))
    return getattr(known, name)([None, columns])


def named_batch(model: ModelProto, title: str) -> ModelProto:
    model.graph.name = title
    for entry in model.graph.input:
        shape = entry.type.tensor_type.shape
        if shape.dim and not shape.dim[0].HasField("dim_value"):
            shape.dim[0].dim_param = BATCH
    return model
