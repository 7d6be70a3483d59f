"""ONNX's own cases of operators that are hard to make at random: one node with its inputs, compiled with random
options. What the case says of results is only compared with, as onnx's reference is."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
from onnx import ModelProto, TensorProto

# Operators whose random graphs come from onnx's cases: what is drawn is the case and the options.
OPERATORS = (
    "ImageDecoder",
    "Scatter",
    "Upsample",
    "ai.onnx.ml::TreeEnsemble",
    "ai.onnx.preview.training::Adagrad",
    "ai.onnx.preview.training::Adam",
    "ai.onnx.preview.training::Momentum",
)
MOST_BYTES = 20_000


@cache
def cases() -> dict[str, list[tuple[str, ModelProto, list[np.ndarray]]]]:
    """By operator: name, model and inputs. Making them takes some seconds."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, list[tuple[str, ModelProto, list[np.ndarray]]]] = {name: [] for name in OPERATORS}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    for case in collected:
        model, sets = case.model, case.data_sets
        if model is None or not sets or len(model.graph.node) != 1 or model.ByteSize() > MOST_BYTES:
            continue
        node, inputs = model.graph.node[0], sets[0][0]
        title = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        if title not in found or not all(isinstance(array, np.ndarray) for array in inputs):
            continue
        if title == "ImageDecoder" and not re.search("_(bmp|pnm)_", case.name):
            continue  # others end a run with a status
        if sum(array.nbytes for array in inputs) <= MOST_BYTES and _is_plain(model):
            found[title].append((case.name, model, [np.asarray(array) for array in inputs]))
    return found


def _is_plain(model: ModelProto) -> bool:
    values = (*model.graph.input, *model.graph.output)
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type != TensorProto.UNDEFINED for v in values)
