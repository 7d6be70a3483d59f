"""DynamicTimeWarping: the cheapest path through a matrix of costs, as rows and columns.

Costs are summed along one diagonal after the other, whose elements do not depend on each other; then the path is
followed back. Invariant: a step to the next row and column is taken only where it is cheaper than both others, one to
the next row only where it is cheaper than both others, as in Whisper.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...graph.ir import Invalid
from ..composed_body import Body, Size
from ..contributed import writes

_MOVES = ((1, 1), (1, 0), (0, 1))  # back to the point before: rows and columns


@writes(
    "DynamicTimeWarping",
    "g (float[5, 8] x) => (int32[2, n] y) { y = com.microsoft.DynamicTimeWarping (x) }",
    "g (float[1, 6, 3] x) => (int32[2, n] y)"
    " { z = Floor (x) w = HardSigmoid (z) y = com.microsoft.DynamicTimeWarping (w) }",
    "g (float[1, 4] x) => (int32[2, n] y) { y = com.microsoft.DynamicTimeWarping (x) }",
)
def dynamic_time_warping(body: Body) -> None:
    body.only()
    rank = body.type(0).rank
    if rank not in (2, 3) or 0 in body.type(0).shape:
        raise Invalid(f"costs {body.type(0)}, not a matrix")
    rows, columns = body.size(0, -2), body.size(0, -1)
    costs = body.op("Reshape", body.operand(0), body.sizes(rows, columns))
    points, kept = _path(body, _moves(body, costs, rows, columns), rows, columns)
    last = body.ints(-1), body.ints(-(1 << 62)), body.ints(0), body.ints(-1)
    points, kept = body.op("Slice", points, *last), body.op("Slice", kept, *last)
    path = body.op("Transpose", body.op("Compress", points, kept, axis=0), perm=[1, 0])
    body.give(0, body.op("Cast", path, to=TensorProto.INT32), False)


def _moves(body: Body, costs: str, rows: Size, columns: Size) -> str:
    """For each diagonal and row by which of the moves its point is reached."""
    length = body.sum(body.sum(rows, columns), -1)
    none = body.number(float("inf"))
    wide = body.op("Expand", none, body.sizes(rows, rows))
    flat = body.op("Reshape", body.op("Concat", costs, wide, axis=1), body.ints(-1))
    fewer = body.op("Slice", flat, body.ints(0), body.op("Neg", body.sizes(rows)))
    skewed = body.op("Reshape", fewer, body.sizes(rows, length))  # each row begins one place after the one before
    edge = body.op("Reshape", none, body.ints(1))
    empty = body.op("Expand", none, body.sizes(body.sum(rows, 1)))
    start = body.op("Concat", body.constant(np.zeros(1, np.float32)), body.op("Expand", none, body.sizes(rows)), axis=0)
    trip = body.inner()
    before, older, own = (f"{trip.prefix}{name}" for name in ("before", "older", "own"))
    none_after, first = (trip.ints(0), trip.ints(-1)), (trip.ints(1), trip.ints(1 << 62))
    both, down, across = (
        trip.op("Slice", *part) for part in ((older, *none_after), (before, *none_after), (before, *first))
    )

    def least(a: str, b: str, c: str) -> str:
        return trip.op("And", trip.op("Less", a, b), trip.op("Less", a, c))

    is_both, is_down = least(both, down, across), least(down, both, across)
    move = trip.op("Where", is_both, trip.index(0), trip.op("Where", is_down, trip.index(1), trip.index(2)))
    best = trip.op("Where", is_both, both, trip.op("Where", is_down, down, across))
    sums = trip.op("Concat", edge, trip.op("Add", own, best), axis=0)
    graph = trip.graph((before, older, own), (sums, trip.op("Identity", before), move))
    return f"{body.op('Scan', empty, start, skewed, outs=3, body=graph, num_scan_inputs=1, scan_input_axes=[1])}_2"


def _path(body: Body, moves: str, rows: Size, columns: Size) -> tuple[str, str]:
    """Points from the last one back, and which of them come before the first one was reached."""
    length = body.sum(body.sum(rows, columns), -1)
    end = body.op("Sub", body.sizes(rows, columns), body.index(1))
    table = body.constant(np.array(_MOVES, np.int64))
    trip = body.inner()
    point = f"{trip.prefix}point"
    inside = trip.op("Max", point, trip.index(0))
    diagonal = trip.op("ReduceSum", inside, trip.ints(0), keepdims=1)
    place = trip.op("Concat", diagonal, trip.op("Slice", inside, trip.ints(0), trip.ints(1)), axis=0)
    step = trip.op("Gather", table, trip.op("GatherND", moves, place), axis=0)
    is_there = trip.op("GreaterOrEqual", trip.op("ReduceMin", point, keepdims=0), trip.index(0))
    results = (trip.op("Sub", point, step), trip.op("Identity", point), is_there)
    graph = trip.graph((point, f"{trip.prefix}turn"), results)
    made = body.op("Scan", end, body.places(length), outs=3, body=graph, num_scan_inputs=1)
    return f"{made}_1", f"{made}_2"
