"""Logits of the last token alone: the product with the vocabulary is done for one row.

Invariant: only what treats each row by itself comes behind the choice.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, helper

_KEPT = ("Cast", "DequantizeLinear", "Identity")  # of the rank of their operand
_ROWS = ("Cast", "Identity", "Tanh", "Add", "Sub", "Mul", "Div", "MatMul", "MatMulNBits")


def only_last(graph: GraphProto, result: str, index: str) -> str:
    """Has `result`, [texts, rows, channels], made for one row, that which the constant [-1] called `index` names; the
    name that it has then."""
    found = _Rows(graph)
    name = result
    while (node := found.makers.get(name)) is not None and found.uses.get(name, 0) == (name != result):
        operand = found.by_rows(node)
        if operand is None:
            break
        name = operand
    chosen, whole = f"{name}/last", f"{name}/all"
    if name == result:  # nothing behind it
        maker = found.makers[name]
        maker.output[list(maker.output).index(name)] = name = whole
        graph.node.append(helper.make_node("Gather", [name, index], [chosen], chosen, axis=1))
        return chosen
    nodes = list(graph.node)
    reader = next(place for place, node in enumerate(nodes) if name in node.input and found.by_rows(node) == name)
    nodes[reader].input[list(nodes[reader].input).index(name)] = chosen
    nodes.insert(reader, helper.make_node("Gather", [name, index], [chosen], chosen, axis=1))
    maker = found.makers[result]
    maker.output[list(maker.output).index(result)] = whole = f"{result}/all"
    del graph.node[:]
    graph.node.extend(nodes)
    return whole


class _Rows:
    def __init__(self, graph: GraphProto) -> None:
        self.makers = {name: node for node in graph.node for name in node.output}
        self.ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
        self.uses = dict[str, int]()
        for node in graph.node:
            for name in node.input:
                self.uses[name] = self.uses.get(name, 0) + 1

    def by_rows(self, node: NodeProto) -> str | None:
        """The operand whose rows give the rows of the result, one by one; None where it is not so."""
        if node.op_type not in _ROWS:
            return None
        free = [name for name in node.input if name and self.rank(name) is None]
        if len(free) != 1 or (node.op_type.startswith("MatMul") and node.input[0] != free[0]):
            return None
        most = 2 if node.op_type.startswith("MatMul") else 1
        others = [self.rank(name) or 0 for name in node.input if name and name != free[0]]
        return free[0] if node.op_type == "MatMulNBits" or all(rank <= most for rank in others) else None

    def rank(self, name: str) -> int | None:
        """Of a constant; None where it is none, or of a rank that is not known."""
        if name in self.ranks:
            return self.ranks[name]
        node = self.makers.get(name)
        if node is None:
            return None
        if node.op_type == "Constant":
            value = next((entry.t for entry in node.attribute if entry.name == "value"), None)
            return None if value is None else len(value.dims)
        if node.op_type not in (*_KEPT, "Transpose"):
            return None
        parts = [self.rank(each) for each in node.input if each]
        return None if None in parts else parts[0]
