"""Variables as pairs of an input and an output of the ONNX model."""

from __future__ import annotations

import numpy as np
from onnx import helper

from ...base.records import dataclass
from .file import Tensor
from .onnx_nodes import Writer
from .scope import SharedScope

_FLAG = Tensor("started", "BOOL", (), None, None, True)


@dataclass(frozen=True)
class State:
    before: str  # an input
    after: str  # an output
    tensor: Tensor


def with_states(whole: SharedScope, writer: Writer) -> list[State]:
    """The variables that a run sets; those that no run sets are constants. What they begin with is chosen in front of
    all nodes that read it."""
    found, front = [], []
    started = ""
    for variable in whole.variables.values():
        begins = variable.first
        if begins is None:
            begins = np.zeros(variable.tensor.shape, variable.dtype)
        if not variable.is_set:
            front.append(helper.make_node("Identity", [whole.shared.constant(begins)], [variable.before]))
            continue
        given = variable.before
        if begins.any():
            started = started or whole.shared.names.take("started")
            given = whole.shared.names.take(f"{variable.name}/given")
            front.append(helper.make_node("Where", [started, given, whole.shared.constant(begins)], [variable.before]))
        after = whole.shared.names.take(f"{variable.name}/after")
        writer.nodes.append(helper.make_node("Identity", [variable.now], [after], after))
        found.append(State(given, after, variable.tensor))
    if started:
        after = whole.shared.names.take("started/after")
        writer.nodes.append(helper.make_node("Identity", [whole.shared.constant(np.array(True))], [after], after))
        found.append(State(started, after, _FLAG))
    writer.nodes[:0] = front
    return found
