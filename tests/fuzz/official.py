"""Cases of operators that are hard to make at random, compiled with random options: ONNX's own, of one node with its
inputs, and the examples beside operators of other domains. What a case says of results is only compared with, as onnx's
reference is."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
from onnx import ModelProto, TensorProto, helper, parser

from mccompile.frontend.contributed import contributed
from mccompile.frontend.supported import title

from .operators.registry import entries

# Operators whose random graphs come from onnx's cases: what is drawn is the case and the options.
OPERATORS = (
    "ImageDecoder",
    "Scatter",
    "Upsample",
    "ai.onnx.preview::FlexAttention",
    "ai.onnx.ml::TreeEnsemble",
    "ai.onnx.preview.training::Adagrad",
    "ai.onnx.preview.training::Adam",
    "ai.onnx.preview.training::Momentum",
)
MOST_BYTES = 20_000
Case = tuple[str, ModelProto, list[np.ndarray]]  # name, model and inputs


@cache
def cases() -> dict[str, list[Case]]:
    """By operator. Making them takes some seconds."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, list[Case]] = {name: [] for name in OPERATORS} | examples()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    for case in collected:
        model, sets = case.model, case.data_sets
        if model is None or not sets or len(model.graph.node) != 1 or model.ByteSize() > MOST_BYTES:
            continue
        node, inputs = model.graph.node[0], sets[0][0]
        known = title(node.domain, node.op_type)
        if known not in OPERATORS or not all(isinstance(array, np.ndarray) for array in inputs):
            continue
        if known == "ImageDecoder" and not re.search("_(bmp|pnm)_", case.name):
            continue  # others end a run with a status
        if sum(array.nbytes for array in inputs) <= MOST_BYTES and _is_plain(model):
            found[known].append((case.name, model, [np.asarray(array) for array in inputs]))
    return found


@cache
def examples() -> dict[str, list[Case]]:
    """Of operators of other domains that `operators/` does not make."""
    found: dict[str, list[Case]] = {}
    chance = np.random.default_rng(1)
    for (domain, name), entry in contributed().items():
        if title(domain, name) in entries():
            continue
        of_one = found.setdefault(title(domain, name), [])
        for text in entry.examples:
            model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "{domain}" : 1]> {text}')
            arrays = []
            for value in model.graph.input:
                type = value.type.tensor_type
                drawn = np.asarray(chance.uniform(-4, 4, [dim.dim_value for dim in type.shape.dim]))
                arrays.append(drawn.astype(helper.tensor_dtype_to_np_dtype(type.elem_type)))
            of_one.append((name, model, arrays))
    return found


def _is_plain(model: ModelProto) -> bool:
    values = (*model.graph.input, *model.graph.output)
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type != TensorProto.UNDEFINED for v in values)
