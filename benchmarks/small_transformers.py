"""Transformers of two layers, 32 tokens and 4 heads, with weights at random: in floats, in int8 as quantizers write it
(DequantizeLinear around every product), and with weights of 4 bits; and the products in 4 bits alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

TOKENS, WIDTH, HEADS, LAYERS, BLOCK = 32, 64, 4, 2, 32


class _Transformer:
    """`form`: how products are computed, "floats", "int8" or "4_bits"."""

    def __init__(self, form: str) -> None:
        self.form, self.chance = form, np.random.default_rng(8)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def node(self, op: str, *ins: str, **attributes: Any) -> str:
        out = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, ins, [out], name=out, **attributes))
        return out

    def constant(self, array: np.ndarray) -> str:
        name = f"constant{len(self.weights)}"
        self.weights[name] = array
        return name

    def floats(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant((self.chance.standard_normal(shape) * scale).astype(np.float32))

    def rounded(self, x: str, scale: float) -> str:
        """The tensor as it is between two steps in int8; itself in the other forms."""
        if self.form != "int8":
            return x
        numbers = self.constant(np.array(scale, np.float32)), self.constant(np.array(0, np.int8))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *numbers), *numbers)

    def product(self, x: str, depth: int, columns: int, scale: float = 0.04) -> str:
        """With weights, and a bias."""
        spread = 1 / np.sqrt(depth)
        if self.form == "4_bits":
            packed = self.constant(self.chance.integers(0, 256, (columns, depth // BLOCK, BLOCK // 2), np.uint8))
            scales = self.chance.uniform(0.5, 1, (columns, depth // BLOCK)) * spread / 4
            form = {"K": depth, "N": columns, "bits": 4, "block_size": BLOCK}
            operands = (x, packed, self.constant(scales.astype(np.float32)))
            made = self.node("MatMulNBits", *operands, domain="com.microsoft", **form)
        elif self.form == "int8":
            weights = self.constant(self.chance.integers(-127, 128, (depth, columns), np.int8))
            step = self.constant(np.array(spread / 64, np.float32)), self.constant(np.array(0, np.int8))
            made = self.node("MatMul", self.rounded(x, scale), self.node("DequantizeLinear", weights, *step))
        else:
            made = self.node("MatMul", x, self.floats(depth, columns, scale=spread))
        return self.rounded(self.node("Add", made, self.floats(columns, scale=0.1)), 0.04)

    def heads(self, x: str, order: tuple[int, ...]) -> str:
        cut = self.constant(np.array([1, TOKENS, HEADS, WIDTH // HEADS], np.int64))
        return self.node("Transpose", self.node("Reshape", x, cut), perm=order)

    def attention(self, x: str) -> str:
        query, key, value = (self.product(x, WIDTH, WIDTH) for _ in range(3))
        scores = self.node("MatMul", self.heads(query, (0, 2, 1, 3)), self.heads(key, (0, 2, 3, 1)))
        root = self.constant(np.array(np.sqrt(WIDTH // HEADS), np.float32))
        shares = self.node("Softmax", self.rounded(self.node("Div", self.rounded(scores, 0.1), root), 0.05), axis=-1)
        mixed = self.node("MatMul", self.rounded(shares, 1 / 127), self.heads(value, (0, 2, 1, 3)))
        whole = self.constant(np.array([1, TOKENS, WIDTH], np.int64))
        joined = self.node("Reshape", self.node("Transpose", self.rounded(mixed, 0.04), perm=(0, 2, 1, 3)), whole)
        return self.product(joined, WIDTH, WIDTH)

    def normalized(self, x: str, more: str) -> str:
        numbers = self.constant(self.chance.uniform(0.5, 1.5, WIDTH).astype(np.float32)), self.floats(WIDTH, scale=0.1)
        return self.node("LayerNormalization", self.node("Add", x, more), *numbers, axis=-1)

    def model(self) -> ModelProto:
        last = "x"
        for _ in range(LAYERS):
            last = self.normalized(last, self.attention(last))
            wide = self.product(last, WIDTH, 4 * WIDTH)
            inner = self.node("Mul", wide, self.node("Sigmoid", wide))
            last = self.normalized(last, self.product(inner, 4 * WIDTH, WIDTH))
        return _model("transformer", self.nodes, self.weights, last, (1, TOKENS, WIDTH))


def _model(
    name: str, nodes: list[NodeProto], weights: Mapping[str, np.ndarray], last: str, shape: tuple[int, ...]
) -> ModelProto:
    """With one input `x`, and a result of the same shape."""
    x, y = (helper.make_tensor_value_info(tensor, TensorProto.FLOAT, shape) for tensor in ("x", last))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    constants = [numpy_helper.from_array(array, key) for key, array in weights.items()]
    graph = helper.make_graph(nodes, name, [x], [y], constants)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def products_in_4_bits(rows: int) -> ModelProto:
    """The feed-forward part of a transformer, 4-bit weights in blocks of 32: for one token, or for a prompt."""
    chance, sizes, nodes, last = np.random.default_rng(8), (192, 768, 192), [], "x"
    weights: dict[str, np.ndarray] = {}
    for number, (depth, columns) in enumerate(itertools.pairwise(sizes)):
        packed = chance.integers(0, 256, (columns, depth // BLOCK, 16), np.uint8)
        scales = (chance.uniform(0.5, 1, (columns, depth // BLOCK)) / 8 / np.sqrt(depth)).astype(np.float32)
        arrays = {f"w{number}": packed, f"s{number}": scales}
        weights |= arrays
        form: dict[str, Any] = {"K": depth, "N": columns, "bits": 4, "block_size": BLOCK}
        nodes.append(helper.make_node("MatMulNBits", [last, *arrays], [f"y{number}"], domain="com.microsoft", **form))
        nodes += [helper.make_node("Relu", ["y0"], ["relu"])] * (number == 0)
        last = "relu"
    return _model("products_in_4_bits", nodes, weights, "y1", (rows, 192))


# in floats only
IN_FEW_BITS: Mapping[str, Callable[[], ModelProto]] = {
    "token_4_bits": partial(products_in_4_bits, 1),
    "prompt_4_bits": partial(products_in_4_bits, 16),
}
TRANSFORMERS: Mapping[str, Callable[[], ModelProto]] = {
    f"transformer_{form}": _Transformer(form).model for form in ("floats", "int8", "4_bits")
}
