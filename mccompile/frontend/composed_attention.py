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
    if body.has(6) or (body.has(4) and body.has(5)):
        raise Unsupported("a past in a buffer of fixed length, or with a bias of the scores")
    projected = body.op("MatMul", body.operand(0), body.operand(1))
    if body.has(2):
        projected = body.op("Add", projected, body.operand(2))
    _mix(body, projected, 3, past=4, bias=5)


def quantized_attention(body: Body) -> None:
    """The same where operands and weights are integers."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value")
    total = body.op("MatMulInteger", body.operand(0), body.operand(1), body.operand(6), body.operand(7))
    scales = body.op("Mul", body.operand(3), body.operand(4))
    _mix(body, body.op("Add", body.op("Mul", body.as_float(total), scales), body.operand(2)), 5, past=8)


def _mix(body: Body, projected: str, mask: int, past: int, bias: int | None = None) -> None:
    """What follows on the projection; mask, past and bias are operands."""
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
    query, key, value = (
        _cut(body, name, (batch, length, heads, width // heads))
        for name, width in zip((parts, f"{parts}_1", f"{parts}_2"), widths, strict=True)
    )
    before = 0
    if body.has(past):
        known = body.type(past).shape[3]
        if not isinstance(known, int):
            raise Unsupported("a past whose length is known only at run time", "fix it with --dim or --shape")
        before = known
        key, value = (
            body.op("Concat", body.op("Gather", body.operand(past), body.index(number), axis=0), new, axis=2)
            for number, new in enumerate((key, value))
        )
    if body.wants(1):
        sides = [body.op("Unsqueeze", side, body.ints(0)) for side in (key, value)]
        body.give(1, body.op("Concat", *sides, axis=0))
    scale = body.attribute("scale", 0.0) or (widths[0] // heads) ** -0.5
    products = body.op("MatMul", query, body.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = body.op("Mul", products, body.number(scale))
    if bias is not None and body.has(bias):
        scores = body.op("Add", scores, body.operand(bias))
    scores = _masked(body, scores, batch, length, before, mask)
    mixed = body.op("MatMul", body.op("Softmax", scores, axis=-1), value)
    back = body.op("Transpose", mixed, perm=[0, 2, 1, 3])
    body.give(0, body.op("Reshape", back, body.ints(batch, length, widths[2])))


def _cut(body: Body, name: str, shape: tuple[int, int, int, int]) -> str:
    """Channels cut into heads, which go before the tokens."""
    return body.op("Transpose", body.op("Reshape", name, body.ints(*shape)), perm=[0, 2, 1, 3])


def _masked(body: Body, scores: str, batch: int, length: int, before: int, operand: int) -> str:
    """`before` keys come before those of this run's tokens."""
    lowest = body.number(body.attribute("mask_filter_value", -10000.0))
    total = before + length
    if body.attribute("unidirectional", 0):
        later = np.triu(np.ones((length, total), np.bool_), 1 + before)
        scores = body.op("Where", body.constant(later), body.number(float(np.finfo(np.float32).min)), scores)
    if not body.has(operand):
        return scores
    shape = body.type(operand).shape
    if shape in ((batch, total), (batch, length, total)):
        to = (batch, 1, 1, total) if len(shape) == 2 else (batch, 1, length, total)
        mask = body.op("Reshape", body.operand(operand), body.ints(*to))
        outside = body.op("LessOrEqual", mask, body.constant(np.array(0, np.int32)))
    elif shape in ((batch, 1), (1, 1)):  # the same for all keys of a batch, so that softmax does not see it
        return scores
    elif shape in ((batch,), (2 * batch,)):
        places = body.constant(np.arange(total, dtype=np.int32).reshape(1, 1, 1, total))
        limits = body.op("Reshape", body.operand(operand), body.ints(-1, batch, 1, 1, 1))
        outside = body.op("GreaterOrEqual", places, body.op("Gather", limits, body.index(0), axis=0))
        if shape == (2 * batch,):
            before_first = body.op("Less", places, body.op("Gather", limits, body.index(1), axis=0))
            outside = body.op("Or", outside, before_first)
    else:
        raise Unsupported(f"a mask of shape {body.type(operand)}")
    return body.op("Add", scores, body.op("Where", outside, lowest, body.number(0.0)))


def multi_head_attention(body: Body) -> None:
    """Queries, keys and values are operands of their own."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value")
    heads, causal = int(body.attribute("num_heads", 0)), int(body.attribute("unidirectional", 0))
    if not (body.has(1) and body.has(2)) or body.type(0).rank != 3 or heads < 1:
        raise Unsupported("queries, keys and values that are packed into one operand")
    if body.has(8) or body.has(9) or (causal and body.has(6)):
        raise Unsupported("a past in a buffer, or one before queries that see what is before them only")
    body.opset = 23
    sides = [body.operand(i) for i in range(3)]
    for number in (1, 2):
        if body.type(number).rank == 4:  # cut into heads already, as those of an encoder are
            if body.has(3):
                raise Unsupported("a bias of keys that are cut into heads already")
            turned = body.op("Transpose", sides[number], perm=[0, 2, 1, 3])
            sides[number] = body.op("Reshape", turned, body.ints(0, 0, -1))
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
    wanted = 3 if (body.wants(1) or body.wants(2)) and body.has(6) else 1
    for number in (1, 2):
        if wanted == 1 and body.wants(number):  # there is no past: just those of this run
            body.give(number, _cut(body, sides[number], (0, 0, heads, -1)))
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
    lowest = body.number(body.attribute("mask_filter_value", -10000.0))
    given = body.op("Cast", body.operand(4), to=TensorProto.INT32)
    keys = body.type(1).shape[2 if body.type(1).rank == 4 else 1]
    if mask.rank in (2, 3):
        given = body.op("Unsqueeze", given, body.ints(1, 2) if mask.rank == 2 else body.ints(1))
        shut = body.op("LessOrEqual", given, body.constant(np.array(0, np.int32)))
    elif mask.shape == body.type(0).shape[:1] and isinstance(keys, int) and not body.has(6):
        places = body.constant(np.arange(keys, dtype=np.int32))
        shut = body.op("GreaterOrEqual", places, body.op("Unsqueeze", given, body.ints(1, 2, 3)))
    else:
        raise Unsupported(f"a mask of shape {mask}")
    low = body.op("Where", shut, lowest, body.number(0.0))
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
