"""The attention operators of onnxruntime's domain, decomposed: the projections of one matrix as products and a
softmax, separate operands as ONNX's Attention."""

from __future__ import annotations

from functools import reduce

import numpy as np
from onnx import TensorProto

from ..graph.ir import Invalid, Unsupported
from .composed_body import Body, Size
from .composed_pieces import FIX, channels_of, heads_of, join_heads, plus, scores_of, split_heads

# What asks for what is not done here; how much is rotated means nothing where nothing is.
_OFF = ("do_rotary", "past_present_share_buffer")
_ROTATED = "rotary_embedding_dim"
_LOWEST = float(np.finfo(np.float32).min)


def attention(body: Body) -> None:
    """Self-attention with the three projections in one matrix."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value", "qkv_hidden_sizes", _ROTATED, off=_OFF)
    if body.has(6) or (body.has(4) and body.has(5)):
        raise Unsupported("a past in a buffer of fixed length, or with a bias of the scores")
    projected = plus(body, body.op("MatMul", body.operand(0), body.operand(1)), 2)
    _mix(body, projected, 3, past=4, bias=5)


def quantized_attention(body: Body) -> None:
    """The same where operands and weights are integers. Nothing is rotated, whatever `do_rotary` says."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value", "do_rotary", off=_OFF)
    total = body.op("MatMulInteger", body.operand(0), body.operand(1), body.operand(6), body.operand(7))
    scales = body.op("Mul", body.operand(3), body.operand(4))
    _mix(body, body.op("Add", body.op("Mul", body.as_float(total), scales), body.operand(2)), 5, past=8)


