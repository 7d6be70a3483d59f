"""onnxruntime's GroupQueryAttention, written out: several heads of queries share one of keys and values, which lie in a
cache that the new ones are written into.

Invariant: the cache is as long as `past_key` or the total length, whatever is more; a batch whose `seqlens_k` says that
less of it is taken writes and sees no more than that. What lies behind is 0.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..base.dtypes import i64
from ..graph.ir import Invalid, Unsupported
from .composed_body import Body

(QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, POSITIONS, BIAS, SINK) = range(12)
_LATER = ("scales of a quantized cache", "the same", "norms of queries", "norms of keys")
_FIX = "fix sizes with --dim or --shape"


def group_query_attention(body: Body) -> None:
    body.only(
        "num_heads", "kv_num_heads", "scale", "softcap", "do_rotary", "rotary_interleaved", "local_window_size",
        "smooth_softmax", "causal", "qk_output", "k_quant_type", "v_quant_type", "kv_cache_bit_width",
        "sliding_window_cache", "qk_norm_epsilon",
    )  # fmt: skip
    for number, what in enumerate(_LATER, SINK + 1):
        if body.has(number):
            raise Unsupported(f"{what} (operand {number})", "export the model without them")
    if not body.attribute("causal", 1) or body.attribute("sliding_window_cache", 0):
        raise Unsupported("attention to what comes later, or a cache that rows are driven out of")
    body.opset = 24
    heads, groups = int(body.attribute("num_heads", 0)), int(body.attribute("kv_num_heads", 0))
    if heads < 1 or groups < 1 or heads % groups:
        raise Invalid(f"{heads} heads of queries do not share {groups} of keys and values")
    batch, length, width = _sizes(body, heads, groups)
    query, key, value = _sides(body, (heads, groups), (batch, length, width))
    past = int(str(body.type(PAST_KEY).shape[2])) if body.has(PAST_KEY) else 0
    total = _total(body)
    before = body.ints(*[0] * batch)  # how many keys of each sample come before those of this run
    if length != total:
        last = body.op("Cast", body.op("Reshape", body.operand(LENGTHS), body.ints(batch)), to=TensorProto.INT64)
        before = body.op("Add", last, body.index(1 - length))
    if body.attribute("do_rotary", 0):
        query, key = (_rotated(body, side, before, batch, length) for side in (query, key))
    room = max(past, total)
    keys = body.constant(np.arange(room, dtype=np.int64).reshape(1, 1, room, 1))
    end = body.op("Add", body.op("Reshape", before, body.ints(batch, 1, 1, 1)), body.index(length))
    taken = body.op("Less", keys, end)
    caches = []
    for number, new in ((0, key), (1, value)):
        cache = _cache(body, number, (batch, groups, past, width), room)
        written = body.op("TensorScatter", cache, new, before, axis=2)
        caches.append(written if length == room else body.op("Where", taken, written, body.number(0.0)))
        if body.wants(1 + number):
            body.give(1 + number, caches[-1])
    seen = _seen(body, before, batch, length, room)
    group = heads // groups
    queries = body.op("Reshape", query, body.ints(batch, groups, group * length, width))
    scores = body.op("MatMul", queries, body.op("Transpose", caches[0], perm=[0, 1, 3, 2]))
    scores = body.op("Mul", scores, body.number(body.attribute("scale", 0.0) or width**-0.5))
    scores = body.op("Reshape", scores, body.ints(batch, heads, length, room))
    shares = _shares(body, scores, seen, (batch, heads, length, room), total)
    shares = body.op("Reshape", shares, body.ints(batch, groups, group * length, room))
    mixed = body.op("Reshape", body.op("MatMul", shares, caches[1]), body.ints(batch, heads, length, width))
    back = body.op("Transpose", mixed, perm=[0, 2, 1, 3])
    body.give(0, body.op("Reshape", back, body.ints(batch, length, heads * width)))


def _sizes(body: Body, heads: int, groups: int) -> tuple[int, int, int]:
    """Samples, tokens of this run, channels of a head."""
    query = body.type(QUERY)
    sizes = [*query.shape, *(body.type(PAST_KEY).shape if body.has(PAST_KEY) else ())]
    if query.rank != 3 or not all(isinstance(dim, int) for dim in sizes):
        raise Unsupported(f"queries {query} after a past, whose sizes are not all known", _FIX)
    batch, length, channels = (int(str(dim)) for dim in query.shape)
    return batch, length, channels // (heads if body.has(KEY) else heads + 2 * groups)


def _sides(body: Body, heads: tuple[int, int], sizes: tuple[int, int, int]) -> tuple[str, str, str]:
    """Queries, keys and values cut into heads, which go before the tokens."""
    batch, length, width = sizes
    names = (body.operand(QUERY), body.operand(KEY), body.operand(VALUE))
    counts = (heads[0], heads[1], heads[1])
    if not body.has(KEY):  # all three in one operand
        parts = body.op("Split", names[0], body.ints(*(count * width for count in counts)), axis=2, outs=3)
        names = (parts, f"{parts}_1", f"{parts}_2")
    query, key, value = (
        body.op("Transpose", body.op("Reshape", name, body.ints(batch, length, count, width)), perm=[0, 2, 1, 3])
        for name, count in zip(names, counts, strict=True)
    )
    return query, key, value


def _total(body: Body) -> int:
    """The most tokens that a sample has with those of this run."""
    operand = body.operands[TOTAL] if body.has(TOTAL) else None
    value = None if operand is None else operand.fact.value
    first = None if value is None else value.reshape(-1)[0]
    if not isinstance(first, int | np.integer):
        why = f"total_sequence_length is {'not known' if first is None else first} before the model runs"
        raise Unsupported(why, "fix the length of the attention mask with --dim or --shape")
    return int(first)


def _rotated(body: Body, side: str, before: str, batch: int, length: int) -> str:
    places = body.constant(np.arange(length, dtype=np.int64).reshape(1, length))
    positions = body.op("Add", body.op("Reshape", before, body.ints(batch, 1)), places)
    if body.has(POSITIONS):
        if body.type(POSITIONS).dtype is not i64:
            raise Invalid(f"positions are {body.type(POSITIONS)}, not {i64}")
        positions = body.op("Reshape", body.operand(POSITIONS), body.ints(batch, length))
    interleaved = body.attribute("rotary_interleaved", 0)
    caches = (body.operand(COSINES), body.operand(SINES))
    return body.op("RotaryEmbedding", side, *caches, positions, interleaved=interleaved)


def _cache(body: Body, number: int, shape: tuple[int, int, int, int], room: int) -> str:
    """Keys or values of the past, with room for those of this run."""
    batch, groups, past, width = shape
    blank = np.zeros((batch, groups, room - past, width), np.float32)
    if not past:
        return body.constant(blank)
    given = body.operand(PAST_KEY + number)
    return body.op("Concat", given, body.constant(blank), axis=2) if room > past else given


def _seen(body: Body, before: str, batch: int, length: int, room: int) -> str:
    """Which keys each token sees: those up to its own, and where there is a window only the last ones."""
    tokens = body.constant(np.arange(length, dtype=np.int64).reshape(1, 1, length, 1))
    own = body.op("Add", body.op("Reshape", before, body.ints(batch, 1, 1, 1)), tokens)
    keys = body.constant(np.arange(room, dtype=np.int64).reshape(1, 1, 1, room))
    seen = body.op("LessOrEqual", keys, own)
    window = int(body.attribute("local_window_size", -1))
    if window < 0:
        return seen
    return body.op("And", seen, body.op("Greater", keys, body.op("Sub", own, body.index(window))))


def _shares(body: Body, scores: str, seen: str, shape: tuple[int, int, int, int], total: int) -> str:
    """The softmax over the keys that are seen."""
    batch, heads, length, room = shape
    cap = body.attribute("softcap", 0.0)
    if cap:
        scores = body.op("Mul", body.op("Tanh", body.op("Div", scores, body.number(cap))), body.number(cap))
    if body.has(BIAS):
        bias = body.operand(BIAS)
        if body.type(BIAS).shape[3] != room:
            bias = body.op("Pad", bias, body.ints(0, 0, 0, 0, 0, 0, 0, room - total))
        scores = body.op("Add", scores, bias)
    scores = body.op("Where", seen, scores, body.number(float("-inf")))
    if not body.has(SINK) and not body.attribute("smooth_softmax", 0):
        return body.op("Softmax", scores, axis=-1)
    sink = body.op("Reshape", body.operand(SINK), body.ints(1, heads, 1, 1)) if body.has(SINK) else body.number(0.0)
    column = body.op("Expand", sink, body.ints(batch, heads, length, 1))  # takes a share that goes to no key
    shares = body.op("Softmax", body.op("Concat", scores, column, axis=3), axis=-1)
    return body.op("Slice", shares, body.ints(0), body.ints(room), body.ints(3))
