"""Pieces that decompositions of several operators share: optional operands, heads of attention, mean squares.

In: a Body and names of its tensors. Out: the name of the tensor that the piece makes.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..base.dims import Dim
from ..graph.ir import Invalid, Unsupported
from .composed_body import Body

FIX = "fix sizes with --dim or --shape"


def plus(body: Body, x: str, index: int) -> str:
    """The sum with an operand, if the node has it."""
    return body.op("Add", x, body.operand(index)) if body.has(index) else x


def split_heads(body: Body, x: str, heads: int, width: int = -1) -> str:
    """[batch, tokens, heads * width] as [batch, heads, tokens, width]."""
    return body.op("Transpose", body.op("Reshape", x, body.ints(0, 0, heads, width)), perm=[0, 2, 1, 3])


def join_heads(body: Body, x: str, channels: int = -1) -> str:
    """[batch, heads, tokens, width] as [batch, tokens, channels]."""
    return body.op("Reshape", body.op("Transpose", x, perm=[0, 2, 1, 3]), body.ints(0, 0, channels))


def scores_of(body: Body, query: str, keys: str, width: int) -> str:
    """Queries times keys of [..., width, keys], scaled by the attribute or by 1 / sqrt(width)."""
    return body.op("Mul", body.op("MatMul", query, keys), body.number(body.attribute("scale", 0.0) or width**-0.5))


def root_mean_square(body: Body, x: str, epsilon: float, *axes: int) -> str:
    """Over the last axis, unless others are named."""
    square = body.op("ReduceMean", body.op("Mul", x, x), body.ints(*axes or (-1,)), keepdims=1)
    return body.op("Sqrt", body.op("Add", square, body.number(epsilon)))


def give_token_counts(body: Body, mask: int, ids: int) -> None:
    """Result 1: how many tokens of each row the mask keeps; 0 without a mask."""
    if body.has(mask):
        kept = body.op("Cast", body.operand(mask), to=TensorProto.INT32)
        body.give(1, body.op("ReduceSum", kept, body.ints(1), keepdims=0), False)
    else:
        zero = body.constant(np.array(0, np.int32))
        body.give(1, body.op("Expand", zero, body.sizes(body.size(ids, 0))), False)


def channels_of(*dims: Dim) -> list[int]:
    """Numbers of channels, which have to be known when the model is compiled."""
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) < len(dims):
        raise Unsupported("the number of channels is known only at run time", "fix it with --dim or --shape")
    return known


def packed_bits(body: Body, bits: int) -> int:
    """The bits of packed weights. Integers of 2 bits need opset 25."""
    if bits not in (2, 4, 8):
        raise Unsupported(f"weights of {bits} bits", "quantize to 2, 4 or 8 bits")
    if bits == 2:
        body.opset = 25
    return bits


def one_number(body: Body, index: int, what: str) -> float:
    """An operand that has to be one constant."""
    value = body.value(index)
    if value is None or value.constant is None or value.type.count != 1:
        raise Unsupported(f"{what} (operand {index}) is not one constant", "make it a constant of the model")
    return float(value.constant.array.reshape(-1)[0])


def heads_of(body: Body) -> int:
    heads = int(body.attribute("num_heads", 0))
    if heads < 1:
        raise Invalid(f"num_heads is {heads}")
    return heads
