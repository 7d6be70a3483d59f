"""How a network is to be quantized: what is asked for, before anything is known of the network.

Invariant: a recipe that contradicts itself is refused by `check`, which tells all that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import Problem, WrongUse, raise_all
from .records import dataclass

SEARCH = "search"
METHODS = (SEARCH, "minmax", "percentile", "entropy")
MOST = {"int8": 127, "int4": 7, "ternary": 1}  # the largest integer
PALETTE = "palette4"
WEIGHTS = (*MOST, PALETTE)  # what weights of layers may be


@dataclass(frozen=True)
class Recipe:
    """How to quantize."""

    method: str = SEARCH  # how ranges are found: one of METHODS
    symmetric: bool = False  # activations have no zero points
    dynamic: bool = False  # scales of activations are computed in every run
    weights_only: int = 0  # 8 or 4: bits of weights; activations stay floats
    weights: str = "int8"  # one of WEIGHTS: what weights of layers are, activations being int8
    equalise: bool = True  # cross-layer, where that brings the outputs closer
    auto: int = 0  # how many layers to leave in float: those that win most by it
    sensitivity: float = 0  # dB that outputs are to reach, as few layers as that takes being left in float; 0: any
    samples: int = 128  # the most to calibrate with

    @property
    def needs_samples(self) -> bool:
        return not (self.dynamic or self.weights_only)

    def check(self) -> None:
        bits, layers = "8 bits have a scale per channel, 4 one per 32 weights", "layers are chosen by what samples make"
        wrong = [
            (self.method not in METHODS, f"there is no method {self.method!r}", _one_of(METHODS), "--calibrate search"),
            (
                self.weights_only not in (0, 4, 8),
                f"weights cannot have {self.weights_only} bits",
                bits,
                "--weights-only 8",
            ),
            (self.weights not in WEIGHTS, f"weights cannot be {self.weights!r}", _one_of(WEIGHTS), "--weights int8"),
            (
                self.weights != "int8" and not self.needs_samples,
                "--weights is for int8 activations",
                "others say themselves what weights become",
                "--weights",
            ),
            (
                self.dynamic and bool(self.weights_only),
                "--dynamic and --weights-only exclude each other",
                "one rounds activations too, the other leaves them",
                "--dynamic",
            ),
            (self.auto < 0, f"{self.auto} layers cannot be left in float", "it is a number of layers", "--auto 0"),
            (bool(self.auto and self.weights_only), "--auto is not for --weights-only", layers, "--auto"),
            (
                self.sensitivity < 0,
                f"outputs cannot be asked for {self.sensitivity:g} dB",
                "it is the signal to noise to reach: 20 dB is a tenth, 40 dB a hundredth",
                "--sensitivity 30",
            ),
            (
                bool(self.sensitivity and self.auto),
                "--sensitivity says how many layers --auto leaves",
                "both choose layers",
                "--auto",
            ),
            (
                bool(self.sensitivity) and not self.needs_samples,
                "--sensitivity is for int8 activations",
                layers,
                "--sensitivity",
            ),
            (
                self.symmetric and not self.needs_samples,
                "--symmetric is for int8 activations",
                "zero points of others are chosen in each run, or there are none",
                "--symmetric",
            ),
            (
                self.method != SEARCH and not self.needs_samples,
                "--calibrate is for int8 activations",
                "others take no ranges from samples",
                "--calibrate",
            ),
            (self.samples < 1, "it takes a sample at least", "ranges come from samples", "--samples 128"),
        ]
        fixes = {flag: f"did you mean {flag}?" if " " in flag else f"leave out {flag}" for _, _, _, flag in wrong}
        found = [Problem(what, flag.split()[0], why, fixes[flag]) for is_bad, what, why, flag in wrong if is_bad]
        raise_all(WrongUse, found)


def _one_of(names: Sequence[str]) -> str:
    return f"there are {', '.join(names)}"
