"""NGramRepeatBlock: tokens that would repeat an n-gram of the sequence get the score minus infinity."""

from __future__ import annotations

import numpy as np

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..contributed import writes


@writes(
    "NGramRepeatBlock",
    "g (float[2, 5] s) => (float[2, 5] y) <int64[2, 7] i = {1, 2, 3, 1, 2, 4, 1, 0, 0, 0, 0, 0, 0, 0}>"
    " { y = com.microsoft.NGramRepeatBlock <ngram_size = 2> (i, s) }",
    "g (float[1, 5] s) => (float[1, 5] y) <int64[1, 3] i = {1, 2, 3}>"
    " { y = com.microsoft.NGramRepeatBlock <ngram_size = 4> (i, s) }",
)
def ngram_repeat_block(body: Body) -> None:
    body.only("ngram_size")
    size, length = int(body.attribute("ngram_size", 0)), body.type(0).shape[-1]
    if size < 1:
        raise Invalid(f"ngram_size {size} is not above 0")
    if not isinstance(length, int):
        raise Unsupported("the length of the sequence is known only at run time", "fix it with --dim or --shape")
    if length < size:
        body.give(0, body.operand(1))
        return
    windows = np.arange(length - size + 1)[:, None] + np.arange(size)
    tokens = body.operand(0)
    last = body.op("Gather", tokens, body.ints(*windows[:, -1]), axis=1)
    low, high = (body.op("CastLike", body.number(value), body.operand(1)) for value in (-np.inf, np.inf))
    if size > 1:
        before = body.op("Gather", tokens, body.constant(windows[:, :-1]), axis=1)  # [batch, windows, size - 1]
        now = body.op("Gather", tokens, body.constant(np.arange(length - size + 1, length)[None]), axis=1)
        apart = body.op("Abs", body.op("Sub", before, now))
        differs = body.op("Cast", body.op("ReduceMax", apart, body.ints(2), keepdims=0), to=9)
        low = body.op("Where", differs, high, low)
    else:
        low = body.op("Expand", low, body.op("Shape", last))
    body.give(0, body.op("ScatterElements", body.operand(1), last, low, axis=1, reduction="min"))
