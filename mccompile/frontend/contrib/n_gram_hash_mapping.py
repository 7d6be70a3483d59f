"""NGramHashMapping: rows of tables for the n-grams that end at each token, by hashes of their ids.

Invariant: for n from 2 on, the products of the last n ids with their multipliers are joined by exclusive or, and each
head of that n takes the remainder by the size of its table.
"""

from __future__ import annotations

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..composed_pieces import plus
from ..contributed import writes

(IDS, MULTIPLIERS, SIZES, PAST, OFFSETS, END, SEGMENTS) = range(7)


@writes(
    "NGramHashMapping",
    "g (int64[2, 4] i, int64[2, 2] p) => (int64[2, 4, 4] y, int64[2, 2] q)"
    " <int64[3] m = {7, -13, 1152921504606846976}, int64[4] s = {5, 7, 11, 3}, int64[4] o = {0, 5, 12, 23}>"
    " { y, q = com.microsoft.NGramHashMapping <max_ngram_size = 3, n_head_per_ngram = 2, pad_id = 1> (i, m, s, p, o) }",
    "g (int32[2, 5] i) => (int32[2, 5, 2] y) <int32[2] m = {7, 1073741827}, int32[2] s = {5, 7}>"
    " { y = com.microsoft.NGramHashMapping <max_ngram_size = 2, n_head_per_ngram = 2, pad_id = 3> (i, m, s) }",
    "g (int64[1, 3] i) => (int64[1, 3, 1] y) <int64[2] m = {7, 9}, int64[1] s = {5}, int64 e = {4}>"
    ' { y = com.microsoft.NGramHashMapping <max_ngram_size = 2, n_head_per_ngram = 1, pad_id = 3> (i, m, s, "", "", e)'
    " }",
)
def n_gram_hash_mapping(body: Body) -> None:
    body.only("max_ngram_size", "n_head_per_ngram", "pad_id", "reset_on_eos")
    most, heads = int(body.attribute("max_ngram_size", 0)), int(body.attribute("n_head_per_ngram", 0))
    if most < 2 or heads < 1 or body.type(IDS).rank != 2:
        raise Invalid(f"ids {body.type(IDS)}, n-grams of up to {most} and {heads} heads for each")
    if body.has(SEGMENTS) or body.attribute("reset_on_eos", 0):
        raise Unsupported("n-grams that begin anew inside of a sequence", "run each part of it by itself")
    body.opset = 18  # that has BitwiseXor
    batch, length = body.size(IDS, 0), body.size(IDS, 1)
    past = body.operand(PAST)
    if not past:
        pad = body.operand(END) or body.op("CastLike", body.index(int(body.attribute("pad_id", 0))), "in0")
        past = body.op("Expand", body.op("Reshape", pad, body.ints(1, 1)), body.sizes(batch, most - 1))
    ids = body.op("Concat", past, body.operand(IDS), axis=1)
    mixed, parts = "", []
    for back in range(most):
        first = body.sizes(most - 1 - back)
        last = body.sizes(body.sum(length, most - 1 - back))
        shifted = body.op("Slice", ids, first, last, body.ints(1))
        factor = body.op("Slice", body.operand(MULTIPLIERS), body.ints(back), body.ints(back + 1))
        product = body.op("Mul", shifted, factor)
        mixed = body.op("BitwiseXor", mixed, product) if mixed else product
        if back:
            rooms = body.op("Slice", body.operand(SIZES), body.ints((back - 1) * heads), body.ints(back * heads))
            parts.append(body.op("Mod", body.op("Unsqueeze", mixed, body.ints(2)), rooms))
    rows = body.op("Concat", *parts, axis=2)
    body.give(0, plus(body, rows, OFFSETS), False)
    if body.wants(1):
        body.give(1, body.op("Slice", ids, body.ints(1 - most), body.ints(1 << 62), body.ints(1)), False)
