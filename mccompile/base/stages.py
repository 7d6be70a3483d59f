"""What is being done right now, for whoever wants to show it: stages, some of them inside of others.

Invariant: nothing that is computed depends on who listens; without a listener a stage costs next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    def begins(self, name: str, depth: int) -> None: ...

    def ended(self, name: str, depth: int, seconds: float) -> None: ...


_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_DEPTH: ContextVar[int] = ContextVar("depth", default=0)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Something that may take a while."""
    listener = _LISTENER.get()
    if listener is None:
        yield
        return
    depth, start = _DEPTH.get(), time.perf_counter()
    token = _DEPTH.set(depth + 1)
    listener.begins(name, depth)
    try:
        yield
    finally:
        _DEPTH.reset(token)
        listener.ended(name, depth, time.perf_counter() - start)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
