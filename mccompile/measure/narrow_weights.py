"""What storing weights narrow changes in the outputs of a model.

Invariant: both ways of storing them run on the same inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..base.dtypes import DTYPES
from ..check import rounding
from ..driver import Options, compile_graph
from ..frontend.load import load
from ..graph.ir import Graph
from ..passes.api import WeightsDtype
from .building import build, input_sets
from .handing import handed_over, handing_over, turned
from .runs import run_twice


@dataclass(frozen=True)
class Effect:
    """What storing weights narrow changes in an output."""

    output: str
    share: float  # of the largest element
    ok: bool


def effects_of_narrow_weights(
    path: Path, options: Options, data: Path | None, seed: int, runs: int, cc: str | None
) -> tuple[Effect, ...]:
    """Per output how far it is from that of the same model with weights as they are."""

    def read() -> Graph:
        return load(path, options.dims, options.shapes, options.bounds, options.reading)

    graph = read()
    sets = input_sets(graph, data, seed, runs)
    forms, orders = handing_over(read(), options)
    results: list[list[dict[str, np.ndarray]]] = []
    for tried in (replace(options, weights_dtype=WeightsDtype.OWN), options):
        model = build(compile_graph(read(), tried, options.name or path.stem), options.resolved_target(), cc)
        given = (turned(handed_over(data_set, forms)[1], orders) for data_set in sets)
        results.append([run_twice(model, inputs) for inputs in given])
    most = rounding.of_weights(read(), DTYPES[options.weights_dtype])
    found = []
    for name in results[0][0]:
        pairs = [(wide[name], narrow[name]) for wide, narrow in zip(*results, strict=True) if wide[name].size]
        if not pairs or pairs[0][0].dtype.kind != "f":
            continue
        share = max(float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)) for a, b in pairs)
        found.append(Effect(name, share, share <= most))
    return tuple(found)
