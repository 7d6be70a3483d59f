"""Writes what was learned back into the ONNX file that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import load_external_data_for_model, numpy_helper

from ..base.errors import Problem, WrongUse
from ..base.writing import cannot_write
from .load import read_proto
from .unrounded_file import leave_integers
from .written import checked_bytes

_MAKERS = ("DequantizeLinear", "QuantizeLinear")  # of weights, as some exporters write them


def write_learned(model: Path, weights: Mapping[str, np.ndarray], to: Path, in_integers: bool = False) -> None:
    """The model's file with these initializers instead of its own, or of integers that a node made them of, all in one
    file. Behind them nothing is rounded to integers but outputs, unless they learned `in_integers`."""
    proto = read_proto(model)
    load_external_data_for_model(proto, str(model.parent))
    left = dict(weights)
    for tensor in proto.graph.initializer:
        if tensor.name in left:
            tensor.CopyFrom(numpy_helper.from_array(left.pop(tensor.name), tensor.name))
    for node in proto.graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if node.output[0] in left and attribute.name == "value":
                attribute.t.CopyFrom(numpy_helper.from_array(left.pop(node.output[0])))
    made = [node for node in proto.graph.node if node.op_type in _MAKERS and node.output[0] in left]
    for node in made:
        name = node.output[0]
        proto.graph.initializer.append(numpy_helper.from_array(left.pop(name), name))
        proto.graph.node.remove(node)
    if not in_integers and any(node.op_type == "QuantizeLinear" for node in proto.graph.node):
        leave_integers(proto.graph, weights)
    if left:
        why = "reading the file computes them from others"
        raise WrongUse(Problem(f"{', '.join(left)} cannot be written back", str(model), why))
    try:
        to.write_bytes(checked_bytes(proto, to.parent, read_proto(model)))
    except OSError as error:
        raise cannot_write("the model", to, error) from None
