"""onnxruntime's attention over a past in buffers of fixed length, as decoders with beams have it: what a run adds is
written behind what is there, and each beam looks at the tokens that it came from.

Invariant: what lies in the buffers behind the tokens of a run stays as it was, and nothing looks at it.
"""

from __future__ import annotations

from onnx import TensorProto

from ..base.dtypes import i32
from ..graph.ir import Invalid, Unsupported
from . import composed_attention
from .composed_body import CONTRIB, Body, Size
from .composed_pieces import join_heads, scores_of, split_heads

(QUERY, KEY, VALUE, BIAS, MASK, SCORES, PAST_KEY, PAST_VALUE, LENGTH, SOURCES) = range(10)
_FIX = "export the model with a past that grows"


def multi_head_attention(body: Body) -> None:
    if body.has(LENGTH) and body.has(PAST_KEY):
        _buffered(body)
    else:  # of other keys, as those of an encoder, neither a length nor beams say anything
        body.ignore(LENGTH, SOURCES)
        composed_attention.multi_head_attention(body)


def decoder_masked(body: Body) -> None:
    """The same with operands in another order, for one token a run."""
    body.only("mask_filter_value", "num_heads", "output_qk", "past_present_share_buffer", "scale")
    if body.has(7) and body.has(5) and not body.attribute("past_present_share_buffer", 0):
        raise Invalid("it gives the length of the past, but past_present_share_buffer is 0")
    body.ignore(8)  # how many beams there are, as the operand that follows has it
    ins = [body.operand(index) for index in (0, 1, 2, 10, 3, 4, 5, 6, 7, 9)]
    outs = 4 if body.wants(3) else 3 if body.wants(1) or body.wants(2) else 1
    kept = body.picked("mask_filter_value", "num_heads", "scale")
    made = body.op("MultiHeadAttention", *ins, outs=outs, domain=CONTRIB, **kept)
    if outs == 4 and not body.has(5):
        body.nodes[-1].output[1] = body.nodes[-1].output[2] = ""
    body.give(0, made)
    for number in range(1, outs):
        if body.wants(number):
            body.give(number, f"{made}_{number}")


def _buffered(body: Body) -> None:
    body.only("num_heads", "unidirectional", "scale", "mask_filter_value")
    heads, width = int(body.attribute("num_heads", 0)), body.type(PAST_KEY).shape[3]
    ranks = [body.type(index).rank for index in (QUERY, KEY, VALUE) if body.has(index)]
    if ranks != [3, 3, 3] or body.wants(3):
        raise Unsupported("packed queries or scores as a result, with a past in a buffer of fixed length", _FIX)
    if heads < 1 or not isinstance(width, int) or body.type(LENGTH).dtype is not i32 or body.type(LENGTH).count != 1:
        raise Invalid(f"{heads} heads of {width} channels, with a length {body.type(LENGTH)}")
    body.opset = 24  # that has TensorScatter
    sides = composed_attention.biased(body, [body.operand(index) for index in (QUERY, KEY, VALUE)])
    query, key, value = (split_heads(body, side, heads) for side in sides)
    batch, length, room = body.size(QUERY, 0), body.size(QUERY, 1), body.size(PAST_KEY, 2)
    before = body.op("Reshape", body.op("Cast", body.operand(LENGTH), to=TensorProto.INT64), body.ints(1))
    starts = body.op("Expand", before, body.sizes(batch))
    caches = []
    for number, new in ((0, key), (1, value)):
        caches.append(body.op("TensorScatter", body.operand(PAST_KEY + number), new, starts, axis=2))
        if body.wants(1 + number):
            body.give(1 + number, caches[-1])
    if body.has(SOURCES) and body.type(SOURCES).shape[1] != 1:
        places = _sources(body, before, batch, room)
        caches = [_picked(body, cache, places) for cache in caches]
    scores = scores_of(body, query, body.op("Transpose", caches[0], perm=[0, 1, 3, 2]), width)
    if body.has(SCORES):
        scores = body.op("Add", scores, _as_long(body, SCORES, body.operand(SCORES), room))
    if body.has(MASK):
        if body.type(MASK).rank != 2:
            raise Unsupported(f"a mask {body.type(MASK)} beside a past in a buffer of fixed length", _FIX)
        taken = body.op("Greater", body.op("Cast", body.operand(MASK), to=TensorProto.FLOAT), body.number(0.0))
        low = body.number(body.attribute("mask_filter_value", -10000.0))
        less = _as_long(body, MASK, body.op("Where", taken, body.number(0.0), low), room)
        scores = body.op("Add", scores, body.op("Unsqueeze", less, body.ints(1, 2)))
    own = body.op("Unsqueeze", body.places(length), body.ints(1))
    last = body.op("Add", own, before) if body.attribute("unidirectional", 0) else _last(body, before, length)
    seen = body.op("LessOrEqual", body.places(room), last)
    scores = body.op("Where", seen, scores, body.number(float("-inf")))
    mixed = body.op("MatMul", body.op("Softmax", scores, axis=-1), caches[1])
    body.give(0, join_heads(body, mixed))


def _as_long(body: Body, index: int, name: str, room: Size) -> str:
    """What is given for each token up to now, with 0 for the rest of the buffer."""
    wide, rank = body.type(index).shape[-1], body.type(index).rank
    if wide == room:
        return name
    if not isinstance(wide, int) or not isinstance(room, int) or wide > room:
        raise Unsupported(f"operand {index}, {body.type(index)}, beside a buffer of {room} tokens", _FIX)
    return body.op("Pad", name, body.ints(*[0] * (2 * rank - 1), room - wide))


def _last(body: Body, before: str, length: Size) -> str:
    """The last token of the run."""
    return body.op("Sub", body.op("Add", before, body.sizes(length)), body.ints(1))


def _sources(body: Body, before: str, batch: Size, room: Size) -> str:
    """The row and the place that each token of each row came from: [rows, places, 2]."""
    rows, beams = body.op("Unsqueeze", body.places(batch), body.ints(1)), body.sizes(body.size(SOURCES, 1))
    first = body.op("Sub", rows, body.op("Mod", rows, beams))
    which = body.op("Reshape", body.op("Cast", body.operand(SOURCES), to=TensorProto.INT64), body.sizes(batch, room))
    places = body.places(room)
    row = body.op("Where", body.op("Less", places, before), body.op("Add", first, which), rows)
    parts = (row, body.op("Expand", places, body.sizes(batch, room)))
    return body.op("Concat", *(body.op("Unsqueeze", part, body.ints(2)) for part in parts), axis=2)


def _picked(body: Body, cache: str, places: str) -> str:
    tokens = body.op("GatherND", body.op("Transpose", cache, perm=[0, 2, 1, 3]), places)
    return body.op("Transpose", tokens, perm=[0, 2, 1, 3])
