"""Mixtures of experts: every token goes through the few of them that its row of scores prefers.

Invariant: all experts are computed for all tokens, and those that a token does not prefer count 0 times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.dtypes import DTYPES
from ...graph.ir import Invalid, Unsupported
from ..composed_blocks import contents, unpacked
from ..composed_body import Body
from ..composed_pieces import FIX, packed_bits
from ..contributed import writes

_ATTRIBUTES = (
    "activation_alpha", "activation_beta", "activation_type", "k", "normalize_routing_weights", "swiglu_fusion",
    "swiglu_limit", "use_sparse_mixer",
)  # fmt: skip
_EXAMPLE = "float[3, 4] x, float[3, 5] r, float[5, 6, 4] a, float[5, 6] c, float[5, 4, 6] b, float[5, 4] d"


@writes(
    "MoE",
    f"g ({_EXAMPLE}) => (float[3, 4] y) {{ y = com.microsoft.MoE <k = 2, normalize_routing_weights = 1>"
    " (x, r, a, c, b, d) }",
    "g (float[1, 3, 4] x, float[3, 2] r, float[2, 12, 4] a, float[2, 4, 6] b) => (float[1, 3, 4] y)"
    ' { y = com.microsoft.MoE <k = 1, activation_type = "swiglu", swiglu_fusion = 1, activation_alpha = 1.702,'
    ' activation_beta = 1.0, swiglu_limit = 7.0> (x, r, a, "", b) }',
)
def mixture_of_experts(body: Body) -> None:
    body.only(*_ATTRIBUTES)
    layers = [(body.operand(index), index + 1) for index in (2, 4, 6)]
    _mixed(body, layers, bool(body.attribute("normalize_routing_weights", 0)))


@writes(
    "QMoE",
    "g (float[3, 16] x, float[3, 2] r) => (float[3, 16] y)"
    " <uint8[2, 16, 8] a = {" + ", ".join(str(i * 37 % 256) for i in range(256)) + "},"
    " float[2, 16] s = {" + ", ".join(str(0.01 + i / 1000) for i in range(32)) + "}>"
    ' { y = com.microsoft.QMoE <k = 1, weights_prepacked = 0> (x, r, a, s, "", a, s, "") }',
    "g (float[3, 16] x, float[3, 2] r) => (float[3, 16] y)"
    " <uint8[2, 16, 16] a = {" + ", ".join(str(i * 37 % 256) for i in range(512)) + "},"
    " float[2, 16] s = {" + ", ".join(str(0.001 + i / 9000) for i in range(32)) + "}>"
    ' { y = com.microsoft.QMoE <k = 2, expert_weight_bits = 8, normalize_routing_weights = 1, activation_type = "silu">'
    ' (x, r, a, s, "", a, s, "") }',
)
def quantized_mixture_of_experts(body: Body) -> None:
    body.only(
        *_ATTRIBUTES, "accuracy_level", "block_size", "expert_weight_bits", "fc1_expert_weight_bits",
        "fc2_expert_weight_bits", "fc3_expert_weight_bits", "quant_type", "weights_prepacked",
    )  # fmt: skip
    later = [index for index in range(14, 21) if body.has(index)]
    if str(body.attribute("quant_type", "int")) != "int" or body.attribute("weights_prepacked", -1) == 1 or later:
        why = f"weights other than rows of integers, or operand {later}" if later else "weights other than integers"
        raise Unsupported(why, "export the model with quant_type int, weights_prepacked 0 and no routing weights")
    _mixed(body, [(_dequantized(body, number), 3 * number + 4) for number in range(3)], True)  # in onnxruntime always


def _dequantized(body: Body, number: int) -> str:
    """The weights of a layer: each row of an expert in blocks along its depth, or in one."""
    packed, scales = 3 * number + 2, 3 * number + 3
    if not body.has(packed):
        return ""
    bits = int(body.attribute(f"fc{number + 1}_expert_weight_bits", body.attribute("expert_weight_bits", 4)))
    rows = unpacked(contents(body, packed, "the packed weights"), packed_bits(body, bits))
    depth = rows.shape[-1]
    block = int(body.attribute("block_size", 0))
    block = block if block > 0 else depth
    factors, blocks = body.operand(scales), -(-depth // block)
    if body.type(scales).rank == 2:
        factors = body.op("Unsqueeze", factors, body.ints(-1))
    dtype = DTYPES[f"u{bits}"]
    if body.has(11 + number):
        points = unpacked(contents(body, 11 + number, "the zero points"), bits)
        points = points[..., :blocks] if points.ndim == 3 else points[:, : rows.shape[1], None]
    else:
        points = np.full((*rows.shape[:2], blocks), 1 << (bits - 1))
    names = [body.constant(np.ascontiguousarray(array.astype(dtype.numpy))) for array in (rows, points)]
    return body.op("DequantizeLinear", names[0], factors, names[1], axis=2, block_size=block)


def _mixed(body: Body, layers: Sequence[tuple[str, int]], among_best: bool) -> None:
    """`layers`: the weights of all experts, and which operand has their bias; `among_best`: the shares of those that
    are taken make 1."""
    x = body.op("Reshape", body.operand(0), body.ints(1, -1, _known(body, 0, -1)))
    made = _layer(body, x, *layers[0])
    if body.attribute("activation_type", "relu") == "swiglu":
        made = _swiglu(body, x, made, layers[2])
    elif layers[2][0]:
        raise Unsupported("a third layer beside another activation than swiglu", "export the model with swiglu")
    else:
        made = _activated(body, made)
    made = _layer(body, made, *layers[1])
    shares = body.op("Unsqueeze", body.op("Transpose", _shares(body, among_best), perm=[1, 0]), body.ints(-1))
    mixed = body.op("ReduceSum", body.op("Mul", made, shares), body.ints(0), keepdims=0)
    body.give(0, body.op("Reshape", mixed, body.op("Shape", "in0")))


def _known(body: Body, index: int, axis: int) -> int:
    size = body.size(index, axis)
    if not isinstance(size, int):
        raise Unsupported(f"operand {index}, {body.type(index)}", FIX)
    return size


def _layer(body: Body, x: str, weights: str, bias: int) -> str:
    """One layer of every expert: [experts, tokens, features]"""
    made = body.op("MatMul", x, body.op("Transpose", weights, perm=[0, 2, 1]))
    return body.op("Add", made, body.op("Unsqueeze", body.operand(bias), body.ints(1))) if body.has(bias) else made


def _shares(body: Body, among_best: bool) -> str:
    """[tokens, experts], 0 for those that are not among the best."""
    scores, many = body.operand(1), body.ints(int(body.attribute("k", 1)))
    if among_best:
        best = body.op("TopK", scores, many, outs=2, axis=-1)
        taken = body.op("Softmax", best, axis=-1)
    else:
        best = body.op("TopK", body.op("Softmax", scores, axis=-1), many, outs=2, axis=-1)
        taken = best
    none = body.op("Expand", body.number(0.0), body.op("Shape", "in1"))
    return body.op("ScatterElements", none, f"{best}_1", taken, axis=1)


def _activated(body: Body, x: str) -> str:
    name = str(body.attribute("activation_type", "relu"))
    match name:
        case "relu":
            return body.op("Relu", x)
        case "gelu":
            return body.op("Gelu", x, approximate="tanh")
        case "silu":
            return body.op("Mul", x, body.op("Sigmoid", x))
        case "identity":
            return x
    raise Invalid(f"activation_type {name!r} is not one of relu, gelu, silu, swiglu and identity")


def _swiglu(body: Body, x: str, made: str, third: tuple[str, int]) -> str:
    """The gate and what it lets through: side by side, in turns, or of layers of their own."""
    fusion = int(body.attribute("swiglu_fusion", 0))
    if fusion == 0:
        if not third[0]:
            raise Invalid("swiglu that is not fused has no third layer")
        gate, linear = made, _layer(body, x, *third)
    else:
        step = 2 if fusion == 1 else 1
        half = _known(body, 2, 1) // 2  # of the rows, packed or not
        begins = (0, 1) if fusion == 1 else (0, half)
        ends = (2 * half, 2 * half) if fusion == 1 else (half, 2 * half)
        gate, linear = (
            body.op("Slice", made, body.ints(begin), body.ints(end), body.ints(-1), body.ints(step))
            for begin, end in zip(begins, ends, strict=True)
        )
    limit = body.attribute("swiglu_limit", None)
    if limit is not None:
        gate = body.op("Min", gate, body.number(limit))
        linear = body.op("Clip", linear, body.number(-limit), body.number(limit))
    alpha, beta = body.attribute("activation_alpha", 1.0), body.attribute("activation_beta", 0.0)
    open_ = body.op("Mul", gate, body.op("Sigmoid", body.op("Mul", gate, body.number(alpha))))
    return body.op("Mul", open_, body.op("Add", linear, body.number(beta)) if beta else linear)
