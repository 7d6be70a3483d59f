"""A model's gradients beside central differences, both in float64. The loss is the sum of all floats that come out,
each times a number of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

from mccompile.base.dtypes import f32
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph, Value
from mccompile.ops.api import resolve
from mccompile.ops.rules.backward import Writer
from mccompile.passes.learn.gradients import gradients

from .evaluate import Evaluator

STEP = 1e-6
TOLERANCE = 1e-4


@dataclass
class Comparison:
    """Of one model. `kinks` are elements where the function bends or has steps: differences say nothing."""

    checked: int = 0
    kinks: int = 0
    wrong: list[str] = field(default_factory=list)


def compared(model: ModelProto, feeds: Mapping[str, np.ndarray], chance: np.random.Generator) -> Comparison:
    """By all inputs that are floats; others become constants. Raises what compiling raises."""
    fixed = {name: array for name, array in feeds.items() if array.dtype.kind != "f"}
    graph = load_proto(model, fixed=fixed)
    by = [value for value in graph.inputs if value.type.dtype.is_float]
    loss = summed(graph, chance)
    found = gradients(graph, loss, by)
    run = Evaluator(graph)
    slopes = dict(zip([value.name for value in by], run(feeds, found), strict=True))
    coarse = any(value.type.dtype.is_float and value.type.dtype.bits < f32.bits for value in graph.values())
    return differences(lambda given: float(run(given, [loss])[0].reshape(())), feeds, slopes, chance, coarse)


def summed(graph: Graph, chance: np.random.Generator) -> Value:
    """One number that follows from all floats that come out."""
    writer = Writer(graph, resolve)
    total = writer.constant(np.array(0.0))
    for output in graph.outputs:
        if output.type.dtype.is_float and output.type.is_static:
            wide = output if output.type.dtype.bits == 64 else writer.op("Cast", output, to=11)
            weights = writer.constant(chance.uniform(0.5, 1.5, output.type.static_shape))
            product = writer.op("Mul", wide, weights)
            total = writer.op("Add", total, writer.sum(product, range(product.type.rank), keepdims=False))
    return total


def differences(
    function: Any,
    feeds: Mapping[str, np.ndarray],
    slopes: Mapping[str, np.ndarray],
    chance: np.random.Generator,
    coarse: bool = False,
) -> Comparison:
    """`coarse`: some values are rounded to types whose steps are larger than `STEP`, so no difference need show."""
    found = Comparison()
    middle = function(feeds)
    for name, slope in slopes.items():
        if slope.shape != feeds[name].shape:
            found.wrong.append(f"gradient of {name} has shape {slope.shape}, not {feeds[name].shape}")
            continue
        for place in _places(slope, chance):
            ahead, behind, far = (
                function({**feeds, name: _moved(feeds[name], place, step)}) for step in (STEP, -STEP, 3 * STEP)
            )
            first, second = (ahead - middle) / STEP, (middle - behind) / STEP
            third = (far - ahead) / (2 * STEP)
            size = max(1.0, abs(first), abs(second), abs(middle) * 1e-3)
            bends = max(abs(first - second), abs(first - third)) > 1e-3 * size
            unseen = coarse and ahead == behind == far
            if bends or unseen or not np.isfinite([first, second, third]).all():
                found.kinks += 1
                continue
            found.checked += 1
            central, mine = (ahead - behind) / (2 * STEP), float(slope[place])
            if not abs(mine - central) <= TOLERANCE * size:
                found.wrong.append(f"{name}{list(place)}: {mine:.7g}, and differences give {central:.7g}")
    return found


def _places(array: np.ndarray, chance: np.random.Generator) -> Iterator[tuple[int, ...]]:
    for flat in chance.permutation(array.size)[:6]:
        yield tuple(int(n) for n in np.unravel_index(flat, array.shape))


def _moved(array: np.ndarray, place: tuple[int, ...], step: float) -> np.ndarray:
    moved = array.astype(np.float64)
    moved[place] += step
    return moved
