"""Answers of kernels, remembered: trials of where tensors lie ask the same questions of the same calls again and again.

Invariant: two calls are alike only if they agree in all that a kernel may look at: kind, views, which of them are of
one buffer, constants, and how the call runs. Where buffers overlap is no part of that.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..program.ir import Call
from ..targets.api import Target
from .api import Needs, No
from .registry import Choice, Registry


class RememberedKernels(Registry):
    """The kernels of another registry, for one target."""

    def __init__(self, registry: Registry, target: Target) -> None:
        super().__init__({})
        self._files, self._loaded, self._by_kind = registry._files, registry._loaded, registry._by_kind
        self.target = target
        # with the calls, whose kinds and constants stay alive with them: an id stands for one object only
        self._choices: dict[Hashable, tuple[Call, Choice]] = {}
        self._matches: dict[Hashable, tuple[Call, Needs | No]] = {}

    def choose(self, call: Call, target: Target) -> Choice:
        if target is not self.target:
            return super().choose(call, target)
        look = _look(call)
        if look not in self._choices:
            self._choices[look] = call, super().choose(call, target)
        return self._choices[look][1]

    def match(self, call: Call, target: Target) -> Needs | No:
        if target is not self.target:
            return super().match(call, target)
        look = _look(call)
        if look not in self._matches:
            self._matches[look] = call, super().match(call, target)
        return self._matches[look][1]


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
