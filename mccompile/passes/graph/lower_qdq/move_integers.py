"""Operators that only move or select elements are applied to the integers instead of the floats that these represent:
Transpose(DequantizeLinear(q)) becomes DequantizeLinear(Transpose(q)).

Only where all elements have one scale and one zero point; several operands must have the same, which is recorded.
The other way round, QuantizeLinear(Transpose(x)) becomes Transpose(QuantizeLinear(x)) where elements stay as many, or
where operators over quantized tensors make what is moved, so that they meet its quantization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....base.constant import Constant
from ....base.names import Names
from ....graph.ir import Fact, Graph, Node, Refused, Value, graphs
from ....ops.concat import Concat, Split
from ....ops.expand import Expand, Tile
from ....ops.gather import Gather
from ....ops.pad import Pad
from ....ops.pool import GlobalMaxPool, MaxPool
from ....ops.quantize import QuantizeLinear
from ....ops.reduce import ReduceMax, ReduceMin
from ....ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze
from ....ops.resize import Resize
from ....ops.slice import Slice
from ....ops.transpose import DepthToSpace, SpaceToDepth, Transpose
from ...quantized.quantized_tensors import Scheme, dequantized, scheme

MOVES = (
    Concat,
    DepthToSpace,
    Expand,
    Flatten,
    Gather,
    GlobalMaxPool,
    MaxPool,
    Pad,
    ReduceMax,
    ReduceMin,
    Reshape,
    Resize,
    Slice,
    SpaceToDepth,
    Split,
    Squeeze,
    Tile,
    Transpose,
    Unsqueeze,
)


_SAME_ELEMENTS = (DepthToSpace, Flatten, Reshape, SpaceToDepth, Squeeze, Transpose, Unsqueeze)
_SOME_ELEMENTS = (Concat, Expand, Gather, Pad, Resize, Slice, Tile)


def move_integers(graph: Graph) -> None:
    names = Names(value.name for part in graphs(graph) for value in part.values())
    for part in list(graphs(graph)):
        _quantize_once(part, graph)
        for node in list(part.nodes):
            if isinstance(node.op, MOVES) and not node.op.domain:
                _move(part, graph, names, node)
        for node in reversed(list(part.nodes)):
            if isinstance(node.op, QuantizeLinear):
                _quantize_earlier(part, names, node)
        for node in list(part.nodes):
            if isinstance(node.op, Split) and not node.op.domain:
                _quantize_before_split(part, graph, names, node)
        part.sort()


def _quantize_once(graph: Graph, whole: Graph) -> None:
    """Quantizers that give each reader of a tensor integers of its own, though they are quantized alike."""
    first: dict[tuple[Value, Scheme], Node] = {}
    for node in list(graph.nodes):
        found = scheme(node) if isinstance(node.op, QuantizeLinear) else None
        source = node.inputs[0] if found is not None else None
        if found is None or source is None or found.axis is not None:
            continue
        kept = first.setdefault((source, found), node)
        alike = f"{node.output.name} is quantized as {kept.output.name} is"
        if kept is node or graph.is_output(node.output) or not whole.may_use(alike):
            continue
        whole.assumptions[alike] = None
        kept.provenance = tuple(dict.fromkeys((*kept.provenance, *node.provenance)))
        graph.replace(node.output, kept.output)
        graph.remove(node)


def _quantize_earlier(graph: Graph, names: Names, node: Node) -> None:
    found = scheme(node)
    if found is None or found.axis is not None:
        return
    pending = [node]
    while pending:
        node = pending.pop()
        move = _only_moves(graph, node.inputs[0])
        if move is None:
            continue
        sources = move.inputs if isinstance(move.op, Concat) else move.inputs[:1]
        made: dict[Value, Value] = {}  # one may stand there twice
        for source in sources:
            if source is not None and source not in made:
                quantized = Node(node.op, [source, *node.inputs[1:]], [None], node.provenance)
                fact = Fact(replace(source.type, dtype=found.dtype))
                made[source] = Value(names.take(f"{source.name}/integers"), fact)
                quantized.outputs = [made[source]]
                graph.add(quantized)
                pending.append(quantized)
        inputs = _operands(move, [None if source is None else made[source] for source in sources], found, names)
        assert inputs is not None  # `_only_moves` has seen to it
        moved, old = Node(move.op, inputs, [None], move.provenance), node.output
        moved.outputs = [Value(names.take(f"{old.name}/moved"), replace(old.fact))]
        graph.add(moved)
        name = old.name
        graph.replace(old, moved.output)
        if moved.output.name != name:
            moved.output.name, old.name = name, moved.output.name
        graph.remove(node)
        graph.remove(move)


def _quantize_before_split(graph: Graph, whole: Graph, names: Names, split: Node) -> None:
    """One quantizer in front of a Split instead of one behind each of its results, where all quantize alike."""
    source, results = split.inputs[0], [value for value in split.outputs if value is not None]
    uses = [value.uses for value in results]
    if source is None or not _of_quantized(source) or any(len(found) != 1 for found in uses):
        return
    readers = [next(iter(found))[0] for found in uses]
    schemes = [scheme(node) if isinstance(node.op, QuantizeLinear) else None for node in readers]
    first = schemes[0]
    if first is None or first.axis is not None or any(found != first for found in schemes):
        return
    alike = f"all results of {split.outputs[0] or source} are quantized alike"
    if any(graph.is_output(value) or node not in graph.nodes for value, node in zip(results, readers, strict=True)):
        return
    if not whole.may_use(alike):
        return
    whole.assumptions[alike] = None
    fact = Fact(replace(source.type, dtype=first.dtype))
    quantized = Value(names.take(f"{source.name}/integers"), fact)
    model = readers[0]
    node = Node(model.op, [source, *model.inputs[1:]], [None], model.provenance)
    node.outputs = [quantized]
    graph.add(node)
    moved = Node(split.op, [quantized, *split.inputs[1:]], [None] * len(split.outputs), split.provenance)
    made = list(split.outputs)
    for old, reader in zip(results, readers, strict=True):
        name = reader.output.name
        new = Value(names.take(f"{name}/moved"), replace(reader.output.fact))
        made = [new if value is old else value for value in made]
        graph.replace(reader.output, new)
        new.name, reader.output.name = name, new.name
    moved.outputs = made
    graph.add(moved)
    for reader in readers:
        graph.remove(reader)
    graph.remove(split)


def _only_moves(graph: Graph, value: Value | None) -> Node | None:
    """What makes a value that nobody else reads, where it only moves elements."""
    if value is None or value.producer is None or len(value.uses) > 1 or graph.is_output(value):
        return None
    move = value.producer
    if move not in graph.nodes or any(source is None for source in move.inputs[:1]):  # a region reads it; it stays
        return None
    if isinstance(move.op, _SAME_ELEMENTS):
        return move
    sources = move.inputs if isinstance(move.op, Concat) else move.inputs[:1]
    meet = all(_of_quantized(source) for source in sources)
    if not meet or not isinstance(move.op, _SOME_ELEMENTS) or (isinstance(move.op, Pad) and not _pads_zeros(move)):
        return None
    return None if isinstance(move.op, Resize) and not _only_repeats(move.op) else move


def _only_repeats(op: Resize) -> bool:
    """Is every element of the result one of the operand?"""
    return op.mode == "nearest" and op.coordinate_transformation_mode != "tf_crop_and_resize"


def _of_quantized(value: Value | None) -> bool:
    """Does an operator over quantized tensors make it, or what it is a part of?"""
    maker = None if value is None else value.producer
    if maker is not None and isinstance(maker.op, Split):
        return _of_quantized(maker.inputs[0])
    return maker is not None and any(dequantized(operand) is not None for operand in maker.inputs)


def _pads_zeros(node: Node) -> bool:
    value = node.inputs[2] if len(node.inputs) > 2 else None
    op = node.op
    zeros = value is None or (value.constant is not None and not value.constant.array.any())
    return isinstance(op, Pad) and (op.mode != "constant" or zeros)


def _move(graph: Graph, whole: Graph, names: Names, node: Node) -> None:
    count = len(node.inputs) if isinstance(node.op, Concat) else 1
    schemes = [dequantized(value) for value in node.inputs[:count]]
    first = schemes[0]
    if first is None or first.axis is not None or any(found != first for found in schemes):
        return
    alike = f"all operands of {node.output.name} are quantized alike"
    if count > 1 and not whole.may_use(alike):
        return
    makers = [value.producer for value in node.inputs[:count] if value is not None]
    model = makers[0]
    inputs = _operands(node, [maker.inputs[0] for maker in makers if maker is not None], first, names)
    if model is None or inputs is None:
        return
    moved = Node(node.op, inputs, [None] * len(node.outputs), node.provenance)
    # Sizes that follow from data stay what they are called.
    results = tuple(None if old is None else replace(old.type, dtype=first.dtype) for old in node.outputs)
    try:
        facts = node.op.infer(replace(moved.site(), results=results))
    except Refused:
        return
    if any(value is not None and value.type.dtype is not first.dtype for value in moved.inputs[:count]):
        return
    moved.outputs = [
        None if old is None else Value(names.take(f"{old.name}/integers"), fact)
        for old, fact in zip(node.outputs, facts, strict=False)
    ]
    if count > 1:
        whole.assumptions[alike] = None
    graph.add(moved)
    for old, integers in zip(node.outputs, moved.outputs, strict=True):
        if old is None or integers is None:
            continue
        new = Value(names.take(f"{old.name}/floats"), replace(old.fact))
        graph.add(Node(model.op, [integers, *model.inputs[1:]], [new], model.provenance))
        name = old.name
        graph.replace(old, new)
        if new.name != name:
            new.name, old.name = name, new.name
    graph.remove(node)


def _operands(node: Node, sources: Sequence[Value | None], found: Scheme, names: Names) -> list[Value | None] | None:
    """The operands with integers in place of floats, or None where elements are made and not only moved."""
    rest = node.inputs[len(sources) :]
    match node.op:
        case MaxPool() if len(node.outputs) > 1:
            return None
        case Resize() if not _only_repeats(node.op):
            return None
        case Pad() if not _pads_zeros(node):
            return None
        case Pad() if node.op.mode == "constant":
            zero = Constant.of(np.array(found.zero, found.dtype.numpy))
            filled: list[Value | None] = [
                node.inputs[1],
                Value.of_constant(names.take(f"{node.output.name}/zero"), zero),
            ]
            return [*sources, *filled, *node.inputs[3:]]
    return [*sources, *rest]
