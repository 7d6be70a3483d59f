"""A network over windows that runs a few frames at a time: what is asked for, and what was found.

A window of an input has so many frames along one axis. A push brings the `hop` newest ones; what it gives is what the
network gives for the window that ends with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from .option_entries import Has, of_keys
from .records import dataclass, replace

WARM = "warm"  # results near the ends of a window are those of one that goes on there


@dataclass(frozen=True)
class Stream:
    """`--stream`; without inputs nothing is asked for."""

    inputs: Mapping[str, int] = field(default_factory=dict)  # the axis of time of each input that moves
    hop: int = 1  # new frames of a push
    edge: str = ""

    def __bool__(self) -> bool:
        return bool(self.inputs)

    def within(self, has: Has) -> Stream:
        """What of it is for a model that has these inputs."""
        return replace(self, inputs=of_keys(self.inputs, has))

    def __str__(self) -> str:
        """As the option is written."""
        axes = [f"{name}={axis}" for name, axis in self.inputs.items()]
        hop = [f"hop={self.hop}"] if self.hop != 1 else []
        return f"--stream {','.join([*axes, *hop, *([f'edge={self.edge}'] if self.edge else [])])}"


@dataclass(frozen=True)
class StreamedOutput:
    """Which elements of the window network's output a push gives: those from `first` along `axis`, so many; all of it
    where `axis` is None."""

    name: str
    axis: int | None
    first: int
    count: int
    latency: int  # frames between the newest of which it tells and the newest there is


@dataclass(frozen=True)
class Streamed:
    """What a program has to know of a network that runs this way."""

    inputs: Mapping[str, int]
    window: int  # frames
    hop: int
    warm_up: int  # pushes up to and with the first that gives a result
    outputs: tuple[StreamedOutput, ...]
    whole: tuple[str, ...] = ()  # operators that read all of the window in every push
    carried: tuple[str, ...] = ()  # operators that go on with what they have got to, for as long as the stream lasts
    own: tuple[str, ...] = ()  # states that the window network has itself, held until the warm-up ends

    @property
    def by_push(self) -> bool:
        """Does a result depend on more pushes than those of its window?"""
        return bool(self.carried or self.own)
