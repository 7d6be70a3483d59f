"""What integers answer beside floats: the share of right answers where there are labels, and noise of outputs.

Invariant: `quantize` and `compile --quantize` say it in the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from math import isfinite
from typing import Any

from .records import dataclass


@dataclass(frozen=True)
class Accuracy:
    before: float
    after: float
    samples: int


@dataclass(frozen=True)
class Quality:
    outputs: Mapping[str, float] = field(default_factory=dict)  # dB
    accuracy: Accuracy | None = None  # where there are labels
    measured: str = "compiled"  # what ran as "after"

    def lines(self) -> Iterator[str]:
        if self.accuracy:
            before, after, count = self.accuracy.before, self.accuracy.after, self.accuracy.samples
            change = f"{100 * (after - before):+.2f} points"
            yield f"accuracy  {before:.2%} before, {after:.2%} after ({change}; {count} samples, {self.measured})"
        for name, noise in self.outputs.items():
            yield f"output    {name}: {noise:.1f} dB signal to noise"

    def as_dict(self) -> dict[str, Any]:
        heard = {name: round(noise, 2) if isfinite(noise) else None for name, noise in self.outputs.items()}
        return {"signal_to_noise": heard, "accuracy": vars(self.accuracy) if self.accuracy else None}
