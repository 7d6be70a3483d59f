"""Where operators stand: the values of one subgraph, the variables of the whole model, and subgraphs within others.

Variables are inputs and outputs of the ONNX model that belong together (`importers/states.py`); they begin with zeros.
Those that begin with something else hold it behind a flag that the first run sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from onnx import helper

from ...base.records import dataclass
from ...graph.ir import Invalid, Unsupported
from .file import NUMPY_TYPES, Model, Subgraph, Tensor
from .onnx_nodes import ONNX_TYPES, Shared, Writer
from .types import Types

_MOST_OPERATORS = 50_000


@dataclass
class Variable:
    """What lasts from run to run."""

    name: str
    tensor: Tensor
    before: str  # the value when a run begins
    now: str
    first: np.ndarray | None = None  # what it begins with, where not with zeros
    is_set: bool = False

    @property
    def dtype(self) -> Any:
        return NUMPY_TYPES.get(self.tensor.type, np.float32)


@dataclass
class SharedScope:
    """What all subgraphs of a model share."""

    model: Model
    shared: Shared
    fill: Callable[[Scope], None]  # writes the operators of a subgraph
    variables: dict[str, Variable] = field(default_factory=dict)
    firsts: dict[str, np.ndarray] = field(default_factory=dict)  # that subgraphs run once assign
    open: list[int] = field(default_factory=list)  # subgraphs that are being written
    written: int = 0  # operators
    types: Types | None = None  # of values, where sizes are not those of the file

    def variable(self, key: str, tensor: Tensor, name: str = "") -> Variable:
        if key not in self.variables:
            before = self.shared.names.take(f"{name or key}/before")
            self.variables[key] = Variable(name or key, tensor, before, before, self.firsts.get(key))
            if self.types is not None and tensor.type in ONNX_TYPES:
                self.types.declare([helper.make_tensor_value_info(before, ONNX_TYPES[tensor.type], tensor.dims)])
        return self.variables[key]

    def count(self, operators: int) -> None:
        self.written += operators
        if self.written > _MOST_OPERATORS:
            raise Unsupported(f"subgraphs within others make more than {_MOST_OPERATORS} operators")


@dataclass
class Scope:
    """One subgraph, written into one graph."""

    whole: SharedScope
    number: int
    writer: Writer
    values: dict[int, str] = field(default_factory=dict)  # by tensor
    handles: dict[int, str] = field(default_factory=dict)  # of variables, by tensor
    is_region: bool = False  # does it run more than once, or maybe not?

    @property
    def subgraph(self) -> Subgraph:
        return self.whole.model.subgraphs[self.number]

    def tensor(self, number: int) -> Tensor:
        """A tensor with the sizes that it has in this compilation."""
        tensor, types = self.subgraph.tensors[number], self.whole.types
        return tensor if types is None else types.sized(tensor, self.values.get(number, ""))

    def inside(
        self, number: int, inputs: Sequence[str | None], handles: Mapping[int, str], writer: Writer, is_region: bool
    ) -> Scope:
        """Another subgraph, inlined with these inputs; `handles` by place of the input."""
        if not 0 <= number < len(self.whole.model.subgraphs):
            raise Invalid(f"it names subgraph {number}, and there are {len(self.whole.model.subgraphs)}")
        if number in self.whole.open:
            raise Unsupported(f"subgraph {number} is within itself")
        made = Scope(self.whole, number, writer, is_region=self.is_region or is_region)
        places = made.subgraph.inputs
        if len(places) != len(inputs):
            raise Invalid(f"subgraph {number} takes {len(places)} inputs, and is given {len(inputs)}")
        for place, (tensor, value) in enumerate(zip(places, inputs, strict=True)):
            if place in handles:
                made.handles[tensor] = handles[place]
            elif value is not None:
                made.values[tensor] = value
        self.whole.open.append(number)
        try:
            self.whole.count(len(made.subgraph.operators))
            self.whole.fill(made)
        finally:
            self.whole.open.pop()
        return made

    def result(self, index: int) -> str:
        """An output of the subgraph."""
        if index >= len(self.subgraph.outputs):
            raise Invalid(f"subgraph {self.number} returns {len(self.subgraph.outputs)} values")
        tensor = self.subgraph.outputs[index]
        if tensor in self.values:
            return self.values[tensor]
        data = self.subgraph.tensors[tensor].data
        if data is None:
            raise Invalid(f"nothing makes {self.subgraph.tensors[tensor].name!r}, which a subgraph returns")
        return self.whole.shared.constant(data)
