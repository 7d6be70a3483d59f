"""Integer inputs that say sizes: what they must hold follows from the shapes that the model declares for its outputs.

Where a size is computed at run time and nobody declares it, numbers among the declared sizes are tried for the elements
of one input. Invariant: they count only if the whole model then has exactly the declared shapes, and a run where the
input holds anything else ends with a status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations
from math import prod

import numpy as np
from onnx import GraphProto, TypeProto

from ..base.constant import Constant
from ..base.dtypes import i32, i64
from ..base.records import dataclass
from ..graph.ir import Fact, Graph, Node, Value
from ..ops.implied import ANY, Implied, PartlyKnown
from .tensors import declared

_MOST_ELEMENTS, _MOST_TRIES = 8, 64


@dataclass(frozen=True)
class Assumption:
    """An input holds these numbers; ANY where nothing is assumed."""

    input: str
    values: tuple[int, ...]

    def known(self, graph: Graph, value: Value) -> Value:
        """What nodes read in place of the input."""
        if ANY not in self.values:
            array = np.array(self.values, value.type.dtype.numpy).reshape(value.type.static_shape)
            return Value.of_constant(f"{value.name}/implied", Constant.of(array))
        node = Node(PartlyKnown(self.values), [value], [None], (value.name,))
        (fact,) = node.op.infer(node.site())
        node.outputs = [Value(f"{value.name}/implied", fact)]
        graph.add(node)
        return node.output

    def check(self, graph: Graph, value: Value) -> None:
        """Lets the first output say that the input has to hold the numbers."""
        first = graph.outputs[0]
        name, first.name = first.name, f"{first.name}/unchecked"
        checked = Value(name, Fact(first.type))
        graph.add(Node(Implied(self.values), [first, value], [checked], (value.name,)))
        graph.outputs[0] = checked


def assumptions(graph: GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Assumption]:
    """What is worth trying, the likeliest first; `shapes` are those that the file declares."""
    sizes = [shapes[output.name] for output in graph.output if output.name in shapes]
    constants = {tensor.name for tensor in graph.initializer}
    tries = chain.from_iterable(
        (Assumption(entry.name, values) for values in dict.fromkeys(_guesses(count, sizes)))
        for entry in graph.input
        if entry.name not in constants and entry.type.HasField("tensor_type") and (count := _count(entry.type))
    )
    for number, assumption in enumerate(tries):
        if number < _MOST_TRIES:
            yield assumption


def _count(proto: TypeProto) -> int:
    """How many integers an input has; 0 where it is not a few."""
    dtype, shape = declared(proto)
    if dtype not in (i32, i64) or shape is None or len(shape) > 1:
        return 0
    fixed = [dim for dim in shape if isinstance(dim, int)]
    count = prod(fixed)
    return count if len(fixed) == len(shape) and count <= _MOST_ELEMENTS else 0


def _guesses(count: int, sizes: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Some of the sizes of an output, in their order; then with one element in between that may be anything."""
    for shape in sizes:
        yield from combinations(shape, count)
    if count > 1:
        for shape in sizes:
            for place in range(count):
                for rest in combinations(shape, count - 1):
                    yield (*rest[:place], ANY, *rest[place:])


def has_declared_shapes(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    return all(output.type.shape == shapes.get(output.name, output.type.shape) for output in graph.outputs)
