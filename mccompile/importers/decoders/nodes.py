"""Nodes and constants of a decoder, and its products with weights in the forms of their files.

Invariant: a weight is one constant, also where several nodes read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from .weights import Blocks, Weight

_ALONE = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "mish": "Mish"}  # operators of one operand


class Nodes:
    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix  # of names, which are those of one graph and of the regions inside
        self.made: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.known: dict[object, str] = {}

    def op(self, name: str, *inputs: str, made: str = "", outputs: int = 1, **attributes: Any) -> str:
        made = made or f"{self.prefix}{name}_{len(self.made)}"
        names = [made, *(f"{made}_{number}" for number in range(1, outputs))]
        self.made.append(helper.make_node(name, inputs, names, made, **attributes))
        return made

    def once(self, key: object, make: Callable[[], str]) -> str:
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def constant(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def number(self, number: float) -> str:
        return self.once(("number", number), lambda: self.constant(np.array(number, np.float32)))

    def index(self, number: int) -> str:
        return self.once(("index", number), lambda: self.constant(np.array(number, np.int64)))

    def ints(self, *numbers: int) -> str:
        return self.once(numbers, lambda: self.constant(np.array(numbers, np.int64)))

    def floats(self, weight: Weight) -> str:
        """A vector, or a table that is not multiplied."""
        return self.once(weight.name, lambda: self.constant(weight.floats, weight.name))

    def activated(self, x: str, activation: str) -> str:
        if activation == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if activation == "relu2":
            positive = self.op("Relu", x)
            return self.op("Mul", positive, positive)
        if activation in _ALONE:
            return self.op(_ALONE[activation], x)
        if activation == "quick_gelu":
            return self.op("Mul", x, self.op("Sigmoid", self.op("Mul", x, self.number(1.702))))
        if activation == "relu6":
            return self.op("Clip", x, self.number(0.0), self.number(6.0))
        return self.op("Gelu", x, approximate="tanh" if activation == "gelu_tanh" else "none")

    def product(self, x: str, weight: Weight, bias: Weight | None) -> str:
        """x @ weight.T + bias"""
        value = weight.value
        if not isinstance(value, Blocks):
            made = self.op("MatMul", x, self.op("Transpose", self.floats(weight), perm=[1, 0]))
        else:
            made = self.op("MatMul", x, self.op("Transpose", self.unpacked(weight.name, value), perm=[1, 0]))
            if value.offsets is not None:  # sums of blocks, times their offsets
                offsets = self.offsets(weight.name, value)
                made = self.op("Add", made, self.op("MatMul", self.sums(x, value), self.op("Transpose", offsets)))
        return made if bias is None else self.op("Add", made, self.floats(bias))

    def sums(self, x: str, value: Blocks) -> str:
        """Of the elements of each block."""
        blocks = value.scales.shape[1]

        def make() -> str:
            cut = self.op("Reshape", x, self.ints(0, 0, blocks, -1))
            return self.op("ReduceSum", cut, self.ints(3), keepdims=0)

        return self.once(("sums", x, blocks), make)

    def rows(self, weight: Weight, indices: str, width: int) -> str:
        value = weight.value
        if not isinstance(value, Blocks):
            return self.op("Gather", self.floats(weight), indices, axis=0)
        made = self.op("Gather", self.unpacked(weight.name, value), indices, axis=0)
        if value.offsets is None:
            return made
        offsets = self.op("Gather", self.offsets(weight.name, value), indices, axis=0)
        blocks = value.scales.shape[1]
        cut = self.op("Reshape", made, self.ints(0, 0, blocks, -1))
        whole = self.op("Add", cut, self.op("Unsqueeze", offsets, self.ints(3)))
        return self.op("Reshape", whole, self.ints(0, 0, width))

    def offsets(self, name: str, value: Blocks) -> str:
        assert value.offsets is not None
        array = value.offsets
        return self.once((name, "offsets"), lambda: self.constant(array, f"{name}.offsets"))

    def unpacked(self, name: str, value: Blocks) -> str:
        """levels * scales: the compiler reads levels as they lie."""

        def make() -> str:
            self.constants.append(_levels(f"{name}.levels", value))
            scales = self.constant(value.scales, f"{name}.scales")
            return self.op("DequantizeLinear", f"{name}.levels", scales, axis=1, block_size=value.block)

        return self.once((name, "unpacked"), make)


def _levels(name: str, value: Blocks) -> TensorProto:
    signed = value.levels.dtype == np.int8
    if value.bits == 8:
        return numpy_helper.from_array(np.ascontiguousarray(value.levels), name)
    nibbles = value.levels.astype(np.uint8).reshape(-1) & 15
    pairs = nibbles[0::2] | nibbles[1::2] << 4
    kind = TensorProto.INT4 if signed else TensorProto.UINT4
    return TensorProto(name=name, data_type=kind, dims=value.levels.shape, raw_data=pairs.tobytes())
