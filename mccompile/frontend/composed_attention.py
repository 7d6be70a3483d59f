"""The attention operators of onnxruntime's domain, written out: the projections of one matrix as products and a
softmax, separate operands as ONNX's Attention."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..graph.ir import Unsupported
from .composed_body import Body


def attention(body: Body) -> None:
    """Self-attention with the three projections in one matrix."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value", "qkv_hidden_sizes")
    if any(map(body.has, range(4, 8))):
        raise Unsupported("attention with a past")
    projected = body.op("MatMul", body.operand(0), body.operand(1))
    if body.has(2):
        projected = body.op("Add", projected, body.operand(2))
    _mix(body, projected, 3)


def quantized_attention(body: Body) -> None:
    """The same where operands and weights are integers."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value")
    if body.has(8):
        raise Unsupported("attention with a past")
    total = body.op("MatMulInteger", body.operand(0), body.operand(1), body.operand(6), body.operand(7))
    scales = body.op("Mul", body.operand(3), body.operand(4))
    _mix(body, body.op("Add", body.op("Mul", body.as_float(total), scales), body.operand(2)), 5)


def _mix(body: Body, projected: str, mask: int) -> None:
    """What follows on the projection."""
    x, weights = body.type(0), body.type(1)
    heads = int(body.attribute("num_heads", 0))
    sizes = body.attribute("qkv_hidden_sizes", ())
    hidden = weights.shape[1]
    batch, length = x.shape[0], x.shape[1]
    if not all(isinstance(dim, int) for dim in (batch, length, hidden)) or heads < 1:
        raise Unsupported("attention over sizes that are known only at run time", "fix them with --dim or --shape")
    assert isinstance(batch, int) and isinstance(length, int) and isinstance(hidden, int)
    widths = [int(size) for size in sizes] or [hidden // 3] * 3
    parts = body.op("Split", projected, body.ints(*widths), axis=2, outs=3)
    turned = []
    for number, (name, width) in enumerate(zip((parts, f"{parts}_1", f"{parts}_2"), widths, strict=True)):
        split = body.op("Reshape", name, body.ints(batch, length, heads, width // heads))
        turned.append(body.op("Transpose", split, perm=[0, 2, 3, 1] if number == 1 else [0, 2, 1, 3]))
    scale = body.attribute("scale", 0.0) or (widths[0] // heads) ** -0.5
    scores = body.op("Mul", body.op("MatMul", turned[0], turned[1]), body.number(scale))
    scores = _masked(body, scores, batch, length, mask)
    mixed = body.op("MatMul", body.op("Softmax", scores, axis=-1), turned[2])
    back = body.op("Transpose", mixed, perm=[0, 2, 1, 3])
    body.give(0, body.op("Reshape", back, body.ints(batch, length, widths[2])))


def _masked(body: Body, scores: str, batch: int, length: int, operand: int) -> str:
    lowest = body.number(body.attribute("mask_filter_value", -10000.0))
    if body.attribute("unidirectional", 0):
        later = np.triu(np.ones((length, length), np.bool_), 1)
        scores = body.op("Where", body.constant(later), body.number(float(np.finfo(np.float32).min)), scores)
    if not body.has(operand):
        return scores
    shape = body.type(operand).shape
    if shape == (batch,):
        places = body.constant(np.arange(length, dtype=np.int32).reshape(1, 1, 1, length))
        ends = body.op("Reshape", body.operand(operand), body.ints(batch, 1, 1, 1))
        outside = body.op("GreaterOrEqual", places, ends)
    elif shape in ((batch, length), (batch, length, length)):
        to = (batch, 1, 1, length) if len(shape) == 2 else (batch, 1, length, length)
        mask = body.op("Reshape", body.operand(operand), body.ints(*to))
        outside = body.op("Equal", mask, body.constant(np.array(0, np.int32)))
    else:
        raise Unsupported(f"a mask of shape {body.type(operand)}")
    return body.op("Add", scores, body.op("Where", outside, lowest, body.number(0.0)))


def multi_head_attention(body: Body) -> None:
    """Queries, keys and values are operands of their own."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value")
    heads, causal = int(body.attribute("num_heads", 0)), int(body.attribute("unidirectional", 0))
    if not (body.has(1) and body.has(2)) or any(body.type(i).rank != 3 for i in range(3)) or heads < 1:
        raise Unsupported("queries, keys and values that are packed into one operand, or keys that are cut into heads")
    if body.has(8) or body.has(9) or (causal and body.has(6)):
        raise Unsupported("a past in a buffer, or one before queries that see what is before them only")
    body.opset = 23
    sides = [body.operand(i) for i in range(3)]
    if body.has(3):
        widths = [body.type(i).shape[2] for i in range(3)]
        if not all(isinstance(width, int) for width in widths):
            raise Unsupported("channels whose number is known only at run time")
        parts = body.op("Split", body.operand(3), body.ints(*(int(str(w)) for w in widths)), axis=0, outs=3)
        names = (parts, f"{parts}_1", f"{parts}_2")
        sides = [body.op("Add", side, name) for side, name in zip(sides, names, strict=True)]
    attributes: dict[str, int | float] = {"q_num_heads": heads, "kv_num_heads": heads, "is_causal": causal}
    scale = body.attribute("scale", 0.0)
    if scale:
        attributes["scale"] = scale
    wanted = 3 if any(len(body.node.output) > i and body.node.output[i] for i in (1, 2)) else 1
    if wanted == 3 and not body.has(6):
        raise Unsupported("the keys and values of this run as results, without those of the past")
    made = body.op("Attention", *sides, _bias(body), body.operand(6), body.operand(7), outs=wanted, **attributes)
    body.give(0, made)
    for number in range(1, wanted):
        body.give(number, f"{made}_{number}")


