"""BifurcationDetector: takes the predicted tokens that agree with the source, and the one behind them, and looks in the
source for the last ones that there are then.

Invariant: n-grams are tried from the shortest on, until the source has one just once, or none.
"""

from __future__ import annotations

import numpy as np

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..contributed import writes

(SOURCE, CURRENT, MATCHED, PREDICTED) = range(4)
_MOST = 64  # tokens of an n-gram


@writes(
    "BifurcationDetector",
    "g (int64[7] s, int64[3] c, int64[5] p) => (int64[n] t, int64 i) <int64 m = {3}>"
    " { t, i = com.microsoft.BifurcationDetector <min_ngram_size = 1, max_ngram_size = 3> (s, c, m, p) }",
    "g (int64[4] s, int64[3] c) => (int64[3] t, int64 i) <int64 m = {0}>"
    " { t, i = com.microsoft.BifurcationDetector <min_ngram_size = 1, max_ngram_size = 5> (s, c, m) }",
)
def bifurcation_detector(body: Body) -> None:
    body.only("max_ngram_size", "min_ngram_size")
    least, most = int(body.attribute("min_ngram_size", 1)), int(body.attribute("max_ngram_size", 3))
    if least < 1 or most < least:
        raise Invalid(f"n-grams of {least} to {most} tokens")
    if most > _MOST:
        raise Unsupported(f"n-grams of up to {most} tokens", f"export the model with at most {_MOST}")
    tokens, length = body.operand(CURRENT), body.sizes(body.size(CURRENT, 0))
    body.ignore(MATCHED)
    if body.has(PREDICTED):
        tokens = body.op("Concat", tokens, body.operand(PREDICTED), axis=0)
        length = body.op("Add", length, body.op("Add", _agreeing(body), body.index(1)))
        body.give(0, body.op("Slice", tokens, body.ints(0), length), False)
    else:
        body.give(0, tokens, False)
    body.give(1, body.op("Squeeze", _found(body, tokens, length, least, most)), False)


def _agreeing(body: Body) -> str:
    """How many predicted tokens are those of the source that follow what was matched before."""
    first = body.op("Reshape", body.operand(MATCHED), body.ints(1))
    given = body.op("Slice", body.operand(PREDICTED), body.ints(0), body.ints(-1))
    places = body.op("Add", body.places(body.sum(body.size(PREDICTED, 0), -1)), first)
    last = body.op("Sub", body.sizes(body.size(SOURCE, 0)), body.index(1))
    source = body.op("Gather", body.operand(SOURCE), body.op("Min", places, last))
    same = body.op("Where", body.op("Equal", given, source), body.index(0), body.index(1))
    return body.op("ArgMax", body.op("Concat", same, body.ints(1), axis=0), axis=0)


def _found(body: Body, tokens: str, length: str, least: int, most: int) -> str:
    """Behind which token of the source the only n-gram ends that is the last of all tokens, or -1."""
    none = body.constant(np.zeros(most, bool))
    open_, found, ends = body.constant(np.ones(1, bool)), body.ints(-1), ""
    for back in range(most):
        place = body.op("Sub", length, body.index(back + 1))
        last = body.op("Gather", tokens, body.op("Max", place, body.index(0)))
        same = body.op("Concat", none, body.op("Equal", body.operand(SOURCE), last), axis=0)
        same = body.op("Slice", same, body.ints(most - back), body.ints(-back if back else 1 << 62))
        ends = body.op("And", ends, same) if ends else same
        if back + 1 < least:
            continue
        counts = body.op("Where", ends, body.index(1), body.index(0))
        count = body.op("ReduceSum", counts, body.ints(0))
        enough = body.op("GreaterOrEqual", place, body.index(0))
        open_ = body.op("And", open_, body.op("And", enough, body.op("Greater", count, body.index(0))))
        is_one = body.op("And", open_, body.op("Equal", count, body.index(1)))
        end = body.op("Add", body.op("ArgMax", counts, axis=0), body.index(1))
        found = body.op("Where", is_one, end, found)
        open_ = body.op("And", open_, body.op("Not", is_one))
    return found
