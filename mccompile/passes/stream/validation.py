"""Does the step network give the results of the window network? This is decided for each element of each output, for
all contents of frames and of memory: not by the rules that produced the step network, but by numbering the values that
both programs compute.

Invariant: a step network that passes gives, in every push from the warm-up on, elements that are computed by the same
operations on the same frames as those of the window that ends there. Memory before the first push counts as unknown,
so that what holds for the push that ends the warm-up holds for every later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ...base.constant import Constant
from ...base.errors import Problem, UnsupportedModel
from ...base.provenance import show
from ...base.streaming import Streamed, StreamedOutput
from ...graph.ir import Graph, Value
from ...program.ir import Call, Program
from ..lower import lower
from .motion import Span
from .numbering.numbers import Numbers
from .numbering.of_programs import Run, Unnumbered, inputs
from .numbering.of_pushes import Pushes

Given: TypeAlias = "dict[str, Numbers]"  # outputs by name

_FIX = "leave out --stream, and please report it with the model"


class Validation:
    """Of one step network. Made before it is, since a step network takes over what its window network has."""

    def __init__(self, window: Graph, known: Mapping[Value, Constant]) -> None:
        self.window = lower(window, known)

    def __call__(self, graph: Graph, streamed: Streamed, compared: Sequence[Span]) -> None:
        """Raises UnsupportedModel where a push would give something else than the window that ends there, of the
        elements that are compared (see Analysis)."""
        if not any(high > low for low, high in compared):
            return
        steps = lower(graph)
        try:
            wanted, given = self._of_window(streamed), _of_push(steps, streamed)
            pairs = zip(streamed.outputs, compared, strict=True)
            wrong = next((each for each, span in pairs if _differs(each, span, wanted, given)), None)
        except Unnumbered as unknown:
            why = f"nothing proves that a push gives what the window network gives: {unknown}"
            raise UnsupportedModel(Problem("it cannot run frame by frame", "--stream", why, _FIX)) from None
        if wrong is not None:
            raise UnsupportedModel(self._problem(wrong, steps, streamed))

    def _of_window(self, streamed: Streamed, watched: Callable[[Call, Numbers], None] | None = None) -> Given:
        """Of the window that ends with the push that ends the warm-up."""
        first = streamed.warm_up * streamed.hop - streamed.window
        types = {name: buffer.type.static_shape for name, buffer in self.window.inputs}
        numbers = {name: inputs(name, shape, streamed.inputs.get(name), first) for name, shape in types.items()}
        return Run(self.window, watched).results(numbers)

    def _problem(self, output: StreamedOutput, steps: Program, streamed: Streamed) -> Problem:
        """Names the first node of the step network that makes something of other elements than the window network."""
        there: dict[str, Numbers] = {}
        self._of_window(streamed, lambda call, numbers: there.update({call.outs[0].buffer.name: numbers}))
        odd: list[Call] = []

        def compared(call: Call, numbers: Numbers) -> None:
            wanted = there.get(call.outs[0].buffer.name)
            if wanted is not None and not np.isin(numbers[-1], wanted).all():
                odd.append(call)

        _of_push(steps, streamed, compared)
        node = f'node "{show(odd[0].provenance)}"' if odd else f"output {output.name!r}"
        why = f"elements of output {output.name!r} are made of other frames, or in another way"
        return Problem("streaming would give other results than the whole window", node, why, _FIX)


def _of_push(program: Program, streamed: Streamed, watched: Callable[[Call, Numbers], None] | None = None) -> Given:
    """Of the push that ends the warm-up. States of the window network's own are held until then: to it they are inputs
    that may have any contents, and outputs that are compared."""
    program = replace(
        program, states={name: after for name, after in program.states.items() if name not in streamed.own}
    )
    shapes = {name: buffer.type.static_shape for name, buffer in program.inputs}
    state = {name: inputs(f"before: {name}", shapes[name]) for name in program.states}

    def frames(first: int, count: int) -> Given:
        given = {name: shape for name, shape in shapes.items() if name not in state}
        axes = streamed.inputs
        return {n: inputs(n, shape, axes.get(n), first * streamed.hop, count) for n, shape in given.items()}

    return Pushes(program, frames, state, watched).last(streamed.warm_up)


def _differs(output: StreamedOutput, span: Span, wanted: Given, given: Given) -> bool:
    whole, part = wanted[output.name], given[output.name]
    if output.axis is not None:
        whole = np.take(whole, range(output.first, output.first + output.count), output.axis + 1)
        if whole.shape == part.shape:
            whole, part = (np.take(each, range(*span), output.axis + 1) for each in (whole, part))
    elif span == (0, 0):
        return False
    return whole.shape != part.shape or bool((whole != part).any())
