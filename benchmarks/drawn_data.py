"""Inputs of networks at random that look like something: smooth pictures, sums of sines, features that depend on each
other. What a shape is taken for, its axes say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Data:
    chance: np.random.Generator
    shape: tuple[int, ...]

    def feeds(self, count: int) -> list[dict[str, np.ndarray]]:
        made = {2: self._features, 3: self._series, 4: self._pictures}[len(self.shape)]()
        return [{"x": made().reshape(self.shape).astype(np.float32)} for _ in range(count)]

    def _features(self) -> Callable[[], np.ndarray]:
        """Fewer causes than features, some of which have long tails."""
        size = self.shape[1]
        mixed = self.chance.standard_normal((size, max(4, size // 3))) / 2
        tails, sizes = self.chance.random(size) < 0.1, np.exp(self.chance.normal(0, 0.4, size))

        def one() -> np.ndarray:
            x = mixed @ self.chance.standard_normal(mixed.shape[1]) + self.chance.normal(0, 0.2, size)
            return np.asarray(np.where(tails, x * np.abs(x), x) * sizes)

        return one

    def _series(self) -> Callable[[], np.ndarray]:
        """Of [1, channels, positions] or [1, steps, features]: sines and noise."""
        _, rows, columns = self.shape
        is_signal = columns > rows
        channels, positions = (rows, columns) if is_signal else (columns, rows)

        def one() -> np.ndarray:
            phases, rates = self.chance.uniform(0, 6.3, (3, channels, 1)), self.chance.uniform(0.05, 0.8, (3, 1, 1))
            waves = np.sin(phases + rates * np.arange(positions)).sum(0) * self.chance.uniform(0.2, 1)
            x = waves + self.chance.normal(0, 0.1, waves.shape)
            return np.asarray(x if is_signal else x.T)

        return one

    def _pictures(self) -> Callable[[], np.ndarray]:
        """Smooth, between 0 and 1, with noise."""
        _, channels, height, width = self.shape

        def one() -> np.ndarray:
            coarse = self.chance.uniform(0, 1, (channels, 4, 4))
            rows, columns = (np.linspace(0, 2.999, size) for size in (height, width))
            r, c = rows.astype(int), columns.astype(int)
            v, u = (rows - r)[:, None], columns - c
            top = coarse[:, r][:, :, c] * (1 - u) + coarse[:, r][:, :, c + 1] * u
            low = coarse[:, r + 1][:, :, c] * (1 - u) + coarse[:, r + 1][:, :, c + 1] * u
            noise = self.chance.normal(0, 0.05, (channels, height, width))
            return np.asarray(np.clip(top * (1 - v) + low * v + noise, 0, 1))

        return one
