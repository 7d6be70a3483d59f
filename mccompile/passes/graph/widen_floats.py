"""widen_floats: operators on 16-bit floats compute in 32 bits where time comes first.

Machines that do not add and multiply 16-bit floats convert each number twice, and have no kernels in vectors for them.
So each operator that does the same for wider floats does it for them; inputs, outputs, and what other operators read
and write are converted. Operators that move elements and compute nothing stay as they are, unless what stands around
them computes. Invariant: elements are rounded to 16 bits less often than the model says, never more often.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.constant import Constant
from ...base.dtypes import bf16, f16, f32
from ...base.names import Names
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Refused, Value, graphs
from ...ops.cast import Cast
from ...ops.concat import Concat, Split
from ...ops.expand import Expand, Tile
from ...ops.gather import Compress, Gather, GatherElements, GatherND, ReverseSequence
from ...ops.growing import PutBehind
from ...ops.identity import Identity
from ...ops.pad import Pad
from ...ops.positions import Trilu
from ...ops.reshape import SameElements
from ...ops.resize import Resize
from ...ops.scatter import ScatterElements, ScatterND, TensorScatter
from ...ops.slice import Slice
from ...ops.transpose import DepthToSpace, SpaceToDepth, Transpose
from ...targets.api import Prefer
from ..api import Context

_NARROW = (f16, bf16)
_PICKS = (Compress, Gather, GatherElements, GatherND)  # elements of an operand that may be much larger
_MOVES = (
    *_PICKS,
    Concat,
    DepthToSpace,
    Expand,
    Identity,
    Pad,
    ReverseSequence,
    SameElements,
    ScatterElements,
    ScatterND,
    Slice,
    SpaceToDepth,
    Split,
    TensorScatter,
    Tile,
    Transpose,
    Trilu,
)


def widen_floats(graph: Graph, context: Context) -> None:
    if context.target.prefer != Prefer.TIME or context.target.option("half_lanes", 0):
        return
    names = Names(value.name for part in graphs(graph) for value in part.values())
    for part in list(graphs(graph)):
        _Widening(part, names).run()


class _Widening:
    def __init__(self, graph: Graph, names: Names) -> None:
        self.graph, self.names = graph, names
        self.wide: dict[Value, Value] = {}

    def joins_state(self, node: Node) -> bool:
        """Does it put what is new behind a state? That moves elements and rounds nothing; wide, it would be another
        copy of the state that lives until the run ends."""
        states = {value for value in self.graph.inputs if value.name in self.graph.states}
        return isinstance(node.op, (Concat, PutBehind)) and not states.isdisjoint(node.present_inputs)

    def run(self) -> None:
        nodes = [node for node in self.graph.nodes if not self.joins_state(node)]
        found = {node: facts for node in nodes if (facts := _wide_facts(node)) is not None}
        computed = {value for node in found if not _moves(node) for value in node.present_outputs}
        read = {value for node in found if not _moves(node) for value in node.present_inputs}
        for node in filter(_moves, found):
            if not computed.isdisjoint(node.present_inputs):
                computed.update(node.present_outputs)
        for node in filter(_moves, reversed(found)):
            if not read.isdisjoint(node.present_outputs):
                read.update(node.present_inputs)
        for node, facts in found.items():
            picks = isinstance(node.op, _PICKS) and next(node.present_inputs).constant is None
            for_readers = not picks and not read.isdisjoint(node.present_outputs)
            if not _moves(node) or for_readers or not computed.isdisjoint(node.present_inputs):
                self.widen(node, facts)
        self.graph.sort()

    def widen(self, node: Node, facts: list[Fact | None]) -> None:
        """A node over wider floats, whose results are narrowed for whoever still reads those."""
        inputs = [self.widened(value, node) if value is not None else None for value in node.inputs]
        outputs = []
        for value, fact in zip(node.outputs, facts, strict=True):
            if value is not None and fact is not None and value.type.dtype in _NARROW:
                self.wide[value] = Value(self.names.take(f"{value.name}_wide"), fact)
            outputs.append(value and self.wide.get(value, value))
        results = list(node.outputs)
        self.graph.remove(node)
        self.graph.add(Node(node.op, inputs, outputs, node.provenance))
        for value in results:
            if value is not None and value in self.wide:
                cast = Cast(to=value.type.dtype.onnx)
                self.graph.add(Node(cast, [self.wide[value]], [value], node.provenance))

    def widened(self, value: Value, reader: Node) -> Value:
        if value.type.dtype not in _NARROW:
            return value
        if value not in self.wide:
            name, type = self.names.take(f"{value.name}_wide"), _wide(value.type)
            if value.constant is not None:
                self.wide[value] = Value.of_constant(name, _wide_constant(value.constant))
            else:
                self.wide[value] = Value(name, Fact(type))
                self.graph.add(Node(Cast(to=f32.onnx), [value], [self.wide[value]], reader.provenance))
        return self.wide[value]


def _moves(node: Node) -> bool:
    """Does it move elements alone?"""
    if isinstance(node.op, Resize):
        return node.op.mode == "nearest"
    adds = getattr(node.op, "reduction", "none") != "none"
    return isinstance(node.op, _MOVES) and not node.op.domain and not adds


def _wide_facts(node: Node) -> list[Fact | None] | None:
    """What results a node has for wider floats; None where it reads no narrow ones or does not do the same for wide
    ones."""
    if node.regions or not any(value.type.dtype in _NARROW for value in node.present_inputs):
        return None
    facts = tuple(fact and _wide_fact(fact) for fact in node.site().facts)
    results = tuple(None if value is None else _wide(value.type) for value in node.outputs)
    try:
        found = node.op.infer(replace(node.site(), facts=facts, results=results))
    except Refused:
        return None
    if any(type is not None and fact.type != type for type, fact in zip(results, found, strict=True)):
        return None
    return [fact if type is not None else None for type, fact in zip(results, found, strict=True)]


def _wide(type: TensorType) -> TensorType:
    return replace(type, dtype=f32) if type.dtype in _NARROW else type


def _wide_fact(fact: Fact) -> Fact:
    constant = fact.constant and _wide_constant(fact.constant)
    return Fact(_wide(fact.type), fact.value, constant)


def _wide_constant(constant: Constant) -> Constant:
    if constant.type.dtype not in _NARROW:
        return constant
    return Constant(_wide(constant.type), lambda: constant.array.astype(f32.numpy))
