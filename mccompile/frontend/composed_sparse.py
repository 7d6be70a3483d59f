"""onnxruntime's SparseAttention: GroupQueryAttention in which each head sees blocks of keys only.

Invariant: heads take turns with the layouts of blocks, which are lists of columns for each row; -1 fills up a list.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..graph.ir import Invalid, Unsupported
from .composed_body import CONTRIB, Body

(QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, ROWS, COLUMNS, TOTAL, TOTALS, COSINES, SINES) = range(11)


def sparse_attention(body: Body) -> None:
    kept = ("num_heads", "kv_num_heads", "scale", "do_rotary", "rotary_interleaved")
    body.only(*kept, "sparse_block_size")
    heads, size = int(body.attribute("num_heads", 0)), int(body.attribute("sparse_block_size", 0))
    layouts, ends = body.type(ROWS).shape if body.type(ROWS).rank == 2 else (0, 0)
    listed = body.type(COLUMNS).shape[-1]
    if not (isinstance(layouts, int) and isinstance(ends, int) and isinstance(listed, int)):
        raise Unsupported(f"blocks {body.type(ROWS)}", "fix sizes with --dim or --shape")
    if heads < 1 or size < 1 or ends < 2 or layouts < 1 or heads % layouts:
        raise Invalid(f"{layouts} layouts of {ends - 1} rows of blocks of {size} for {heads} heads")
    seen = _blocks(body, listed, ends - 1)
    room = body.op("Div", body.places(body.size(PAST_KEY, 2)), body.index(size))
    seen = body.op("Gather", seen, room, axis=2)  # of each key
    length = body.size(QUERY, 1)
    totals = body.op("Cast", body.op("Reshape", body.operand(TOTALS), body.ints(-1, 1)), to=TensorProto.INT64)
    before = body.op("Max", body.op("Sub", totals, body.sizes(length)), body.index(0))
    rows = body.op("Div", body.op("Add", before, body.places(length)), body.index(size))
    seen = body.op("Transpose", body.op("Gather", seen, rows, axis=1), perm=[1, 0, 2, 3])
    seen = body.op("Tile", seen, body.ints(1, heads // layouts, 1, 1))
    bias = body.op("Where", seen, body.number(0.0), body.number(float("-inf")))
    if body.narrow is not None:
        bias = body.op("Cast", bias, to=body.narrow.onnx)
    last = body.op("Sub", "in8", body.op("CastLike", body.index(1), "in8"))
    body.ignore(QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, TOTAL, COSINES, SINES)
    named = [f"in{index}" if body.has(index) else "" for index in range(COSINES + 2)]
    operands = (*named[: PAST_VALUE + 1], last, named[TOTAL], *named[COSINES:], "", bias)
    form = body.picked(*kept)
    made = body.op("GroupQueryAttention", *operands, outs=3, domain=CONTRIB, **form)
    for number, name in enumerate((made, f"{made}_1", f"{made}_2")):
        if body.wants(number):
            body.give(number, name, False)


def _blocks(body: Body, listed: int, rows: int) -> str:
    """Does each layout have a block in this row and column?"""
    ends = body.op("Cast", body.operand(ROWS), to=TensorProto.INT64)
    starts, ends = (
        body.op(
            "Unsqueeze", body.op("Slice", ends, body.ints(first), body.ints(first + rows), body.ints(1)), body.ints(2)
        )
        for first in (0, 1)
    )
    places = body.ints(*range(listed))
    is_own = body.op("And", body.op("GreaterOrEqual", places, starts), body.op("Less", places, ends))
    columns = body.op("Unsqueeze", body.op("Cast", body.operand(COLUMNS), to=TensorProto.INT64), body.ints(2))
    is_there = body.op("Equal", columns, body.ints(*range(rows)))
    marks = (body.op("Cast", marks, to=TensorProto.FLOAT) for marks in (is_own, is_there))
    return body.op("Greater", body.op("MatMul", *marks), body.constant(np.zeros((), np.float32)))
