"""What fewer bits change in the outputs of a model: weights that are stored narrow, activations that are rounded.

Invariant: both ways run on the same inputs, and differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..base.dtypes import DTYPES
from ..base.records import dataclass
from ..check import rounding
from ..driver import Options, compile_graph
from ..frontend.load import load
from ..graph.ir import Graph
from ..passes.api import BlockActivations, CacheDtype, WeightsDtype
from ..plan.ir import Plan
from .building import build, input_sets
from .growing import STEPS, Growing
from .handing import handed_over, handing_over, turned
from .runs import Runs


@dataclass(frozen=True)
class Effect:
    """What fewer bits change in an output."""

    cause: str
    output: str
    share: float  # of the largest element
    ok: bool


def rounds_activations(plan: Plan) -> bool:
    return any(step.function.kernel.rounds for step in plan.steps())


def effects_of_fewer_bits(
    path: Path, options: Options, data: Path | None, seed: int, runs: int, cc: str | None, rounds: bool
) -> tuple[Effect, ...]:
    """Per output how far it is from that of the same model with weights as they are, where it `rounds` from that with
    activations as they are, and from that with caches as they are."""

    def read() -> Graph:
        return load(path, options.dims, options.shapes, options.bounds, options.reading)

    cached = replace(options, cache_dtype=CacheDtype.OWN)
    plain = replace(cached, block_activations=BlockActivations.FLOAT)
    states = {**read().states_of_file, **options.state}
    growing = Growing(read(), states)
    ways: list[tuple[str, Options, Options, float]] = []
    if options.weights_dtype:
        most = rounding.of_weights(read(), DTYPES[options.weights_dtype])
        wide = replace(plain, weights_dtype=WeightsDtype.OWN)
        ways.append((f"weights in {options.weights_dtype}", wide, plain, most))
    if rounds:
        most = rounding.of_activations(read(), options.block_activations == BlockActivations.INT8)
        ways.append(("activations rounded to int8", plain, cached, most))
    if options.cache_dtype:
        most = rounding.of_caches(len(growing.states), DTYPES[options.cache_dtype.replace("int", "i")])
        ways.append((f"caches in {options.cache_dtype}", cached, options, most))
    follow = growing.states and data is None
    sets = list(growing.sets(read(), seed, runs, STEPS)) if follow else input_sets(read(), data, seed, runs)
    forms, orders = handing_over(read(), options)
    made: list[tuple[Options, list[dict[str, np.ndarray]]]] = []
    found: list[Effect] = []
    for cause, one, other, most in ways:
        for tried in (one, other):
            if made[-1:] and made[-1][0] == tried:  # what the way before ends with
                continue
            model = build(compile_graph(read(), tried, options.name or path.stem), options.resolved_target(), cc)
            given = (turned(handed_over(data_set, forms)[1], orders) for data_set in sets)
            asked = ({name: x for name, x in inputs.items() if name not in states.values()} for inputs in given)
            run = Runs(model)
            made.append((tried, [run(growing.with_room(inputs, model.report)) for inputs in asked]))
        moved = _moved(made[-2][1], made[-1][1])
        found += [Effect(cause, name, share, share <= most) for name, share in moved]
    return tuple(found)


def _moved(before: list[dict[str, np.ndarray]], after: list[dict[str, np.ndarray]]) -> Iterator[tuple[str, float]]:
    """How far each output of floats is moved at most, of its largest element."""
    for name in before[0]:
        pairs = [(one[name], other[name]) for one, other in zip(before, after, strict=True) if one[name].size]
        if pairs and pairs[0][0].dtype.kind == "f":
            yield name, max(float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)) for a, b in pairs)
