"""States that grow, beside a reference that is handed all of them: what a compiled model has in buffers with room for
the most, and how long they are run after run.

Invariant: a data set has the sizes that its run has, so the first one has states without elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..base.dims import Dim, Symbol, evaluate
from ..check.inputs import DataSet, random_input
from ..check.sizes import Sizes, agreeing, trials
from ..graph.ir import Graph
from ..passes.memory.growing_states import Growth, growth
from ..toolchain.model_report import Report

STEPS = 2  # of each size, where the model keeps a state


class Growing:
    """Which states of a graph, as it was read, grow. `states`: inputs by output."""

    def __init__(self, graph: Graph, states: Mapping[str, str]) -> None:
        inputs, outputs = ({v.name: v.type for v in values} for values in (graph.inputs, graph.outputs))
        known = ((after, before) for after, before in states.items() if after in outputs and before in inputs)
        found = ((before, growth(inputs[before], outputs[after])) for after, before in known)
        self.states: dict[str, Growth] = {before: each for before, each in found if each is not None}
        self._new: dict[Symbol, Dim] = {each.length: each.new for each in self.states.values()}

    def sets(self, graph: Graph, seed: int, runs: int, steps: int) -> Iterator[DataSet]:
        """Random inputs of runs that follow each other: `steps` of each of the other sizes, in turns, as long as there
        is room."""
        names = {symbol.name for symbol in self._new}
        others: list[Sizes] = []
        for sizes in trials(graph):
            rest = {name: size for name, size in sizes.items() if name not in names}
            others += [rest] if rest not in others else []
        long = {symbol: symbol.low for symbol in self._new}
        for run in range(max(runs, len(others) * steps)):
            if any(size > symbol.high for symbol, size in long.items()):
                return
            now = {**others[run // steps % len(others)], **{symbol.name: size for symbol, size in long.items()}}
            now = dict(agreeing(graph, now))
            chance = np.random.default_rng([seed, run])
            shown = ", ".join(f"{name.removeprefix('n_')}={size}" for name, size in now.items())
            yield DataSet(
                f"random {seed}.{run} ({shown})", {v.name: random_input(v, chance, now) for v in graph.inputs}
            )
            long = {symbol: size + evaluate(self._new[symbol], now) for symbol, size in long.items()}

    def empty(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The states of the first run."""
        shapes = {name: self._sized(name, given[name].shape, 0) for name in self.states}
        return {name: np.empty(shape, given[name].dtype) for name, shape in shapes.items()}

    def with_room(self, inputs: Mapping[str, np.ndarray], report: Report) -> dict[str, np.ndarray]:
        """Inputs as large as the model wants them; nobody reads what is added."""
        found = dict(inputs)
        for tensor in report.inputs if self.states else ():
            if tensor.name in found and len(tensor.shape) == found[tensor.name].ndim:
                pairs = zip(tensor.shape, found[tensor.name].shape, strict=True)
                more = [(0, max(room - size, 0) if isinstance(room, int) else 0) for room, size in pairs]
                found[tensor.name] = np.pad(found[tensor.name], more) if any(m for _, m in more) else found[tensor.name]
        return found

    def rooms(self, shapes: Mapping[str, tuple[int, ...]], report: Report) -> dict[str, tuple[int, ...]]:
        """The shapes of all states as they lie in memory, where a run was given such ones."""
        found = {}
        for tensor in report.states:
            if tensor.name in self.states:
                room = tensor.shape[self.states[tensor.name].axis]
                assert isinstance(room, int)
                found[tensor.name] = self._sized(tensor.name, shapes[tensor.name], room)
            else:
                found[tensor.name] = shapes.get(tensor.name) or tensor.static_shape
        return found

    def used(self, left: Mapping[str, np.ndarray], names: Mapping[str, Symbol]) -> dict[str, np.ndarray]:
        """What is used of states; `names` are those of the states that say how much."""
        long = {symbol: int(left[name][0]) for name, symbol in names.items()}
        found = dict(left)
        for name, each in self.states.items():
            found[name] = left[name][(slice(None),) * each.axis + (slice(0, long[each.length]),)]
        return found

    def _sized(self, name: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
        axis = self.states[name].axis
        return (*shape[:axis], size, *shape[axis + 1 :])
