"""Answers of kernels, remembered: trials of where tensors lie ask the same questions of the same calls again and again.

Invariant: two calls are alike only if they agree in all that a kernel may look at: kind, views, which of them are of
one buffer, constants, and how the call runs. Where buffers overlap is not a part of that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from ..program.ir import Call
from ..targets.api import Target
from .api import Needs, No
from .registry import Choice, Registry

Answer = TypeVar("Answer")
# With the calls, whose kinds and constants stay alive with them: an id stands for one object only.
Answers = dict[Hashable, tuple[Call, Answer]]


class RememberedKernels(Registry):
    """The kernels of another registry, for one target."""

    def __init__(self, registry: Registry, target: Target) -> None:
        super().__init__(registry.files, registry.measured, registry.max_slice)
        self.target = target
        self._choices: Answers[Choice] = {}
        self._matches: Answers[Needs | No] = {}

    def choose(self, call: Call, target: Target) -> Choice:
        return self._asked(self._choices, super().choose, call, target)

    def match(self, call: Call, target: Target) -> Needs | No:
        return self._asked(self._matches, super().match, call, target)

    def _asked(
        self, known: Answers[Answer], ask: Callable[[Call, Target], Answer], call: Call, target: Target
    ) -> Answer:
        if target is not self.target:
            return ask(call, target)
        look = _look(call)
        if look not in known:
            known[look] = call, ask(call, target)
        return known[look][1]


def remembered(registry: Registry, target: Target) -> RememberedKernels:
    """The same kernels; what is remembered already stays so."""
    if isinstance(registry, RememberedKernels) and registry.target is target:
        return registry
    return RememberedKernels(registry, target)


def _look(call: Call) -> Hashable:
    numbers: dict[int, int] = {}
    views = [
        (
            numbers.setdefault(id(view.buffer), len(numbers)),
            view.shape,
            view.strides,
            view.offset,
            view.lines,
            view.buffer.dtype.name,
            view.buffer.role,
            view.buffer.shape,
            id(view.buffer.constant),
        )
        for view in (*call.ins, *call.outs)
    ]
    scratch = call.scratch.max_bytes if call.scratch is not None else 0
    return id(call.kind), len(call.ins), *views, call.kernel, call.rows, call.workers, scratch
