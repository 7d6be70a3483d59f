"""How an Ethos-U rounds where the operators of a region say otherwise, for its stand-in: as TFLite's kernels do."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.ir import Graph
from ..api import Unit
from .forms.rounded import Rounding
from .operators import form_of


def round_units(graph: Graph, units: Sequence[Unit]) -> bool:
    """False: all units say how they round."""
    is_changed = False
    for unit in units:
        found = form_of(unit) if unit.is_quantized else ""
        if isinstance(found, str):
            continue
        form, chain = found
        rounded = form.rounds(Rounding(graph, unit, chain))
        if rounded is not None:
            graph.replace(unit.makes[0], rounded)
            is_changed = True
    graph.sort()
    return is_changed