def _bias(body: Body) -> str:
    """What is added to the scores: the bias, and a low number where keys are no keys; empty where nothing is."""
    bias = body.operand(5)
    if not body.has(4):
        return bias
    mask = body.type(4)
    if mask.rank not in (2, 3):
        raise Unsupported(f"a mask of shape {mask}")
    zero = body.constant(np.array(0, np.int32))
    lowest = body.number(body.attribute("mask_filter_value", -10000.0))
    shut = body.op("Equal", body.op("Cast", body.operand(4), to=TensorProto.INT32), zero)
    low = body.op("Where", shut, lowest, body.number(0.0))
    low = body.op("Unsqueeze", low, body.ints(1, 2) if mask.rank == 2 else body.ints(1))
    return body.op("Add", bias, low) if bias else low


def rotary_embedding(body: Body) -> None:
    """Operands in another order than ONNX has them, and positions that may be given by the first one."""
    body.only("num_heads", "rotary_embedding_dim", "interleaved", "is_packed_batching", "scale")
    x, positions, cosines = body.type(0), body.operand(1), body.type(2)
    if body.attribute("is_packed_batching", 0) or body.attribute("scale", 1.0) != 1:
        raise Unsupported("packed batches, or a scale")
    batch, length = x.shape[0], x.shape[-2]
    width = body.attribute("rotary_embedding_dim", 0)
    heads = body.attribute("num_heads", 0)
    if not all(isinstance(dim, int) for dim in (*x.shape, *cosines.shape)) or (width and not heads and x.rank == 3):
        raise Unsupported(f"x {x} with caches {cosines}, whose heads are not known", "fix sizes with --dim or --shape")
    if x.rank == 3 and not heads:
        heads = int(str(x.shape[2])) // (2 * int(str(cosines.shape[1])))
    if body.type(1).count == 1 and body.type(1).rank == 1:
        places = body.constant(np.arange(int(str(length)), dtype=np.int64).reshape(1, -1))
        shape = body.ints(int(str(batch)), int(str(length)))
        positions = body.op("Expand", body.op("Add", positions, places), shape)
    body.opset = 23
    attributes = {"interleaved": body.attribute("interleaved", 0), "rotary_embedding_dim": width, "num_heads": heads}
    body.give(0, body.op("RotaryEmbedding", body.operand(0), body.operand(2), body.operand(3), positions, **attributes))