def _mix(body: Body, projected: str, mask: int, past: int, bias: int | None = None) -> None:
    """What follows on the projection; mask, past and bias are operands."""
    heads, (hidden,) = heads_of(body), channels_of(body.type(1).shape[1])
    length = body.size(0, 1)
    widths = _widths(heads, hidden, tuple(body.attribute("qkv_hidden_sizes", ())))
    parts = body.op("Split", projected, body.ints(*widths), axis=2, outs=3)
    query, key, value = (
        split_heads(body, name, heads, width // heads)
        for name, width in zip((parts, f"{parts}_1", f"{parts}_2"), widths, strict=True)
    )
    before: Size = 0
    if body.has(past):
        before = body.size(past, 3)
        key, value = (
            body.op("Concat", body.op("Gather", body.operand(past), body.index(number), axis=0), new, axis=2)
            for number, new in enumerate((key, value))
        )
    if body.wants(1):
        kept = key if widths[1] == widths[2] else _as_wide(body, key, value)
        sides = [body.op("Unsqueeze", side, body.ints(0)) for side in (kept, value)]
        body.give(1, body.op("Concat", *sides, axis=0))
    scores = scores_of(body, query, body.op("Transpose", key, perm=[0, 1, 3, 2]), widths[0] // heads)
    scores = scores if bias is None else plus(body, scores, bias)
    if body.attribute("unidirectional", 0):
        scores = body.op("Where", _later(body, length, before, length), body.number(_LOWEST), scores)
    if body.has(mask):
        outside = _outside(body, mask, body.sum(before, length))
        low = body.number(body.attribute("mask_filter_value", -10000.0))
        scores = body.op("Add", scores, body.op("Where", outside, low, body.number(0.0))) if outside else scores
    mixed = body.op("MatMul", body.op("Softmax", scores, axis=-1), value)
    body.give(0, join_heads(body, mixed, widths[2]))


def _as_wide(body: Body, key: str, value: str) -> str:
    """Keys in the room of values, one after the other as onnxruntime leaves them there; what is left of it is 0."""
    shape, whole = body.op("Shape", value), body.ints(-1)
    room = body.op("Reshape", body.op("ConstantOfShape", shape), whole)
    both = body.op("Concat", body.op("Reshape", key, whole), room, axis=0)
    return body.op("Reshape", body.op("Slice", both, body.ints(0), body.op("Shape", room)), shape)


def _widths(heads: int, hidden: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The channels of queries, keys and values in what is `hidden` wide."""
    if not sizes:
        if not hidden or hidden % (3 * heads):
            raise Invalid(f"the weights have {hidden} columns, {heads} heads take a multiple of {3 * heads}")
        return (hidden // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != hidden or sizes[0] != sizes[1]:
        raise Invalid(f"qkv_hidden_sizes {sizes} are not those of queries, keys and values in {hidden} columns")
    if any(size < 1 or size % heads for size in sizes):
        raise Invalid(f"qkv_hidden_sizes {sizes} do not divide by {heads} heads")
    return sizes


def _later(body: Body, length: Size, before: Size, keys: Size) -> str:
    """Which keys come after each token of this run, which `before` keys come before and which brings so many `keys`.
    The last token sees all of them, as in onnxruntime, also where there are more keys than tokens."""
    if isinstance(length, int) and isinstance(before, int) and isinstance(keys, int):
        later = np.triu(np.ones((length, before + keys), np.bool_), 1 + before)
        later[-1:] = False
        return body.constant(later)
    own = body.op("Unsqueeze", body.places(length, before), body.ints(1))
    later_ones = body.op("Greater", body.places(body.sum(before, keys)), own)
    if keys == length:
        return later_ones
    ends = body.op("Less", body.op("Add", own, body.ints(1)), body.sizes(body.sum(before, length)))
    return body.op("And", later_ones, ends)


def _outside(body: Body, mask: int, total: Size) -> str:
    """Which keys a mask takes out, as it is added to the scores; empty where it is the same for all keys, so that
    softmax does not see it."""
    given, batch = body.type(mask), body.type(0).shape[0]
    width = given.shape[-1] if given.rank else 0
    none = body.constant(np.array(0, np.int32))
    narrow = body.op("Cast", body.operand(mask), to=TensorProto.INT32)
    if given.rank in (2, 3) and (width == total or not (isinstance(width, int) and isinstance(total, int))):
        axes = body.ints(1, 2) if given.rank == 2 else body.ints(1)
        return body.op("LessOrEqual", body.op("Unsqueeze", narrow, axes), none)
    if given.rank == 2 and width == 1:
        return ""
    if given.shape not in ((batch,), (batch * 2,), (batch * 3 + 2,)):
        raise Unsupported(f"a mask of shape {given}", "export the model with a mask of one number for each key")
    places = body.op("Cast", body.places(total), to=TensorProto.INT32)
    samples = body.size(0, 0)
    ends = body.op("Slice", narrow, body.ints(0), body.sizes(samples), body.ints(0))
    outside = body.op("GreaterOrEqual", places, body.op("Unsqueeze", ends, body.ints(1, 2, 3)))
    if given.shape == (batch * 2,):
        starts = body.op("Slice", narrow, body.sizes(samples), body.sizes(body.sum(samples, samples)), body.ints(0))
        before = body.op("Less", places, body.op("Unsqueeze", starts, body.ints(1, 2, 3)))
        outside = body.op("Or", outside, before)
    return outside


def multi_head_attention(body: Body) -> None:
    """Queries, keys and values are operands of their own, or some of them packed into one."""
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value")
    heads, causal = heads_of(body), int(body.attribute("unidirectional", 0))
    body.opset = 23
    sides = biased(body, _sides(body))
    attributes: dict[str, int | float] = {"q_num_heads": heads, "kv_num_heads": heads}
    if not body.has(6) and _as_many_keys(body):
        attributes["is_causal"] = causal
    scale = body.attribute("scale", 0.0)
    if scale:
        attributes["scale"] = scale
    wanted = 3 if (body.wants(1) or body.wants(2)) and body.has(6) else 1
    for number in (1, 2):
        if wanted == 1 and body.wants(number):  # there is no past: just those of this run
            body.give(number, split_heads(body, sides[number], heads))
    if body.wants(3):
        if causal:
            raise Unsupported("scores (result 3) of tokens that see none behind them", "leave that result out")
        wanted, attributes["qk_matmul_output_mode"] = 4, 1  # with what is added to them
    made = body.op("Attention", *sides, _bias(body), body.operand(6), body.operand(7), outs=wanted, **attributes)
    body.give(0, made)
    for number in range(1, wanted):
        if number == 3 or body.has(6):
            body.give(number, f"{made}_{number}")


def biased(body: Body, sides: list[str]) -> list[str]:
    """Queries, keys and values with the bias, if there is one; keys that are cut into heads have theirs already."""
    if not body.has(3):
        return sides
    wide = body.type(3).shape[0]
    widths = [body.type(i).shape[2] if body.has(i) and body.type(i).rank == 3 else None for i in range(3)]
    each = widths[0] if isinstance(widths[0], int) else wide // 3
    first, last = channels_of(each, widths[2] if isinstance(widths[2], int) else each)
    parts = body.op("Split", body.operand(3), body.ints(first, first, last), axis=0, outs=3)
    ready = [body.has(i) and body.type(i).rank == 4 for i in range(3)]
    return [
        side if done else body.op("Add", side, name)
        for side, name, done in zip(sides, (parts, f"{parts}_1", f"{parts}_2"), ready, strict=True)
    ]


def _sides(body: Body) -> list[str]:
    """Queries, keys and values, of three axes each."""
    first, rank = body.operand(0), body.type(0).rank
    if not body.has(1) and rank == 5:  # all three side by side for every head
        return _unpacked(body, first, 3)
    if body.has(1) and not body.has(2) and rank == 3 and body.type(1).rank == 5:
        return [first, *_unpacked(body, body.operand(1), 2)]
    if not (body.has(1) and body.has(2)) or rank != 3:
        raise Unsupported(f"a query {body.type(0)} without keys or values", "export the model with all three apart")
    sides = [first]
    for number in (1, 2):
        side = body.operand(number)
        if body.type(number).rank == 4:  # cut into heads already, as those of an encoder are
            side = join_heads(body, side)
        sides.append(side)
    return sides


def _unpacked(body: Body, packed: str, count: int) -> list[str]:
    parts = (body.op("Gather", packed, body.index(number), axis=3) for number in range(count))
    return [body.op("Reshape", part, body.ints(0, 0, -1)) for part in parts]


def _bias(body: Body) -> str:
    """What is added to the scores: the bias, and low numbers where a token does not see a key; empty where nothing
    is."""
    parts = [body.operand(5)] if body.has(5) else []
    length, before = body.size(0, 1), body.size(6, 2) if body.has(6) else 0
    keys = length if _as_many_keys(body) else body.size(*_axis_of_keys(body))
    low = body.number(body.attribute("mask_filter_value", -10000.0))
    if body.has(4):
        outside = _outside(body, 4, body.sum(before, keys))
        parts += [body.op("Where", outside, low, body.number(0.0))] if outside else []
    if body.attribute("unidirectional", 0) and (body.has(6) or keys != length):
        later = _later(body, length, before, keys)
        parts.append(body.op("Where", later, body.number(_LOWEST), body.number(0.0)))
    return reduce(lambda a, b: body.op("Add", a, b), parts) if parts else ""


def _axis_of_keys(body: Body) -> tuple[int, int]:
    """The operand and its axis along which keys of this run lie."""
    return (1, 2 if body.type(1).rank == 4 else 1) if body.has(1) else (0, 1)


def _as_many_keys(body: Body) -> bool:
    """Does this run bring as many keys as queries?"""
    operand, axis = _axis_of_keys(body)
    return body.type(operand).shape[axis] == body.type(0).shape[1]


def rotary_embedding(body: Body) -> None:
    """Operands in another order than ONNX has them, and positions that may be given by the first one. Neither a scale
    nor packed batches change anything in onnxruntime."""
    body.only("num_heads", "rotary_embedding_dim", "interleaved", "is_packed_batching", "scale")
    x, positions, cosines = body.type(0), body.operand(1), body.type(2)
    width = body.attribute("rotary_embedding_dim", 0)
    heads = body.attribute("num_heads", 0)
    if x.rank == 3 and not heads:
        channels, half = x.shape[2], cosines.shape[1]
        if width or not isinstance(channels, int) or not isinstance(half, int):
            raise Unsupported(f"x {x} with caches {cosines}, whose heads are not known", FIX)
        heads = channels // (2 * half)
    if body.type(1).count == 1 and body.type(1).rank == 1:
        places = body.op("Unsqueeze", body.places(body.size(0, x.rank - 2 if x.rank == 4 else 1)), body.ints(0))
        shape = body.sizes(body.size(0, 0), body.size(0, x.rank - 2 if x.rank == 4 else 1))
        positions = body.op("Expand", body.op("Add", positions, places), shape)
    body.opset = 23
    attributes = {"interleaved": body.attribute("interleaved", 0), "rotary_embedding_dim": width, "num_heads": heads}
    body.give(0, body.op("RotaryEmbedding", body.operand(0), body.operand(2), body.operand(3), positions, **attributes))
