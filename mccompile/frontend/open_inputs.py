"""Which inputs a file has, and which of them leave sizes open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..importers import ranges, states
from ..importers.api import AS_IT_IS, Reading
from .bounds import Bounds
from .inputs import DimRanges
from .load import is_open, read_proto


def open_inputs(
    path: Path,
    dims: DimRanges,
    shapes: Mapping[str, Any],
    bounds: Bounds,
    state: Mapping[str, str],
    reading: Reading = AS_IT_IS,
) -> tuple[tuple[str, ...], frozenset[str]]:
    """The names of all inputs that a caller gives, and of those with sizes that nobody has fixed."""
    model = read_proto(path, reading)
    graph, state = model.graph, {**states.declared(model), **state}
    dims = {**ranges.declared(model), **dims}
    fixed = {tensor.name for tensor in graph.initializer}
    fixed |= {tensor.values.name for tensor in graph.sparse_initializer} | set(state.values())
    inputs = [entry for entry in graph.input if entry.name not in fixed]
    free = (entry.name for entry in inputs if entry.name not in shapes and is_open(entry, dims, bounds))
    return tuple(entry.name for entry in inputs), frozenset(free)
