"""Runs of a built model, one after the other: each is made twice, and must give the same twice; with --advance a third
one is made for the states alone, and must leave the same.

Invariant: a second run begins with the state that the first one began with, on the memory that the first one left.
What a run leaves for the next one is what the model itself keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from ..base.constant import Constant
from ..base.errors import CheckFailed, Problem, raise_all
from ..toolchain.elements import from_bytes
from ..toolchain.emulate import Emulated, Results
from ..toolchain.model_report import given_sizes
from ..toolchain.run import POISON, Model
from ..toolchain.served import Served


class Runs:
    """A built model, and the state that it has got to."""

    def __init__(self, model: Model | Emulated | Served) -> None:
        self.model = model
        self._state: bytes | None = None  # None: as after init
        self._sizes: Mapping[str, int] | None = None

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name."""
        model, report = self.model, self.model.report
        sizes = given_sizes(report, inputs) if report.given else {}
        if self.reset_by(inputs):
            self._state = None
        if isinstance(model, Model):
            first, second = self._here(model, inputs)
        else:
            first, second = model.run_twice(inputs, self._state)
        _must_agree(first, second)
        self._sizes, self._state = sizes, first.state
        return first.outputs

    def reset_by(self, inputs: Mapping[str, np.ndarray]) -> bool:
        """Do sizes of the inputs, which are other ones than before, reset the state?"""
        report = self.model.report
        return self._sizes is not None and report.resets(self._sizes, given_sizes(report, inputs))

    def states(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """What the last run left for the next one, by the names of the inputs that it becomes."""
        found, at = {}, 0
        for tensor in self.model.report.states:
            shape = shapes[tensor.name]
            own = (self._state or b"")[at : at + tensor.dtype.nbytes(prod(shape))]
            found[tensor.name] = from_bytes(own, tensor.dtype, shape)
            at += tensor.nbytes
        return found

    def _here(self, model: Model, inputs: Mapping[str, np.ndarray]) -> tuple[Results, Results]:
        state_bytes = model.report.state_bytes
        anew = not state_bytes or self._sizes is None
        first = _results(model, inputs, POISON if anew else None)
        begin = bytes(state_bytes) if self._state is None else self._state
        if state_bytes:
            model.load_state(begin)
        second = _results(model, inputs)
        if model.report.advances:
            model.load_state(begin)
            model.advance(inputs)
            second = replace(second, advanced=model.save_state())
        return first, second


def run_twice(model: Model | Emulated, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of a run on poisoned memory, which a second run on the memory that the first one left must give again."""
    return Runs(model)(inputs)


def _results(model: Model, inputs: Mapping[str, np.ndarray], poison: int | None = None) -> Results:
    outputs = model.run(inputs, poison)
    return Results(outputs, model.save_state() if model.report.state_bytes else b"")


def _must_agree(first: Results, second: Results) -> None:
    changed = [
        f"another result for {name!r}"
        for name in first.outputs
        if Constant.of(first.outputs[name]).digest != Constant.of(second.outputs[name]).digest
    ]
    changed += ["another state for the next run"] if first.state != second.state else []
    fix = "please report it: a run depends on what lay in the memory before"
    raise_all(CheckFailed, (Problem(f"a second run gives {what}", "", "", fix) for what in changed))
    if second.advanced is not None and second.advanced != first.state:
        fix = "please report it: what it leaves out is needed for the states"
        raise CheckFailed(Problem("a run for the states alone gives another state for the next run", "", "", fix))
