"""Networks for stories: families, by the seed of their weights and by what of their interface varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, numpy_helper, parser

from tests.small_models import floats


@dataclass(frozen=True)
class Family:
    """`text` has an input, outputs and `{...}` for what varies; `state` says which output becomes which input."""

    text: str
    variants: tuple[Mapping[str, str], ...]  # all of one code, or none of another's interface
    weights: Callable[[int], Mapping[str, np.ndarray]]
    state: Mapping[str, str]
    is_picture: bool = False


def _none(seed: int) -> Mapping[str, np.ndarray]:
    return {}


def _dense(seed: int) -> Mapping[str, np.ndarray]:
    return {"w": floats(seed, 6, 5), "b": floats(seed + 1, 5)}


def _filters(seed: int) -> Mapping[str, np.ndarray]:
    return {"w": floats(seed, 4, 3, 3, 3), "b": floats(seed + 1, 4)}


def _memory(seed: int) -> Mapping[str, np.ndarray]:
    return {"w": floats(seed, 1, 4)}


FAMILIES: Mapping[str, Family] = {
    "dense": Family(
        "g (float[{n},6] {x}) => (float[{n},5] y) {{ h = MatMul ({x}, w) a = Add (h, b) y = Relu (a) }}",
        ({"n": "2", "x": "x"}, {"n": "2", "x": "z"}, {"n": "3", "x": "x"}),
        _dense,
        {},
    ),
    "moved": Family(
        "g (float[{i}] x) => (float[{o}] y) {{ h = Relu (x) s = Constant <value_ints = [{o}]> () y = Reshape (h, s) }}",
        ({"i": "1,6", "o": "2,3"}, {"i": "1,6", "o": "3,2"}, {"i": "6,1", "o": "2,3"}, {"i": "1,6", "o": "6"}),
        _none,
        {},
    ),
    "picture": Family(
        "g (float[1,3,{n},6] x) => (float[1,4,{n},6] y) {{ a = Conv <pads = [1,1,1,1]> (x, w, b) y = Relu (a) }}",
        ({"n": "6"}, {"n": "4"}),
        _filters,
        {},
        is_picture=True,
    ),
    "memory": Family(
        "g (float[1,{n}] x, float[1,4] h_in) => (float[1,4] y, float[1,4] h_out) "
        "{{ s = ReduceSum (x) h = Mul (h_in, w) h_out = Add (h, s) y = Neg (h_out) }}",
        ({"n": "4"}, {"n": "5"}),
        _memory,
        {"h_out": "h_in"},
    ),
}


@dataclass(frozen=True)
class Network:
    """One file of a family."""

    family: str
    variant: int
    seed: int

    @property
    def of(self) -> Family:
        return FAMILIES[self.family]

    def made(self) -> ModelProto:
        variants = self.of.variants
        text = self.of.text.format(**variants[self.variant % len(variants)])
        made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
        made.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in self.of.weights(self.seed).items())
        return made

    def has_interface_of(self, other: Network) -> bool:
        count = len(self.of.variants)
        return self.family == other.family and self.variant % count == other.variant % count
