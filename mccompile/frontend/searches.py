"""The searches that are decomposed: GreedySearch and BeamSearch of onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from ..graph.ir import Value
from . import search_steps
from .beam_search import BeamSearch
from .composed_body import CONTRIB
from .decoder_search import Search
from .graphs import GraphReader
from .greedy_search import GreedySearch
from .scope import Found, Missing, Scope

_SEARCHES: dict[str, type[Search]] = {"GreedySearch": GreedySearch, "BeamSearch": BeamSearch}
NAMES = frozenset((CONTRIB, name) for name in _SEARCHES)


def read(reader: GraphReader, node: NodeProto, scope: Scope) -> Sequence[Found]:
    """The results of a search."""
    operands = [scope.find(name) for name in node.input]
    if any(value in (Missing.BROKEN, None) for value in operands):
        return [Missing.BROKEN] * len(node.output)
    reader.functions.update(search_steps.functions())
    values = [value if isinstance(value, Value) else None for value in operands]
    return _SEARCHES[node.op_type](reader, node, scope, values).run()[: len(node.output)]
