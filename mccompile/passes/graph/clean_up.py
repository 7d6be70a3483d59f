"""clean_up: folds constants, simplifies algebra and eliminates dead nodes once more, after the passes that insert
nodes."""

from __future__ import annotations

from ...graph.ir import Graph
from ..api import Context
from .eliminate_common_subexpressions import eliminate_common_subexpressions
from .eliminate_dead import eliminate_dead
from .fold_constants import fold_dequantized
from .simplify_algebra import simplify_algebra


def clean_up(graph: Graph, context: Context) -> None:
    fold_dequantized(graph, context)
    simplify_algebra(graph, context)
    eliminate_common_subexpressions(graph, context)
    eliminate_dead(graph, context)
