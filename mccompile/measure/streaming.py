"""Does a network that takes the newest frames give what the window network gives on sliding windows?

Where windows are taken to go on at their ends (edge=warm) the window network gives other numbers. The reference is then
the step network itself, run on all frames that a result depends on in one push: no state, no memory between runs. Where
recurrent layers go on for ever, it is run push by push.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.scratch import Scratch
from ..base.streaming import WARM, Stream, Streamed
from ..check.compare import Comparison
from ..check.oracle import Oracle
from ..frontend.save import write
from ..graph.ir import Graph
from ..importers.api import Reading
from ..passes.stream.rewrite import rewritten
from ..toolchain.emulate import Emulated
from ..toolchain.run import Model
from ..toolchain.served import Served
from .verdict import Run
from .windows import given_by_push, last

HERE, ELSEWHERE = 300, 4  # pushes that are compared
_SHOWN = 3  # pushes that are wrong, each with a line of its own


class Reference:
    """What a push should give."""

    def __init__(
        self, path: Path, graph: Graph, asked: Stream, streamed: Streamed, also: Sequence[str], reading: Reading
    ) -> None:
        self.streamed = streamed
        self.frames = streamed.window  # that it is given
        self.state: dict[str, np.ndarray] = {}  # what it is given besides
        self.becomes: dict[str, str] = {}  # inputs that are results of the run before
        self.is_window = asked.edge != WARM
        if self.is_window:
            self.oracle = Oracle(path, also, reading)
            types = {value.name: value.type for value in graph.inputs}
            self.state = {name: np.zeros(types[name].static_shape, types[name].dtype.numpy) for name in graph.states}
            self.becomes = graph.states
            return
        self.frames = streamed.hop if streamed.by_push else streamed.warm_up * streamed.hop
        one, _ = rewritten(graph, replace(asked, hop=self.frames))
        types = {value.name: value.type for value in one.inputs}
        self.state = {name: np.zeros(types[name].static_shape, types[name].dtype.numpy) for name in one.states}
        self.becomes = one.states if streamed.by_push else {}
        self._folder = Scratch()  # as long as this is here
        write(one, Path(self._folder.name, "one.onnx"))
        self.oracle = Oracle(Path(self._folder.name, "one.onnx"))

    def run(self, window: Mapping[str, np.ndarray], number: int) -> dict[str, Any]:
        """Push after push. States of the network's own begin where the warm-up ends."""
        results = self.oracle.run(window)
        held = self.streamed.own if number < self.streamed.warm_up else ()
        self.state |= {before: results[after] for before, after in self.becomes.items() if before not in held}
        return results

    @property
    def own(self) -> dict[str, np.ndarray]:
        """States that the window network has itself, as they are now."""
        return {name: self.state[name] for name in self.streamed.own}

    def given(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """What a push gives of that."""
        if self.is_window:
            return given_by_push(self.streamed, results)
        found = dict(results)
        for output in self.streamed.outputs:
            if output.axis is not None:
                found[output.name] = last(found[output.name], output.axis, output.count)
        return found


def pushes_of(model: Model | Emulated | Served, streamed: Streamed, runs: int) -> int:
    """An emulated target is started anew for every push, and to a board there is a line."""
    return streamed.warm_up - 1 + max(runs, HERE if isinstance(model, Model) else ELSEWHERE)


def as_runs(found: Sequence[tuple[int, Run]], warm_up: int) -> list[Run]:
    """One line for all pushes that are right, one for each of the first that are wrong, and one for the others."""
    right = [run for _, run in found if run.ok]
    wrong = [replace(run, name=f"push {number}") for number, run in found if not run.ok]
    lines = [_together(right, f"{len(right)} pushes after {warm_up - 1} to warm up")] if right else []
    lines += wrong[:_SHOWN]
    rest = wrong[_SHOWN:]
    return [*lines, _together(rest, f"{len(rest)} more pushes")] if rest else lines


def _together(runs: Sequence[Run], name: str) -> Run:
    same = zip(*(run.outputs for run in runs), strict=True)
    decided = frozenset[str]().union(*(run.in_doubles for run in runs))
    decider = next((run.decider for run in runs if run.decider), "")
    left_open = frozenset[str]().union(*(run.left_open for run in runs))
    return Run(name, runs[0].reference, tuple(map(_worst, same)), decided, decider, left_open=left_open)


def _worst(same: Sequence[Comparison]) -> Comparison:
    return max(same, key=lambda each: (each.excess, each.max_abs))
