"""What random cases of operators are made with.

A case is a function that puts one operator into a file, with random attributes, shapes and types, and returns its
results. `@draws("ADD")` says what it is for; cases of all operators are found by folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .build import Net

Drawn = Callable[["Draw"], Sequence[int]]
CASES: dict[str, Case] = {}
BYTES, QUANTIZED = ("INT8", "UINT8"), ("INT8", "UINT8", "INT16")
FLOAT = ("FLOAT32",)
_LIMITS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}


@dataclass(frozen=True)
class Case:
    draw: Drawn
    steps: int  # by which integers may differ
    halves: int  # the same for integers of 16 bits, where LiteRT interpolates tables
    rtol: float  # floats, of the largest
    optimised: bool  # compared with LiteRT's optimised kernels: the reference has a bug


def draws(
    *names: str, steps: int = 1, halves: int = 0, rtol: float = 3e-5, optimised: bool = False
) -> Callable[[Drawn], Drawn]:
    def register(draw: Drawn) -> Drawn:
        for name in names:
            CASES[name] = Case(draw, steps, halves or steps, rtol, optimised)
        return draw

    return register


@cache
def cases() -> dict[str, Case]:
    folder = Path(__file__).parent / "cases"
    for path in sorted(folder.glob("[a-z]*.py")):
        import_module(f"tests.importers.tflite.cases.{path.stem}")
    return dict(sorted(CASES.items()))


class Draw:
    """One case in the making."""

    def __init__(self, name: str, net: Net, chance: np.random.Generator) -> None:
        self.name, self.net, self.chance = name, net, chance
        self.ranges: dict[int, tuple[float, float]] = {}  # of inputs, where not all that the type can hold

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.chance.integers(len(choices)))]

    def int(self, low: int, high: int) -> int:
        return int(self.chance.integers(low, high + 1))

    def flip(self, share: float = 0.5) -> bool:
        return bool(self.chance.random() < share)

    def shape(self, low: int = 1, high: int = 4, most: int = 6) -> tuple[int, ...]:
        return tuple(self.int(1, most) for _ in range(self.int(low, high)))

    def quantization(self, type: str) -> dict[str, Any]:
        """How a tensor may be quantized; plain types are not."""
        if type not in _LIMITS:
            return {}
        zero = 0 if type == "INT16" else self.int(*_LIMITS[type])
        scale = float(np.float32(10 ** self.chance.uniform(-2.3, -1)))
        return {"scale": scale / 256 if type == "INT16" else scale, "zero": zero}

    def input(
        self, shape: Sequence[int], type: str = "FLOAT32", range: tuple[float, float] | None = None, **q: Any
    ) -> int:
        made = self.net.input(tuple(shape), type, **(q or self.quantization(type)))
        if range is not None:
            self.ranges[made] = range
        return made

    def out(self, shape: Sequence[int], type: str = "FLOAT32", **q: Any) -> int:
        return self.net.tensor(tuple(shape), type, **(q or self.quantization(type)))

    def alike(self, tensor: int) -> dict[str, Any]:
        """Quantized as another tensor is."""
        known = self.net.tensors[tensor]
        return {} if known["scale"] is None else {"scale": known["scale"], "zero": known["zero"]}

    def ints(self, *numbers: int) -> int:
        return self.net.constant(np.array(numbers, np.int32).reshape(len(numbers)))

    def scalar(self, number: int) -> int:
        return self.net.constant(np.array(number, np.int32))

    def constant(self, shape: Sequence[int], type: str = "FLOAT32") -> int:
        if type == "FLOAT32":
            return self.net.constant(self.chance.uniform(-2, 2, shape).astype(np.float32))
        low, high = _LIMITS.get(type, (-50, 50))
        array = self.chance.integers(low, high + 1, shape).astype(type.lower())
        return self.net.constant(array, **self.quantization(type))

    def op(self, inputs: Sequence[int], outputs: Sequence[int], options: Any = "", **fields: Any) -> Sequence[int]:
        self.net.op(self.name, inputs, outputs, options, **fields)
        return outputs


def values(known: dict[str, Any], range: tuple[float, float] | None, chance: np.random.Generator) -> np.ndarray:
    """Something for an input."""
    shape, type = known["shape"], known["type"]
    if type.startswith("FLOAT"):
        return chance.uniform(*(range or (-3, 3)), shape).astype(type.lower())
    if type == "BOOL":
        return chance.random(shape) < 0.5
    low, high = range or _LIMITS.get(type, (-40, 40))
    return chance.integers(int(low), int(high) + 1, shape).astype(type.lower())
