"""assign_layout: results of convolutions and similar operators are stored channels-last, and so are the tensors that
follow them.

Kernels read any strides, so only the order in which results are written matters. In three steps:

1. A value is wanted channels-last where a reader runs best so, or can work in another order of axes (`reordered`, or
   what wants operand and result in one layout) and its own result is wanted so; and where nobody would have to copy it
   back: it is not an output of the model, and no reader reshapes it in a way that only the ONNX order can be looked at.
2. Such a result of an operator that runs best channels-last is transposed in memory and looked at in ONNX order again:
   y -> TransposeInMemory(channels last) -> Transpose(channels first) -> readers. The first is a copy that the Program
   pass `fuse` makes part of the operator, the second a view.
3. Operators between are moved before the second transpose, so whole chains stay channels-last; opposite transposes meet
   and cancel (also with those of the model, in simplify_algebra).

Invariant: there are no more copies afterwards than before; inputs and outputs of the model keep their layout.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import upper
from ...base.names import new_name
from ...graph.ir import Fact, Graph, Node, Origin, Refused, Value, graphs
from ...ops.api import Operator
from ...ops.reshape import Unsqueeze
from ...ops.transpose import Transpose, TransposeInMemory
from ...program.ir import Buffer
from ..api import Context


def assign_layout(graph: Graph, context: Context) -> None:
    names = {value.name for part in graphs(graph) for value in part.values()}
    for part in list(graphs(graph)):
        _Layout(part, names).run()


_RESHAPES = frozenset({"Reshape", "Flatten"})


class _Layout:
    def __init__(self, graph: Graph, names: set[str]) -> None:
        self.graph, self.names = graph, names
        self.constants: dict[tuple[Value, int], Value] = {}  # in their new order, by rank

    def run(self) -> None:
        nodes = list(self.graph.nodes)
        wanted: set[Value] = set()
        for node in reversed(nodes):
            wanted.update(value for value in node.present_outputs if self.is_wanted(value, wanted))
        for node in nodes:
            if isinstance(node.op, Operator) and node.op.channels_last and node.output in wanted:
                self.store(node)
        self.graph.sort()
        for node in list(self.graph.nodes):
            if not wanted.isdisjoint(node.present_outputs):
                self.sink(node)
        self.graph.sort()

    def is_wanted(self, value: Value, wanted: set[Value]) -> bool:
        """Step 1 for one value; those made later are known."""
        type, rank = value.type, value.type.rank
        if rank < 3 or self.graph.is_output(value):
            return False
        maker = value.producer
        if maker is not None and _keeps(maker) and maker.inputs[0] is not None and maker.inputs[0].producer is None:
            return False  # an input of the model keeps its layout
        if upper(type.shape[1]) == 1 or all(upper(dim) == 1 for dim in type.shape[2:]):
            return False  # both orders are the same in memory
        readers = [reader for reader, _ in value.uses]
        if any(_copies(reader, value) for reader in readers):
            return False
        if readers and all(_is_last(reader) for reader in readers):
            return True
        return any(
            (_gains(reader) and not _keeps(reader))
            or ((_keeps(reader) or _moves(reader, rank)) and not wanted.isdisjoint(reader.present_outputs))
            for reader in readers
        )

    def store(self, node: Node) -> None:
        """Step 2 for one operator."""
        y, rank = node.output, node.output.type.rank
        readers = list(y.uses)
        stored = self.add(TransposeInMemory(perm=last_order(rank)), [y], node, f"{y.name}/last")
        stored.origin = reordered(y, last_order(rank))
        back = self.add(Transpose(perm=first_order(rank)), [stored], node, f"{y.name}/first")
        for reader, position in readers:
            self.graph.set_input(reader, position, back)

    def sink(self, node: Node) -> None:
        """Step 3 for one node: `node` of transposed operands becomes the transpose of a node."""
        rank = next(node.present_outputs).type.rank
        op = _moves(node, rank)
        if op is None or not isinstance(node.op, Operator) or not any(_is_back(v, rank) for v in node.present_inputs):
            return
        try:
            spoken = node.op.reordered_operands(node.site(), last_order(rank))
        except Refused:  # an operand that speaks of axes is computed at run time
            return
        if not all(_is_told(node, position) for position in spoken):
            return
        inputs: list[Value | None] = []
        for position, value in enumerate(node.inputs):
            if value is None or position in spoken:
                inputs.append(self.spoken(value, spoken.get(position)))
            else:
                inputs.append(self.last(value, rank, node))
        outputs = [Value(self.name(f"{v.name}/last"), v.fact) if v is not None else None for v in node.outputs]
        moved = Node(op, inputs, outputs, node.provenance)
        try:
            facts = op.infer(moved.site())
        except Refused:
            return
        for value, fact in zip(outputs, facts, strict=False):
            if value is not None:
                value.fact = Fact(fact.type)
        self.graph.add(moved)
        for old, new in zip(node.outputs, outputs, strict=True):
            if old is not None and new is not None:
                new.origin = reordered(old, last_order(rank))
                self.graph.replace(old, self.add(Transpose(perm=first_order(rank)), [new], node, f"{old.name}/first"))
        self.graph.remove(node)

    def spoken(self, value: Value | None, contents: np.ndarray | None) -> Value | None:
        """An operand that speaks of axes, in terms of their new order."""
        if value is None or contents is None:
            return value
        return Value.of_constant(self.name(f"{value.name}/last"), Constant.of(contents))

    def last(self, value: Value, rank: int, reader: Node) -> Value:
        """An operand as the moved node takes it."""
        if _is_back(value, rank):
            maker = value.producer
            assert maker is not None and maker.inputs[0] is not None
            return maker.inputs[0]
        if value.type.count == 1 and value.type.rank < rank:
            return value
        if value.constant is None:
            return self.turned(value, rank, reader)
        if (value, rank) not in self.constants:  # which are folded, and kept once however many nodes read them
            self.constants[value, rank] = self.turned(value, rank, reader)
        return self.constants[value, rank]

    def turned(self, value: Value, rank: int, reader: Node) -> Value:
        if value.type.rank < rank:
            axes = Constant.of(np.arange(rank - value.type.rank, dtype=np.int64))
            value = self.add(
                Unsqueeze(),
                [value, Value.of_constant(self.name(f"{value.name}/axes"), axes)],
                reader,
                f"{value.name}/full",
            )
        return self.add(Transpose(perm=last_order(rank)), [value], reader, f"{value.name}/last")

    def add(self, op: Operator, inputs: list[Value | None] | list[Value], near: Node, name: str) -> Value:
        return self.graph.compute(op, inputs, [self.name(name)], near.provenance)[0]

    def name(self, text: str) -> str:
        return new_name(text, self.names)


def reordered(value: Value, order: tuple[int, ...]) -> Origin | None:
    """What the value holds of the file, where its axes come in another order."""
    found = value.origin
    return found and replace(found, order=tuple(found.order[axis] for axis in order))


def last_order(rank: int) -> tuple[int, ...]:
    """Batch, space, channels."""
    return (0, *range(2, rank), 1)


def first_order(rank: int) -> tuple[int, ...]:
    """Batch, channels, space: what undoes `last_order`."""
    return (0, rank - 1, *range(1, rank - 1))


def _is_told(node: Node, position: int) -> bool:
    """Is an operand absent, or known at compile time?"""
    value = node.inputs[position] if position < len(node.inputs) else None
    return value is None or value.constant is not None or value.fact.value is not None


def _is_back(value: Value, rank: int) -> bool:
    """Is it a channels-last tensor looked at in ONNX order?"""
    maker = value.producer
    return maker is not None and type(maker.op) is Transpose and maker.op.perm == first_order(rank)


def _is_last(reader: Node) -> bool:
    """Does it look at a tensor in ONNX order as a channels-last one? Then the pair cancels."""
    return type(reader.op) is Transpose and reader.op.perm == last_order(reader.output.type.rank)


def _moves(node: Node, rank: int) -> Operator | None:
    """What does the same channels-last."""
    if not isinstance(node.op, Operator) or any(value.type.rank != rank for value in node.present_outputs):
        return None
    return node.op.reordered(last_order(rank))


def _copies(reader: Node, value: Value) -> bool:
    """Does it reshape in a way that a channels-last tensor would have to be copied for?"""
    if reader.op.name not in _RESHAPES or reader.op.domain:
        return False
    type, rank = value.type, value.type.rank
    stored = Buffer("stored", type.dtype, tuple(type.shape[axis] for axis in last_order(rank)))
    return stored.whole().permuted(first_order(rank)).reshaped(reader.output.type.shape) is None


def _keeps(node: Node) -> bool:
    """Does it want its result and operand 0 in one layout?"""
    return isinstance(node.op, Operator) and node.op.same_layout


def _gains(reader: Node) -> bool:
    return isinstance(reader.op, Operator) and reader.op.channels_last
