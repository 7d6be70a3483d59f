"""onnxruntime's GroupQueryAttention, decomposed: several heads of queries share one of keys and values, which lie in a
cache that the new ones are written into.

Invariant: the cache is as long as `past_key` or the total length, whatever is more; a batch whose `seqlens_k` says that
less of it is taken writes and sees no more than that. What lies behind is 0. A total length that is known only at run
time is that of a cache that stays as long as it is, unless the file declares a longer one; another ends the run.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..base.dims import Dim, upper
from ..base.dtypes import i64
from ..graph.ir import Invalid, Unsupported
from ..ops.slots import SlotPosition
from .composed_body import Body, Size
from .composed_pieces import FIX, join_heads, scores_of, split_heads

(QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, POSITIONS, BIAS, SINK) = range(12)
_SCALES = (12, 13)
_NORMS = (14, 15)  # of queries, of keys


def group_query_attention(body: Body) -> None:
    body.only(
        "num_heads", "kv_num_heads", "scale", "softcap", "do_rotary", "rotary_interleaved", "local_window_size",
        "smooth_softmax", "causal", "qk_output", "k_quant_type", "v_quant_type", "kv_cache_bit_width",
        "sliding_window_cache", "qk_norm_epsilon",
    )  # fmt: skip
    if any(body.has(number) for number in _SCALES):
        raise Unsupported("scales of a quantized cache", "export the model without them")
    if not body.attribute("causal", 1) or body.attribute("sliding_window_cache", 0):
        raise Unsupported("attention to later tokens, or a cache that drops old rows")
    if not body.has(LENGTHS):
        raise Invalid("seqlens_k (operand 5) is missing")
    body.opset = 24
    heads, groups = int(body.attribute("num_heads", 0)), int(body.attribute("kv_num_heads", 0))
    if heads < 1 or groups < 1 or heads % groups:
        raise Invalid(f"{heads} heads of queries do not share {groups} of keys and values")
    width = _width(body, heads, groups)
    query, key, value = _sides(body, (heads, groups), width)
    query, key = _normalized(body, query, key)
    batch, length = body.size(QUERY, 0), body.size(QUERY, 1)
    past: Size = body.size(PAST_KEY, 2) if body.has(PAST_KEY) else 0
    room = _room(body, past, length)
    before = body.op("Expand", body.index(0), body.sizes(batch))  # keys of each sample before those of this run
    grows = isinstance(past, str) and _is_all(body)
    if grows:
        before = body.op("Expand", body.sizes(past), body.sizes(batch))
    elif length != room:
        last = body.op("Cast", body.op("Reshape", body.operand(LENGTHS), body.ints(-1)), to=TensorProto.INT64)
        start = body.op("Sub", body.index(1), body.sizes(length)) if isinstance(length, str) else body.index(1 - length)
        before = body.op("Add", last, start)
        if length != 1:  # a sample of a prompt may have fewer tokens than the longest
            before = body.op("Max", before, body.index(0))
    if body.attribute("do_rotary", 0):
        if not (body.has(COSINES) and body.has(SINES)):
            raise Invalid("do_rotary is 1, and cos_cache or sin_cache (operands 7 and 8) is missing")
        query, key = (_rotated(body, side, before, length, width) for side in (query, key))
    places = _keys(body, past, room)
    end = body.op("Add", body.op("Reshape", before, body.ints(-1, 1, 1, 1)), body.sizes(length))
    taken = body.op("Less", body.op("Unsqueeze", places, body.ints(0, 1, 3)), end)
    caches = []
    for number, new in ((0, key), (1, value)):
        if grows:
            stored, whole = body.continued(PAST_KEY + number, new, 2)
        else:
            cache = _cache(body, number, body.sizes(batch, groups, _rest(body, room, past, length), width), room)
            written = body.op("TensorScatter", cache, new, before, axis=2)
            whole = written if length == room else body.op("Where", taken, written, body.number(0.0))
            stored = ""
        caches.append(whole)
        if body.wants(1 + number):
            body.give(1 + number, stored or whole, is_float=not stored)
    seen = _seen(body, before, length, places)
    queries, (keys, values) = query, caches
    if heads != groups:  # heads of a group share keys and values, which are not repeated
        queries = body.op("Reshape", query, body.ints(0, groups, heads // groups, -1, width))
        keys, values = (body.op("Unsqueeze", cache, body.ints(2)) for cache in caches)
    turned = [0, 1, 3, 2] if heads == groups else [0, 1, 2, 4, 3]
    scores = scores_of(body, queries, body.op("Transpose", keys, perm=turned), width)
    by_head = body.has(BIAS) or body.has(SINK) or body.attribute("smooth_softmax", 0) or body.wants(3)
    if heads != groups and by_head:
        scores = body.op("Reshape", scores, body.sizes(0, heads, length, room))
    elif heads != groups:
        seen = body.op("Unsqueeze", seen, body.ints(1))
    scores = _moved(body, scores, room)
    shares = _shares(body, scores, seen, (batch, heads, length))
    if body.wants(3):
        _give_scores(body, scores, shares, seen, room)
    if heads != groups and by_head:
        shares = body.op("Reshape", shares, body.sizes(0, groups, heads // groups, -1, room))
    mixed = body.op("MatMul", shares, values)
    if heads != groups:
        mixed = body.op("Reshape", mixed, body.sizes(0, heads, length, width))
    body.give(0, join_heads(body, mixed))


def _width(body: Body, heads: int, groups: int) -> int:
    """The channels of a head."""
    query = body.type(QUERY)
    channels = query.shape[2] if query.rank == 3 else None
    if not isinstance(channels, int):
        raise Unsupported(f"queries {query}, whose channels are not known", FIX)
    parts = heads if body.has(KEY) else heads + 2 * groups
    if not channels or channels % parts:
        raise Invalid(f"queries of {channels} channels, a multiple of {parts} is needed")
    return channels // parts


def _room(body: Body, past: Size, length: Size) -> Size:
    """How long the cache is with what this run writes: as long as it was where that is enough."""
    total = _total(body)
    if isinstance(past, str):
        return body.sum(past, length)  # it grows by the tokens of each run
    if isinstance(total, int):
        return max(past, total)
    if not past:
        return length
    if total is None:
        said = [shape[2] for shape in body.declared[1:3] if shape is not None and len(shape) == 4]
        return max([past, *said])
    if upper(total) > past:
        raise Unsupported(f"a total length of {total}, for which a cache of {past} may be too short", FIX)
    return past


def _keys(body: Body, past: Size, room: Size) -> str:
    """The places of the cache. The total length has to be that of a cache that grows, and no more than there is room
    for in another; a run where it is not stops."""
    total = _total(body)
    if total == room or (total is not None and isinstance(past, int) and past):
        return body.places(room)
    said = body.op("Reshape", body.op("Cast", body.operand(TOTAL), to=TensorProto.INT64), body.ints(1))
    if total is None:
        more = body.op("Sub", said, body.sizes(room))
        wrong = body.op("Max", more, body.ints(0)) if room == past else body.op("Abs", more)
        zero = body.op("SlotPosition", wrong, body.ints(1), domain=SlotPosition.domain)
        return body.op("Add", body.places(room), zero)
    return body.op("Reshape", body.places(said), body.sizes(room))


def _rest(body: Body, room: Size, past: Size, length: Size) -> Size:
    """How much the cache grows."""
    return room - past if isinstance(room, int) and isinstance(past, int) else length


def _sides(body: Body, heads: tuple[int, int], width: int) -> tuple[str, str, str]:
    """Queries, keys and values cut into heads, which go before the tokens."""
    names = (body.operand(QUERY), body.operand(KEY), body.operand(VALUE))
    counts = (heads[0], heads[1], heads[1])
    if not body.has(KEY):  # all three in one operand
        parts = body.op("Split", names[0], body.ints(*(count * width for count in counts)), axis=2, outs=3)
        names = (parts, f"{parts}_1", f"{parts}_2")
    query, key, value = (split_heads(body, *side, width) for side in zip(names, counts, strict=True))
    return query, key, value


def _normalized(body: Body, query: str, key: str) -> tuple[str, str]:
    """By heads, where there are weights for it."""
    if not any(body.has(number) for number in _NORMS):
        return query, key
    if not all(body.has(number) for number in _NORMS):
        raise Invalid("queries are normalized and keys are not, or the other way round")
    form = {"axis": -1, "epsilon": body.attribute("qk_norm_epsilon", 1e-6)}
    weights = [body.operand(number) for number in _NORMS]
    return body.op("RMSNormalization", query, weights[0], **form), body.op("RMSNormalization", key, weights[1], **form)


def _total(body: Body) -> Dim | None:
    """The most tokens that a sample has with those of this run; None where that is known only at run time."""
    if not body.has(TOTAL) or body.type(TOTAL).count != 1:
        raise Invalid("total_sequence_length is not one number")
    total = body.value(TOTAL)
    value = None if total is None else total.fact.value
    first = None if value is None else value.reshape(-1)[0]
    return int(first) if isinstance(first, np.integer) else first


def _is_all(body: Body) -> bool:
    """Is it known that each sample takes the whole of a cache that grows, and all that is new?"""
    lengths = body.value(LENGTHS)
    known = None if lengths is None else lengths.fact.value
    past, new = (body.type(number).shape[axis] for number, axis in ((PAST_KEY, 2), (QUERY, 1)))
    return known is not None and all(last + 1 == past + new for last in known.reshape(-1))


def _rotated(body: Body, side: str, before: str, length: Size, width: int) -> str:
    form = {"interleaved": body.attribute("rotary_interleaved", 0)}
    turned = body.type(COSINES).shape[1]
    if isinstance(turned, int) and 2 * turned < width:  # of each head only so many channels are turned
        form["rotary_embedding_dim"] = 2 * turned
    caches = (body.operand(COSINES), body.operand(SINES))
    return body.op("RotaryEmbedding", side, *caches, _positions(body, before, length), **form)


def _positions(body: Body, before: str, length: Size) -> str:
    """By which each token is turned. Of a prompt only the first of those that are given counts, and the others follow
    it, in all samples."""
    places = body.op("Unsqueeze", body.places(length), body.ints(0))
    if not body.has(POSITIONS):
        return body.op("Add", body.op("Unsqueeze", before, body.ints(1)), places)
    if body.type(POSITIONS).dtype is not i64:
        raise Invalid(f"positions are {body.type(POSITIONS)}, not {i64}")
    batch, total = body.size(POSITIONS, 0), _total(body)
    given = body.op("Reshape", body.operand(POSITIONS), body.sizes(batch, length))
    if batch == length == 1 or (total != length and isinstance(total, int) and isinstance(length, int)):
        return given
    first = body.op("Add", body.op("Gather", body.op("Reshape", given, body.ints(-1)), body.index(0)), places)
    if total == length or not body.has(PAST_KEY):
        return body.op("Expand", first, body.sizes(batch, length))
    whole = body.op("Cast", body.operand(TOTAL), to=TensorProto.INT64)
    is_prompt = body.op("Equal", body.op("Reshape", whole, body.ints(1)), body.sizes(length))
    return body.op("Where", is_prompt, first, given)


def _cache(body: Body, number: int, rest: str, room: Size) -> str:
    """Keys or values of the past, with room for those of this run."""
    if not body.has(PAST_KEY):
        return body.op("Expand", body.number(0.0), rest)
    given = body.operand(PAST_KEY + number)
    if room == body.type(PAST_KEY).shape[2]:
        return given
    return body.op("Concat", given, body.op("Expand", body.number(0.0), rest), axis=2)


def _seen(body: Body, before: str, length: Size, keys: str) -> str:
    """Which keys each token sees: those up to its own, and where there is a window only the last ones."""
    tokens = body.op("Unsqueeze", body.places(length), body.ints(0, 1, 3))
    own = body.op("Add", body.op("Reshape", before, body.ints(-1, 1, 1, 1)), tokens)
    keys = body.op("Unsqueeze", keys, body.ints(0, 1, 2))
    seen = body.op("LessOrEqual", keys, own)
    window = int(body.attribute("local_window_size", -1))
    if window < 0:
        return seen
    return body.op("And", seen, body.op("Greater", keys, body.op("Sub", own, body.index(window))))


def _moved(body: Body, scores: str, room: Size) -> str:
    """With their cap and their bias."""
    cap = body.attribute("softcap", 0.0)
    if cap:
        scores = body.op("Mul", body.op("Tanh", body.op("Div", scores, body.number(cap))), body.number(cap))
    if body.has(BIAS):
        bias = body.operand(BIAS)
        wide = body.type(BIAS).shape[3]
        if isinstance(wide, int) and isinstance(room, int) and wide != room:
            bias = body.op("Pad", bias, body.ints(0, 0, 0, 0, 0, 0, 0, room - wide))
        scores = body.op("Add", scores, bias)
    return scores


def _give_scores(body: Body, scores: str, shares: str, seen: str, room: Size) -> None:
    """Result 3: of the keys that are there, and 0 for those that are not seen."""
    which = body.attribute("qk_output", 0)
    if which not in (1, 2):
        raise Invalid(f"result 3 is asked for, and qk_output is {which}")
    made = shares if which == 2 else body.op("Where", seen, scores, body.number(0.0))
    total = _total(body)
    if total != room:
        if not isinstance(total, int):
            raise Unsupported(f"scores of {total} keys as a result, known only at run time", FIX)
        made = body.op("Slice", made, body.ints(0), body.ints(total), body.ints(3))
    body.give(3, made)


def _shares(body: Body, scores: str, seen: str, shape: tuple[Size, int, Size]) -> str:
    """The softmax over the keys that are seen."""
    batch, heads, length = shape
    scores = body.op("Where", seen, scores, body.number(float("-inf")))
    if not body.has(SINK) and not body.attribute("smooth_softmax", 0):
        return body.op("Softmax", scores, axis=-1)
    sink = body.op("Reshape", body.operand(SINK), body.ints(1, heads, 1, 1)) if body.has(SINK) else body.number(0.0)
    column = body.op("Expand", sink, body.sizes(batch, heads, length, 1))  # takes a share that goes to no key
    shares = body.op("Softmax", body.op("Concat", scores, column, axis=3), axis=-1)
    return body.op("Slice", shares, body.ints(0), body.ints(-1), body.ints(3))
