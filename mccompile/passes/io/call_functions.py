"""call_functions: nodes, operators and sub-graphs that C functions of the user compute, for `--external`.

What is handed to a function is one node: operands are those of the node, or the tensors in front of the sub-graph in
the order of the option, then its constants in the order in which nodes read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...base.constant import Constant
from ...base.errors import Problem, WrongUse
from ...base.names import new_name
from ...base.near import meant, near_file
from ...base.own_functions import OwnFunction, skeleton
from ...base.provenance import Provenance
from ...graph.ir import Fact, Graph, Node, Value, all_nodes, graphs, reads
from ...ops.api import Operator
from ...ops.external import External, handed_attributes
from ...ops.transpose import Transpose
from ..graph.assign_layout import first_order, last_order

OURS = "mcc_external.h"  # has a function, too: mcc_external_copy


def call_functions(graph: Graph, asked: Sequence[OwnFunction]) -> None:
    for own in asked:
        _check_header(own)
        if own.ends is not None:
            _between(graph, own, *own.ends)
            continue
        # what nothing else knows is such a node already
        found = any(isinstance(n.op, External) and n.op.function == own.name for n in all_nodes(graph))
        for part in list(graphs(graph)):
            for node in [node for node in part.nodes if _is_meant(own, node)]:
                found = True
                _replace(part, own, [node], node.inputs, [*node.present_outputs], _attributes(node))
            part.sort()
        if not found:
            names = {node.op.qualified_name for node in all_nodes(graph)}
            names |= {name for node in all_nodes(graph) for name in node.provenance}
            fix = meant(own.subject, names) or "name an operator, a node, or tensors: FIRST..LAST"
            why = "its operators and nodes have other names"
            raise WrongUse(Problem(f"nothing in the model is called {own.subject!r}", "--external", why, fix))
    for own in asked:
        if own.nhwc:
            _turn(graph, own)


def refuse_functions(asked: Sequence[OwnFunction], where: str) -> None:
    """For what has to be run by others than compiled code."""
    for own in asked:
        why = f"nothing else runs {own.name}"
        fix = "quantize the model without the operator, then compile the result with --external"
        raise WrongUse(Problem(f"ranges cannot be found with --external {own.subject}={own.name}", where, why, fix))


def _is_meant(own: OwnFunction, node: Node) -> bool:
    if isinstance(node.op, External) or node.regions:
        return False
    return own.names(node.op.domain, node.op.name) or node.provenance == (own.subject,)


def _attributes(node: Node) -> dict[str, object]:
    assert isinstance(node.op, Operator)
    return dict(node.op.to_onnx()[0])


def _replace(
    graph: Graph,
    own: OwnFunction,
    nodes: Sequence[Node],
    operands: Sequence[Value | None],
    results: Sequence[Value],
    attributes: dict[str, object],
) -> None:
    """One node in place of several."""
    op = External(
        own.name,
        tuple(value.type.dtype if value else None for value in operands),
        tuple((value.type.dtype, value.type.shape) for value in results),
        handed_attributes(attributes),
        own.include,
        own.workspace,
        own.align,
        own.strided,
    )
    provenance: Provenance = tuple(dict.fromkeys(name for node in nodes for name in node.provenance))
    for node in reversed(nodes):
        graph.remove(node)
    graph.add(Node(op, operands, results, provenance))


def _between(graph: Graph, own: OwnFunction, given: Sequence[str], made: Sequence[str]) -> None:
    values = {value.name: value for value in graph.values()}
    for name in (*given, *made):
        if name not in values:
            fix = meant(name, values) or 'name tensors that `mccompile opt MODEL --passes ""` shows'
            raise WrongUse(Problem(f"there is no tensor {name!r}", f"--external {own.subject}", "", fix))
    first, last = [values[name] for name in given], [values[name] for name in made]
    inside = set(_needed(graph, own, first, last))
    nodes = [node for node in graph.nodes if node in inside]
    _check_alone(graph, own, nodes, first, last)
    constants = {value: None for node in nodes for value in reads(node) if value.constant is not None}
    _replace(graph, own, nodes, [*first, *(value for value in constants if value not in first)], last, _agreed(nodes))
    graph.sort()


def _agreed(nodes: Sequence[Node]) -> dict[str, object]:
    """The attributes in which all nodes agree that have one of the name, without tensors."""
    found: dict[str, list[object]] = {}
    for node in nodes:
        for name, value in _attributes(node).items():
            found.setdefault(name, []).append(value)
    same = {name: values[0] for name, values in found.items() if all(value == values[0] for value in values)}
    return {name: value for name, value in same.items() if not isinstance(value, Constant)}


def _needed(graph: Graph, own: OwnFunction, first: Sequence[Value], last: Sequence[Value]) -> Iterator[Node]:
    """The nodes from the first tensors to the last."""
    waiting, seen = list(last), set(first)
    while waiting:
        value = waiting.pop()
        if value in seen or value.constant is not None:
            continue
        seen.add(value)
        if value.producer is None:
            fix = _asking(own, [*first, value], last)
            why = f"{last[0].name!r} needs input {value.name!r} as well"
            raise WrongUse(Problem("a function does not get all that it needs", f"--external {own.subject}", why, fix))
        yield value.producer
        waiting += reads(value.producer)


def _asking(own: OwnFunction, first: Sequence[Value], last: Sequence[Value]) -> str:
    ends = ("+".join(value.name for value in values) for values in (first, last))
    return f"--external {'..'.join(ends)}={own.name}"


def _check_alone(
    graph: Graph, own: OwnFunction, nodes: Sequence[Node], first: Sequence[Value], last: Sequence[Value]
) -> None:
    """Nobody else needs what is made inside, and nothing of it is needed to make what it gets."""
    where = f"--external {own.subject}"
    if not nodes:
        raise WrongUse(Problem("there is nothing between these tensors", where, "", "name others"))
    inside = set(nodes)
    for value in (value for node in nodes for value in node.present_outputs):
        outside = graph.is_output(value) or any(reader not in inside for reader, _ in value.uses)
        if outside and value not in last:
            fix = _asking(own, first, [*last, value])
            why = f"{value.name!r} is read elsewhere, too"
            raise WrongUse(Problem("a function does not give all that is needed", where, why, fix))
    waiting = [node for value in first if (node := value.producer) is not None]
    while waiting:
        node = waiting.pop()
        if node in inside:
            why = f"it needs {node.output.name!r} before it begins"
            raise WrongUse(Problem("a function cannot run at once", where, why, "hand it less of the network"))
        waiting += [value.producer for value in reads(node) if value.producer is not None]


def _turn(graph: Graph, own: OwnFunction) -> None:
    """Channels last for what a function reads and makes."""
    taken = {value.name for part in graphs(graph) for value in part.values()}
    for part in list(graphs(graph)):
        for node in [n for n in part.nodes if isinstance(n.op, External) and n.op.function == own.name]:
            assert isinstance(node.op, External)
            for position, value in enumerate(node.inputs):
                if value is not None and value.type.rank > 2:
                    part.set_input(node, position, _turned(part, value, node, taken))
            shapes = []
            for position, value in enumerate(node.outputs):
                dtype, shape = node.op.gives[position]
                if value is not None and len(shape) > 2:
                    op = Transpose(perm=first_order(len(shape)))
                    shape = tuple(shape[axis] for axis in last_order(len(shape)))
                    inner = Value(new_name(f"{value.name}/nhwc", taken), Fact(type(value.type)(dtype, shape)))
                    node.outputs[position] = inner
                    inner.producer = node
                    part.add(Node(op, [inner], [value], node.provenance))
                shapes.append((dtype, shape))
            node.op = _with_shapes(node.op, tuple(shapes))
        part.sort()


def _with_shapes(op: External, gives: tuple[tuple[object, object], ...]) -> External:
    return External(**{**vars(op), "gives": gives})


def _turned(graph: Graph, value: Value, node: Node, taken: set[str]) -> Value:
    op = Transpose(perm=last_order(value.type.rank))
    return graph.compute(op, [value], [new_name(f"{value.name}/nhwc", taken)], node.provenance)[0]


def _check_header(own: OwnFunction) -> None:
    if own.include in ("", OURS):
        return
    path, where = Path(own.include), f"--external {own.subject}={own.name},include={own.include}"
    if path.name.startswith("mcc_"):
        why = "headers of the runtime begin with mcc_"
        raise WrongUse(Problem(f"{path.name} cannot be included", where, why, "give the file another name"))
    try:
        path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        fix = near_file(path, "*.h", "*.c") or skeleton(own.name, own.include)
        raise WrongUse(Problem(f"cannot read {own.include}", where, why, fix)) from None
