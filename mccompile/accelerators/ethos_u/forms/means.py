"""GlobalAveragePool, and ReduceMean over height and width."""

from __future__ import annotations

from ....graph.ir import Node
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import attribute, integers, source
from .writing import Writing


def _axes(node: Node, rank: int) -> list[int]:
    """Those that are averaged; an empty list where the axes are not constant."""
    if node.op.name == "GlobalAveragePool":
        return list(range(2, rank))
    found = integers(node.inputs[1]) if len(node.inputs) > 1 else None
    return sorted(axis % rank for axis in found or [])


@form("GlobalAveragePool", "ReduceMean")
class Mean(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        rank = unit.reads[0].type.rank
        if rank not in (3, 4) or _axes(chain.node, rank) != list(range(2, rank)):
            return "only means over all pixels of a picture or a signal"
        return "" if chain.is_plain and chain.activation(unit) == 0 else "a mean has no activation"

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        keeps = chain.node.op.name == "GlobalAveragePool" or bool(attribute(chain.node, "keepdims", 1))
        given, axes, result = writing.picture(source(chain.node)), writing.net.ints([1, 2]), unit.makes[0]

        def write(made: int) -> None:
            writing.net.operator("MEAN", [given, axes], made, "ReducerOptions", KeepDims=keeps)

        if keeps:
            writing.made_picture(result, write)
        else:
            write(writing.made(result, (0, 1)))
        return ""
