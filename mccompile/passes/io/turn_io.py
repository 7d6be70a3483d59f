"""turn_io: transposes inputs and outputs of the model to channels-last, for `--io-layout nhwc`.

Pictures: what has rank 4 or 5, and what of rank 3 convolutions and their like read or make. The caller hands over and
gets tensors in the order batch, space, channels; inside each is looked at in ONNX order, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from ...base.errors import Problem, WrongUse
from ...base.names import new_name
from ...base.near import meant
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Value, is_input
from ...ops.api import Operator
from ...ops.growing import UsedPart
from ...ops.transpose import Transpose
from ..graph.assign_layout import first_order, last_order

Order = tuple[int, ...]


class IoLayout(StrEnum):
    """The order of axes in which programs hand pictures over."""

    ONNX = "onnx"
    NHWC = "nhwc"


def turned(
    graph: Graph, asked: Collection[str] | None = None, others: Collection[str] = frozenset()
) -> Mapping[str, Order]:
    """The order of axes that each image among inputs and outputs gets, by name; of all, or of those asked for. `others`
    are handed over in forms that are not images."""
    through = {value.name for value in graph.inputs if value in graph.outputs}  # an output of the same name shows these
    found = {value.name: value for value in graph.inputs if _is_picture(value) and value.name not in through}
    made = [value for value in graph.outputs if value.producer is not None and not is_input(graph, value)]
    found |= {value.name: value for value in made if _is_picture(value)}
    found = {name: value for name, value in found.items() if name not in others}
    inside = {*graph.states, *graph.states.values(), *graph.initial}  # nobody hands these over
    for name in sorted(set(asked or ()) - set(found)):
        why = "the model passes it on unchanged as an output" if name in through else "it is not an image"
        fix = "leave out nhwc of it"
        if name not in (there := [value.name for value in (*graph.inputs, *graph.outputs)]):
            why, fix = f"the model has {', '.join(map(repr, there))}", meant(name, there) or f"did you mean {there[0]}?"
        raise WrongUse(Problem(f"{name!r} cannot be channels-last", graph.name, why, fix))
    wanted = [name for name in found if name not in inside and (asked is None or name in asked)]
    return {name: last_order(found[name].type.rank) for name in wanted}


def turn_io(graph: Graph, orders: Mapping[str, Order]) -> None:
    """`orders` are those that `turned` gives."""
    taken = {value.name for value in graph.values()}
    for position, value in enumerate(graph.inputs):
        if value.name in orders:
            graph.inputs[position] = _input(graph, value, new_name(f"{value.name}/onnx", taken))
    for position, value in enumerate(graph.outputs):
        if value.name in orders and value.producer is not None:
            graph.outputs[position] = _output(graph, value, new_name(f"{value.name}/onnx", taken))
    graph.sort()


def _input(graph: Graph, value: Value, inner: str) -> Value:
    rank = value.type.rank
    shape = tuple(value.type.shape[axis] for axis in last_order(rank))
    given = Value(value.name, Fact(TensorType(value.type.dtype, shape)))
    value.name = inner
    graph.add(Node(Transpose(perm=first_order(rank)), [given], [value], (given.name,)))
    return given


def _output(graph: Graph, value: Value, inner: str) -> Value:
    assert value.producer is not None
    op = Transpose(perm=last_order(value.type.rank))
    node = Node(op, [value], [None], value.producer.provenance)
    handed = Value(value.name, op.infer(node.site())[0])
    value.name, node.outputs = inner, [handed]
    graph.add(node)
    return handed


def _is_picture(value: Value) -> bool:
    if value.type.rank != 3:
        return value.type.rank in (4, 5)
    around = [*_readers(value), *([value.producer] if value.producer else [])]
    return any(isinstance(node.op, Operator) and node.op.channels_last for node in around)


def _readers(value: Value) -> Iterator[Node]:
    """Those of the part that is used, too, where an input has room for the most."""
    for reader, _ in value.uses:
        yield reader
        if isinstance(reader.op, UsedPart):
            yield from _readers(reader.output)
