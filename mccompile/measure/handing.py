"""Data sets in the form that a program hands over, and results in that of the model.

Invariant: names stay; only element types, numbers and the order of axes change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..base.streaming import Streamed
from ..check.inputs import DataSet
from ..driver import Options, channels_last, read
from ..graph.ir import Graph
from ..passes.io.io_forms import Handover, give_forms
from ..passes.io.observe import observe
from ..passes.io.turn_io import IoLayout
from ..toolchain.model_report import Report
from .windows import newest

Orders = Mapping[str, tuple[int, ...]]


def handing_over(graph: Graph, options: Options) -> tuple[Handover, Orders]:
    """The forms of inputs and outputs, and the order of axes of pictures. Changes the graph."""
    observe(graph, options.observe)
    orders = channels_last(graph, options)
    return give_forms(graph, options.inputs, options.outputs), orders


def handed_over(data_set: DataSet, forms: Handover) -> tuple[DataSet, Mapping[str, np.ndarray]]:
    """What a program hands over, and the inputs that the model then has. Those of the data set may lie between the
    numbers that the type of the former has; what is stored of outputs is not that of the model's inputs then."""
    given = {name: forms.given(name, array) for name, array in data_set.inputs.items() if name in forms.inputs}
    if not given:
        return data_set, data_set.inputs
    seen = {name: forms.seen(name, array) for name, array in given.items()}
    return DataSet(data_set.name, data_set.inputs | seen), data_set.inputs | given


def as_handed_over(
    inputs: Mapping[str, np.ndarray], path: Path, options: Options, streamed: Streamed | None, report: Report
) -> dict[str, np.ndarray]:
    """Inputs of a model, or of one push of its stream, as its program takes them; it takes no states."""
    given, orders = dict(inputs), dict[str, tuple[int, ...]]()
    if options.inputs or options.io_layout != IoLayout.ONNX:
        forms, found = handing_over(read(path, options), options)
        given |= {name: forms.given(name, inputs[name]) for name in forms.inputs}
        orders |= found
    handed = turned(newest(streamed, given), orders)
    return {tensor.name: handed[tensor.name] for tensor in report.inputs}


def turned(arrays: Mapping[str, np.ndarray], orders: Orders, back: bool = False) -> dict[str, np.ndarray]:
    """Arrays in the order of axes that a compiled model has, or back in that of ONNX."""
    found = dict(arrays)
    for name in arrays.keys() & orders.keys():
        order = np.argsort(orders[name]).tolist() if back else orders[name]
        found[name] = np.ascontiguousarray(arrays[name].transpose(order))
    return found
