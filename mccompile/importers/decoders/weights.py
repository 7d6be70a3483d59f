"""Weights as files store them: floats, or blocks of few bits with a scale, and some with an offset, each.

Invariant: nothing is rounded. Blocks keep their levels, and scales are products of what is stored, exact in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...base.records import dataclass


@dataclass(frozen=True)
class Blocks:
    """levels * scale + offset: levels [rows, columns], the others [rows, columns / block]."""

    levels: np.ndarray  # int8, or uint8 where they are not negative
    bits: int  # that hold a level: 4 or 8
    scales: np.ndarray  # float32
    offsets: np.ndarray | None = None  # float32

    @property
    def block(self) -> int:
        return int(self.levels.shape[1] // self.scales.shape[1])

    def rows(self, chosen: np.ndarray) -> Blocks:
        offsets = None if self.offsets is None else self.offsets[chosen]
        return Blocks(self.levels[chosen], self.bits, self.scales[chosen], offsets)

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def floats(self) -> np.ndarray:
        rows, columns = self.levels.shape
        made = self.levels.reshape(rows, -1, self.block).astype(np.float32) * self.scales[..., None]
        if self.offsets is not None:
            made = made + self.offsets[..., None]
        return np.asarray(made.reshape(rows, columns), np.float32)


@dataclass(frozen=True)
class Weight:
    """A tensor of a file, which is read when it is wanted."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray | Blocks]
    chosen: np.ndarray | None = None  # rows, in the order in which they are wanted
    turned: bool = False  # it is stored transposed
    offset: float = 0.0  # that is added to all elements

    @property
    def flat(self) -> Weight:
        """As one row of floats."""
        return self.shaped((int(np.prod(self.shape)),))

    def shaped(self, shape: tuple[int, ...]) -> Weight:
        """As floats of another shape."""

        def read() -> np.ndarray:
            found = self.read()
            return (found.floats if isinstance(found, Blocks) else found).reshape(shape)

        return replace(self, shape=shape, read=read)

    @property
    def floats(self) -> np.ndarray:
        found = self.value
        return np.asarray(found.floats if isinstance(found, Blocks) else found, np.float32)

    @cached_property
    def value(self) -> np.ndarray | Blocks:
        found = self.read()
        if isinstance(found, Blocks) and (self.turned or self.offset or len(self.shape) != 2):
            found = found.floats.reshape(self.shape[::-1] if self.turned else self.shape)
        if isinstance(found, np.ndarray):
            found = found.T if self.turned else found
            found = found + np.float32(self.offset) if self.offset else found
            return found if self.chosen is None else found[self.chosen]
        return found if self.chosen is None else found.rows(self.chosen)


def stacked(name: str, parts: Sequence[Weight]) -> Weight:
    """Vectors as the rows of one tensor."""
    return Weight(name, (len(parts), *parts[0].shape), lambda: np.stack([np.asarray(part.value) for part in parts]))
