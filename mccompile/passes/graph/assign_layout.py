"""assign_layout: results of convolutions and their like lie channels-last in memory, and so does what follows them.

Kernels read any strides, so only the order in which results are written matters. In three steps:

1. The result of each operator that runs best channels-last is transposed in memory and looked at in ONNX order again:
   y -> TransposeInMemory(channels last) -> Transpose(channels first) -> readers. The first is a copy that the Program
   pass `fuse` makes part of the operator, the second a view.
2. Operators that can work in another order of axes (`reordered`) are moved before the second transpose, so whole chains
  stay channels-last; opposite transposes meet and cancel (also with those of the model, in simplify_algebra).
3. Where nobody gains (the readers are outputs of the model, or need the ONNX order), the pair is taken out again.

Invariant: no transposes in memory are left that do not serve a reader; inputs and outputs of the model keep their
layout.
"""

from __future__ import annotations

import numpy as np

from ...base.constant import Constant
from ...base.dims import upper
from ...graph.ir import Fact, Graph, Node, Refused, Value
from ...graph.pattern import graphs
from ...ops.api import Operator
from ...ops.reshape import Unsqueeze
from ...ops.transpose import Transpose, TransposeInMemory
from ..api import Context


def assign_layout(graph: Graph, context: Context) -> None:
    names = {value.name for part in graphs(graph) for value in part.values()}
    for part in list(graphs(graph)):
        _Layout(part, names).run()


class _Layout:
    def __init__(self, graph: Graph, names: set[str]) -> None:
        self.graph, self.names = graph, names

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if isinstance(node.op, Operator) and node.op.channels_last:
                self.store(node)
        self.graph.sort()
        for node in list(self.graph.nodes):
            self.sink(node)
        self.graph.sort()
        for node in list(self.graph.nodes):
            if isinstance(node.op, TransposeInMemory):
                self.undo(node)

    def store(self, node: Node) -> None:
        """Step 1 for one operator."""
        y = node.output
        rank = y.type.rank
        if rank < 3 or upper(y.type.shape[1]) == 1 or all(upper(dim) == 1 for dim in y.type.shape[2:]):
            return  # both orders are the same in memory
        readers = list(y.uses)
        stored = self.add(TransposeInMemory(perm=last_order(rank)), [y], node, f"{y.name}/last")
        back = self.add(Transpose(perm=first_order(rank)), [stored], node, f"{y.name}/first")
        for reader, position in readers:
            self.graph.set_input(reader, position, back)
        for position, output in enumerate(self.graph.outputs):
            if output is y:
                self.graph.outputs[position] = back
                back.name, y.name = y.name, back.name

    def sink(self, node: Node) -> None:
        """Step 2 for one node: `node` of transposed operands becomes the transpose of a node."""
        rank = node.output.type.rank if node.outputs and node.outputs[0] else 0
        if not isinstance(node.op, Operator) or rank < 3 or not any(_is_back(v, rank) for v in node.present_inputs):
            return
        op = node.op.reordered(last_order(rank))
        if op is None or any(value.type.rank != rank for value in node.present_outputs):
            return
        inputs = [self.last(value, rank, node) if value is not None else None for value in node.inputs]
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
                self.graph.replace(old, self.add(Transpose(perm=first_order(rank)), [new], node, f"{old.name}/first"))
        self.graph.remove(node)

    def last(self, value: Value, rank: int, reader: Node) -> Value:
        """An operand as the moved node takes it."""
        if _is_back(value, rank):
            maker = value.producer
            assert maker is not None and maker.inputs[0] is not None
            return maker.inputs[0]
        if value.type.count == 1 and value.type.rank < rank:
            return value
        if value.type.rank < rank:
            axes = Constant.of(np.arange(rank - value.type.rank, dtype=np.int64))
            value = self.add(
                Unsqueeze(),
                [value, Value.of_constant(self.name(f"{value.name}/axes"), axes)],
                reader,
                f"{value.name}/full",
            )
        return self.add(Transpose(perm=last_order(rank)), [value], reader, f"{value.name}/last")

    def undo(self, node: Node) -> None:
        """Step 3 for one transpose in memory."""
        source, stored = node.inputs[0], node.output
        assert source is not None
        rank = stored.type.rank
        backs = [reader for reader, _ in stored.uses]
        if self.graph.is_output(stored) or not all(_is_back(back.output, rank) for back in backs):
            return
        if any(_gains(reader) for back in backs for reader, _ in back.output.uses):
            return
        for back in backs:
            self.graph.replace(back.output, source)
            self.graph.remove(back)
        self.graph.remove(node)

    def add(self, op: Operator, inputs: list[Value | None] | list[Value], near: Node, name: str) -> Value:
        draft = Node(op, inputs, [None], near.provenance)
        result = Value(self.name(name), op.infer(draft.site())[0])
        draft.outputs = [result]
        self.graph.add(draft)
        return result

    def name(self, text: str) -> str:
        name, number = text, 1
        while name in self.names:
            number += 1
            name = f"{text}_{number}"
        self.names.add(name)
        return name


def last_order(rank: int) -> tuple[int, ...]:
    """Batch, space, channels."""
    return (0, *range(2, rank), 1)


def first_order(rank: int) -> tuple[int, ...]:
    """Batch, channels, space: what undoes `last_order`."""
    return (0, rank - 1, *range(1, rank - 1))


def _is_back(value: Value, rank: int) -> bool:
    """Is it a channels-last tensor looked at in ONNX order?"""
    maker = value.producer
    return maker is not None and type(maker.op) is Transpose and maker.op.perm == first_order(rank)


def _gains(reader: Node) -> bool:
    return isinstance(reader.op, Operator) and reader.op.channels_last
