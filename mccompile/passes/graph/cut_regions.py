"""cut_regions: each region of the graph that an accelerator computes faster than the core becomes one call of the
accelerator's function (`--accelerator`).

Quantized operators are still what the model says: lower_qdq comes behind.
"""

from __future__ import annotations

from ...graph.ir import Graph
from ..api import Context
from ..regions.partition import partition


def cut_regions(graph: Graph, context: Context) -> None:
    if context.accelerated is not None:
        partition(graph, context.accelerated, context)
