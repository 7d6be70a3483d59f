"""Elementwise chains of integer operators over one 8-bit tensor become one lookup table: a GELU that is quantized after
every step is one lookup.

Every step keeps its own rounding, since entries are what the operators themselves give (`Operator.evaluate`).
"""

from __future__ import annotations

import numpy as np

from ....base.constant import Constant
from ....base.names import Names
from ....graph.ir import Graph, Node, Value, graphs
from ....ops.fixed_point import FixedPoint, Lookup, ProductInteger

STEPS = (Lookup, ProductInteger, FixedPoint)
TERMS: dict[type, int] = {Lookup: 1, ProductInteger: 2}  # FixedPoint says itself


def join_tables(graph: Graph) -> None:
    names = Names(value.name for part in graphs(graph) for value in part.values())
    for part in list(graphs(graph)):
        for node in reversed(list(part.nodes)):
            used = any(v.uses or part.is_output(v) for v in node.present_outputs)
            if used and isinstance(node.op, STEPS) and not isinstance(node.op, ProductInteger):
                _join(part, names, node)
        part.sort()


def _join(graph: Graph, names: Names, node: Node) -> None:
    chain: dict[Node, None] = {}
    sources = _sources(node, chain)
    if len(chain) < 2 or len(sources) != 1 or not _is_uniform(node):
        return
    source = sources.pop()
    if source.type.shape != node.output.type.shape or source.type.dtype.bits != 8 or source.constant is not None:
        return
    integers = np.arange(256, dtype=np.uint8).view(source.type.dtype.numpy)
    known: dict[Value, np.ndarray] = {source: integers}
    for step in chain:
        assert isinstance(step.op, STEPS)
        result = step.op.evaluate([None if v is None else _known(v, known) for v in step.inputs])
        if result is None or result.shape != (256,):
            return
        known[step.output] = result
    table = Value.of_constant(names.take(f"{node.output.name}/table"), Constant.of(known[node.output]))
    old = node.output
    new = Value(names.take(f"{old.name}/joined"), old.fact)
    graph.add(Node(Lookup(), [source, table], [new], tuple(dict.fromkeys(n for s in chain for n in s.provenance))))
    graph.replace(old, new)


def _sources(node: Node, chain: dict[Node, None]) -> set[Value]:
    """What a chain that ends in `node` reads; its nodes are added to `chain`, in order."""
    found: set[Value] = set()
    for value in _tensors(node):
        maker = value.producer
        if maker is not None and isinstance(maker.op, STEPS) and _is_step(maker):
            if maker not in chain:
                found |= _sources(maker, chain)
        elif value.constant is None or value.type.count != 1:
            found.add(value)
    chain[node] = None
    return found


def _tensors(node: Node) -> list[Value]:
    """The operands that a step is about; the others are its numbers."""
    count = node.op.terms if isinstance(node.op, FixedPoint) else TERMS[type(node.op)]
    return [value for value in node.inputs[:count] if value is not None]


def _is_step(node: Node) -> bool:
    """Not what is made of sums: those are no 8-bit tensors."""
    made = [
        v.type.dtype.bits == 8 or (v.producer is not None and isinstance(v.producer.op, STEPS)) for v in _tensors(node)
    ]
    return all(made) and _is_uniform(node)


def _is_uniform(node: Node) -> bool:
    """Are its numbers the same for all elements?"""
    numbers = [value for value in node.present_inputs if value not in _tensors(node)]
    return isinstance(node.op, Lookup) or all(v.constant is not None and v.type.count == 1 for v in numbers)


def _known(value: Value, known: dict[Value, np.ndarray]) -> np.ndarray:
    if value in known:
        return known[value]
    assert value.constant is not None
    return value.constant.array
