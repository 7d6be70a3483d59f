"""What a command shows while it works: nothing, a line of what it is at, or every stage with its time.

Invariant: nothing is shown where nobody watches (no terminal, or CI), and standard output gets nothing of it. What is
shown live is gone before the command prints. rich is an extra; without it, stages over a second get a line each.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from typing import Any

import click

from ..base.ci import in_ci
from ..base.stages import Listener, heard_by

_PATIENCE = 1.0  # seconds until something is shown


@contextmanager
def shown(verbose: bool, quiet: bool) -> Iterator[None]:
    """How a command shows what it does."""
    listener: Listener | None = Lines(0.0) if verbose else None
    if listener is None and not quiet and is_watched():
        listener = Live() if find_spec("rich") else Lines(_PATIENCE)
    with redirect_stdout(StringIO()) if quiet else _nothing(), heard_by(listener) if listener else _nothing():
        yield


def is_watched() -> bool:
    streams = (sys.stdout, sys.stderr)
    return not in_ci() and all(stream is not None and stream.isatty() for stream in streams)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class Lines:
    """A line for each stage that takes so long, once it has ended."""

    def __init__(self, least: float) -> None:
        self.least = least

    def begins(self, name: str, depth: int) -> None: ...

    def ended(self, name: str, depth: int, seconds: float) -> None:
        if seconds >= self.least:
            click.echo(f"{seconds:8.3f} s  {'  ' * depth}{name}", err=True)


class Live:
    """The stage that is under way, in the last line of the terminal, if it all takes longer than a moment."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.lock = threading.Lock()
        self.timer: threading.Timer | None = None
        self.live: Any = None
        self.names: list[str] = []

    def begins(self, name: str, depth: int) -> None:
        with self.lock:
            self.names.append(name)
            if self.live is not None:
                self.live.update(self._spinner())
        if depth == 0:
            wait = max(0.0, _PATIENCE - (time.perf_counter() - self.start))
            self.timer = threading.Timer(wait, self._open)
            self.timer.daemon = True
            self.timer.start()

    def ended(self, name: str, depth: int, seconds: float) -> None:
        with self.lock:
            self.names.pop()
            if depth == 0:
                if self.timer is not None:
                    self.timer.cancel()
                if self.live is not None:
                    self.live.stop()
                self.live = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.live import Live as Line

        with self.lock:
            if self.names and self.live is None:
                plain: dict[str, Any] = {"redirect_stdout": False, "redirect_stderr": False, "transient": True}
                self.live = Line(self._spinner(), console=Console(stderr=True), **plain)
                self.live.start()

    def _spinner(self) -> Any:
        from rich.spinner import Spinner

        return Spinner("line", text=": ".join(self.names))
