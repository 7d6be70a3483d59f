"""cut_regions: regions of the graph become one call each of an accelerator's function (`--accelerator`), where that
takes less time than the core does.

Quantized operators are still what the model says: lower_qdq comes behind.
"""

from __future__ import annotations

from ...graph.ir import Graph
from ..api import Context
from ..regions.partition import partition


def cut_regions(graph: Graph, context: Context) -> None:
    if context.accelerated is not None:
        partition(graph, context.accelerated, context.target)
