"""GlobalAveragePool, and ReduceMean over height and width."""

from __future__ import annotations

from ....graph.ir import Node
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import LAST, attribute, integers, source
from .writing import Writing


def _axes(node: Node) -> list[int]:
    """Those that are averaged; an empty list where the axes are no constant."""
    if node.op.name == "GlobalAveragePool":
        return [2, 3]
    found = integers(node.inputs[1]) if len(node.inputs) > 1 else None
    return sorted(axis % 4 for axis in found or [])


@form("GlobalAveragePool", "ReduceMean")
class Mean(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        if unit.reads[0].type.rank != 4 or _axes(chain.node) != [2, 3]:
            return "only means over height and width of a picture"
        return "" if chain.is_plain and chain.activation(unit) == 0 else "a mean has no activation"

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        keeps = chain.node.op.name == "GlobalAveragePool" or bool(attribute(chain.node, "keepdims", 1))
        given = writing.ordered(source(chain.node), LAST)
        made = writing.made(unit.makes[0], LAST if keeps else (0, 1))
        writing.net.operator("MEAN", [given, writing.net.ints([1, 2])], made, "ReducerOptions", KeepDims=keeps)
        return ""
