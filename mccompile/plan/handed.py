"""What programs are told of inputs and outputs besides their types and places, and functions of sizes."""

from __future__ import annotations

from ..base.records import dataclass


@dataclass(frozen=True)
class Quantized:
    """An integer q stands for (q - zero) * scale: one of each, or one per position of an axis."""

    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int | None  # None: one for all


@dataclass(frozen=True)
class InRows:
    """An input that a function of the program's gives: each row dense, with the other axes in order."""

    axis: int
    count: int
    bytes: int  # of each


@dataclass(frozen=True)
class Table:
    """Sizes that a function reads: those of one step, or of several that agree."""

    name: str
    c: str  # element type
    numbers: tuple[int, ...]
