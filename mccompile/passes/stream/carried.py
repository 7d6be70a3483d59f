"""Recurrent layers that continue from push to push, where the stream is assumed to continue beyond the ends of windows
(edge=warm).

Within a window a layer starts anew, so its results are those of the whole window. In a stream without edges its state
is what the run before left.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.names import Names
from ...graph.ir import Graph, Node, Value
from ...ops.constant import ConstantOfShape
from ...ops.expand import Expand
from ...ops.gather import Gather
from ...ops.identity import Identity
from ...ops.recurrent import Layer
from ...ops.reshape import SameElements
from ...ops.scan import Scan
from ...ops.transpose import Transpose
from .motion import NodeMotion, Step, moves

_LENGTHS, _H, _C = 4, 5, 6  # operands


@moves(Layer)
def layer(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Layer)
    if motion is None or not at.warm or not can_go_on(at.node) or motion.axis != op.layout:
        return None
    carries = {_H: 1, _C: 2} if op.cell == "lstm" else {_H: 1}
    results = (motion, *(None for _ in at.node.outputs[1:]))
    return Step(results, {0: at.new(motion)}, saves=True, carries=carries)


@moves(Scan)
def scan(at: NodeMotion) -> Step | None:
    """Slice by slice along time, where values go on from zeros and nobody reads what they end with."""
    op, node = at.node.op, at.node
    assert isinstance(op, Scan)
    cut = op.cut(at.site)
    states = len(node.inputs) - len(cut)
    moving = [at.motions[place] for place, _ in cut]
    first = moving[0]
    if not at.warm or first is None or any(at.motions[:states]):
        return None
    alike = all(motion == replace(first, axis=axis) for motion, (_, axis) in zip(moving, cut, strict=True))
    starts = all(value is not None and _is_zero(value) for value in node.inputs[:states])
    read = any(value is not None and value.uses for value in node.outputs[:states])
    if not alike or not starts or read or any((*op.scan_input_directions, *op.scan_output_directions)):
        return None
    axes = op.collected_axes(at.site)
    results = (*(None for _ in range(states)), *(replace(first, axis=axis) for axis in axes))
    reads = {place: at.new(first) for place, _ in cut}
    return Step(results, reads, saves=True, carries={place: place for place in range(states)})


def read_last(graph: Graph) -> None:
    """Whoever reads the state that a window ends with reads the last element of the sequence: which has a time."""
    names = Names()
    for value in graph.values():
        names.take(value.name)
    for node in list(graph.nodes):
        last = node.outputs[1] if len(node.outputs) > 1 else None
        if not isinstance(node.op, Layer) or last is None or not can_go_on(node):
            continue
        if node.outputs[0] is None:
            sequence = Value(names.take(f"{last.name}/sequence"), node.op.infer(node.site())[0])
            node.outputs[0], sequence.producer = sequence, node
        place = Value.of_constant(names.take(f"{last.name}/last"), Constant.of(np.array(-1, np.int64)))
        picked = Node(Gather(axis=node.op.layout), [node.output, place], [None], node.provenance)
        picked.outputs = [Value(names.take(f"{last.name}/newest"), picked.op.infer(picked.site())[0])]
        graph.add(picked)
        graph.replace(last, picked.output)
    graph.sort()


def goes_on(node: Node) -> bool:
    """Is it a layer that a stream without edges need not start anew?"""
    return isinstance(node.op, Layer) and can_go_on(node)


def can_go_on(node: Node) -> bool:
    """Does it run forward, from zeros, through all of the sequence? And is what a cell holds read by nobody?"""
    op = node.op
    assert isinstance(op, Layer)
    operands = [*node.inputs, *[None] * (_C + 1 - len(node.inputs))]
    cells = node.outputs[2] if len(node.outputs) > 2 else None
    starts = all(value is None or _is_zero(value) for value in operands[_H : _C + 1])
    return op.direction == "forward" and operands[_LENGTHS] is None and starts and not (cells and cells.uses)


def _is_zero(value: Value) -> bool:
    if value.constant is not None:
        return not value.constant.array.any()
    node = value.producer
    if node is None:
        return False
    if isinstance(node.op, ConstantOfShape):
        return not node.op.value
    first = node.inputs[0] if node.inputs else None
    moves_only = isinstance(node.op, Expand | Identity | SameElements | Transpose)
    return moves_only and first is not None and _is_zero(first)
