"""eliminate_common_subexpressions: nodes that compute the same from the same operands are merged, and so are equal
constants.

A Shape is that of any tensor of the same sizes, so that a tensor is not computed for its shape.

That two constants are equal is a fact about weights, so it is recorded; those of operators over integers, and all of
`--updatable` code, stay apart. Where two nodes find out one and the same size at run time, its two symbols become one,
in all that was made from them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base import dims
from ...base.dims import Dim, Symbol, Symbolic
from ...base.dtypes import SHORT
from ...base.text import write_fields
from ...graph.ir import Graph, Node, Value, graphs
from ...ops.api import Operator
from ...ops.conv import ConvInteger, ConvTransposeInteger
from ...ops.fixed_point import Rescale
from ...ops.matmul import MatMulInteger
from ...ops.shape import Shape
from ..api import Context

OWN = Rescale.domain  # of operators that no model has


def eliminate_common_subexpressions(graph: Graph, context: Context) -> None:
    _share_constants(graph)
    one: dict[Symbol, Symbol] = {}
    for part in graphs(graph):
        _share_nodes(part, one)
    if one:
        _rename(graph, one)


def _share_constants(graph: Graph) -> None:
    constants = graph.constants()  # those that only regions read included
    by_type: dict[str, list[Value]] = {}
    for value in constants:
        by_type.setdefault(str(value.type), []).append(value)
    for alike in by_type.values():
        if len(alike) == 1:
            continue  # never read for this
        first: dict[str, Value] = {}
        for value in alike:
            assert value.constant is not None
            kept = first.setdefault(value.constant.digest, value)
            if kept is not value and value.constant is not kept.constant:
                fact = f"{value.name} equals {kept.name}"
                if graph.updatable or _is_of_integers(value) or not graph.may_use(fact):
                    continue
                graph.assumptions[fact] = None
            if kept is not value and not graph.is_output(value):
                graph.replace(value, kept)


def _is_of_integers(value: Value) -> bool:
    """Is it a zero point, or read by operators over integers? Such numbers change with every training, and kernels
    pack most of them, so sharing would bring little."""
    if value.type.dtype in SHORT and value.type.count == 1:
        return True
    ops = [node.op for node, _ in value.uses]
    return any(op.domain == OWN or isinstance(op, ConvInteger | ConvTransposeInteger | MatMulInteger) for op in ops)


def _share_nodes(graph: Graph, one: dict[Symbol, Symbol]) -> None:
    """`one` gets the symbols that turn out to be one with others."""
    seen: dict[tuple[object, ...], Node] = {}
    for node in list(graph.nodes):
        op = node.op
        if node.regions or node.apart or not isinstance(op, Operator) or op.random:
            continue
        kept = seen.setdefault(_key(node, op), node)
        if kept is node or any(graph.is_output(value) for value in node.present_outputs):
            continue
        symbols = _same_symbols(node, kept, one)
        if symbols is None:
            continue
        one.update(symbols)
        for value, same in zip(node.outputs, kept.outputs, strict=True):
            if value is not None and same is not None:
                graph.replace(value, same)
        kept.provenance = tuple(dict.fromkeys((*kept.provenance, *node.provenance)))
        graph.remove(node)


def _key(node: Node, op: Operator) -> tuple[object, ...]:
    """The same for two nodes that compute the same."""
    if isinstance(op, Shape) and node.output.fact.value is not None:
        return (op.name, *node.output.fact.value)  # whatever tensors have these sizes
    present = tuple(value is not None for value in node.outputs)
    return (op.qualified_name, write_fields(op), tuple(map(id, node.inputs)), present)


def _same_symbols(node: Node, kept: Node, one: dict[Symbol, Symbol]) -> dict[Symbol, Symbol] | None:
    """Sizes that each of two nodes has a symbol of its own for; None where the results differ in more than that."""
    found: dict[Symbol, Symbol] = {}
    for value, same in zip(node.present_outputs, kept.present_outputs, strict=True):
        for own, other in zip(value.type.shape, same.type.shape, strict=True):
            own, other = _renamed(own, one | found), _renamed(other, one | found)
            if own == other:
                continue
            pair = [*dims.symbols(own), *dims.symbols(other)]
            if len(pair) != 2 or pair[0].bounds() != pair[1].bounds():
                return None
            found[pair[0]] = pair[1]
            if dims.substituted(own, found) != other:
                return None
    return found


def _renamed(dim: Dim, one: dict[Symbol, Symbol]) -> Dim:
    while not one.keys().isdisjoint(dims.symbols(dim)):
        dim = dims.substituted(dim, one)
    return dim


def _rename(graph: Graph, one: dict[Symbol, Symbol]) -> None:
    for value in [value for part in graphs(graph) for value in part.values()]:
        fact = value.fact
        shape, known = tuple(_renamed(dim, one) for dim in fact.type.shape), fact.value
        if known is not None and any(isinstance(element, Symbolic) for element in known.flat):
            known = np.empty(known.shape, dtype=object)
            for place, element in np.ndenumerate(fact.value):
                known[place] = _renamed(element, one) if isinstance(element, Symbolic) else element
        if shape != fact.type.shape or known is not fact.value:
            value.fact = replace(fact, type=replace(fact.type, shape=shape), value=known)
