"""Windows that slide over a stream of frames: what the window network is given, and what a push is.

Invariant: the window of push k ends with the newest frame of push k; what came before the first push is in no push.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..base.records import dataclass
from ..base.streaming import Streamed
from ..check.inputs import random_input
from ..graph.ir import Graph
from .building import input_sets

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Push:
    """`window`: inputs with so many frames as a reference wants."""

    number: int  # from 1 on
    window: dict[str, np.ndarray]
    frames: dict[str, np.ndarray]


def newest(streamed: Streamed | None, inputs: Arrays) -> dict[str, np.ndarray]:
    """Inputs of the window network as those of one push."""
    if streamed is None:
        return dict(inputs)
    found = dict(inputs)
    for name, axis in streamed.inputs.items():
        there = inputs[name].shape[axis]
        repeated = np.concatenate([inputs[name]] * -(-streamed.hop // there), axis)
        found[name] = last(repeated, axis, streamed.hop)
    return found


def last(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    return _cut(array, axis, array.shape[axis] - count, array.shape[axis])


def sliding(graph: Graph, streamed: Streamed, seed: int, pushes: int, length: int, data: Path | None) -> Iterator[Push]:
    """So many pushes of random frames; or of the frames of all windows in `data`, one after the other. `graph` is the
    window network, `length` how many frames a window has for the reference. States of its own are in no data."""
    told = Graph(graph.name, [value for value in graph.inputs if value.name not in streamed.own], [])
    wanted = -(-pushes * streamed.hop // streamed.window)
    stored = [each.inputs for each in input_sets(told, data, seed, wanted)] if data is not None else []
    chance = np.random.default_rng(seed)
    moving = {*streamed.inputs, *streamed.own}
    still = {value.name: random_input(value, chance) for value in graph.inputs if value.name not in moving}
    if stored:
        still = {name: stored[0][name] for name in still}
        stored *= -(-streamed.hop // (len(stored) * streamed.window))  # a push takes them again where it needs more
        whole = {name: np.concatenate([each[name] for each in stored], axis) for name, axis in streamed.inputs.items()}
        pushes = min(pushes, len(stored) * streamed.window // streamed.hop)
    else:
        count = pushes * streamed.hop // streamed.window + 1
        values = {value.name: value for value in graph.inputs}
        whole = {
            name: np.concatenate([random_input(values[name], chance) for _ in range(count)], axis)
            for name, axis in streamed.inputs.items()
        }
    lead = -(-length // streamed.window)  # what came before the first push: it may be anything
    axes = streamed.inputs
    joined = {name: np.concatenate([*[whole[name]] * lead, whole[name]], axis) for name, axis in axes.items()}
    for number in range(1, pushes + 1):
        window, frames = dict(still), dict(still)
        for name, axis in axes.items():
            end = whole[name].shape[axis] * lead + number * streamed.hop
            window[name] = _cut(joined[name], axis, end - length, end)
            frames[name] = _cut(joined[name], axis, end - streamed.hop, end)
        yield Push(number, window, frames)


def _cut(array: np.ndarray, axis: int, low: int, high: int) -> np.ndarray:
    """Fewer, or none, where a reference that is wrong about the shape gives less: that differs then."""
    return np.ascontiguousarray(array[(*[slice(None)] * axis, slice(low, high))])


def pushes(streamed: Streamed, window: Arrays) -> list[dict[str, np.ndarray]]:
    """All pushes of a window, one after the other; its frames come again where they do not fill the first."""
    found = []
    count, copies = -(-streamed.window // streamed.hop), max(2, -(-streamed.hop // streamed.window))
    for number in range(count):
        frames = dict(window)
        for name, axis in streamed.inputs.items():
            again = np.concatenate([window[name]] * copies, axis)
            end = again.shape[axis] - (count - 1 - number) * streamed.hop
            frames[name] = _cut(again, axis, end - streamed.hop, end)
        found.append(frames)
    return found


def given_by_push(streamed: Streamed, results: Mapping[str, Any]) -> dict[str, Any]:
    """What a push gives of what the window network gives."""
    found = dict(results)
    for output in streamed.outputs:
        if output.axis is not None and output.name in found:
            found[output.name] = _cut(found[output.name], output.axis, output.first, output.first + output.count)
    return found
