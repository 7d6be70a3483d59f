"""Which inputs and outputs a file has, and which inputs leave sizes open."""

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
) -> tuple[tuple[str, ...], frozenset[str], tuple[str, ...]]:
    """The names of all inputs that a caller gives, of those with sizes that nobody has fixed, and of all outputs; a
    name that the file lists twice is there twice."""
    model = read_proto(path, reading)
    graph, state = model.graph, {**states.declared(model), **state}
    dims = {**ranges.declared(model), **dims}
    fixed = {tensor.name for tensor in graph.initializer}
    fixed |= {tensor.values.name for tensor in graph.sparse_initializer} | set(state.values())
    inputs = [entry for entry in graph.input if entry.name not in fixed]
    free = (entry.name for entry in inputs if entry.name not in shapes and is_open(entry, dims, bounds))
    return tuple(entry.name for entry in inputs), frozenset(free), tuple(entry.name for entry in graph.output)
