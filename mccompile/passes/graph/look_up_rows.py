"""look_up_rows: the product of OneHot with a constant matrix is a row of that matrix for every index.

OneHot gives a line without a one where an index lies outside of its depth; the matrix gets a row of zeros for that.
That off is 0, on is 1 and the matrix is finite is looked at, and recorded.
"""

from __future__ import annotations

import numpy as np

from ...base.dims import static
from ...base.dtypes import i32, i64, u64
from ...graph.ir import Graph, Value
from ...graph.pattern import Anything, ConstantOperand, Either, Made, Maker, Match, Rule, rewrite
from ...ops.binary import Add, GreaterOrEqual, Less, Or
from ...ops.cast import Cast
from ...ops.choose import Where
from ...ops.gather import Gather
from ...ops.reshape import Reshape
from ..api import Context

_LINES = Made("OneHot", Anything("places"), ConstantOperand("depth"), ConstantOperand("values"), name="one_hot")
_CAST = Made("Cast", _LINES)
_TURNED = Made("Reshape Squeeze Unsqueeze Flatten", Either(_LINES, _CAST), rest=True)
_PRODUCT = Made("MatMul", Either(_LINES, _CAST, _TURNED), ConstantOperand("matrix"))


def look_up_rows(graph: Graph, context: Context) -> None:
    rewrite(graph, (Rule("one_hot_product", _PRODUCT, _rows),))


def _rows(match: Match, make: Maker) -> Value | None:
    places, matrix, out = match["places"].type, match["matrix"].type, match.root.output
    lines, op = match.node("one_hot").output.type, match.node("one_hot").op
    product = match.root.inputs[0]
    if product is None or not (places.is_static and lines.is_static and matrix.rank == 2 and out.type.is_static):
        return None
    depth = static(matrix.shape[0])
    if vars(op)["axis"] not in (-1, lines.rank - 1) or (lines.shape[-1], product.type.shape[-1]) != (depth, depth):
        return None
    if not places.dtype.is_integer or places.dtype is u64 or not matrix.dtype.is_float:
        return None
    values, rows = match.array("values"), match.array("matrix")
    if list(values.reshape(-1)) != [0, 1] or not np.isfinite(rows).all():
        return None
    make.used(f"{match['values'].name} is 0 and 1")
    make.used(f"every element of {match['matrix'].name} is finite")
    table = make.constant(np.concatenate([rows, np.zeros_like(rows[:1])]), f"{match['matrix'].name}/and_zeros")
    found = make.node(Gather(axis=0), table, _places(match["places"], depth, make, out.name))
    if found.type == out.type:
        return found
    shape = make.constant(np.array(out.type.static_shape, np.int64), f"{out.name}/shape")
    return make.node(Reshape(allowzero=1), found, shape)


def _places(places: Value, depth: int, make: Maker, name: str) -> Value:
    """Indices of rows: negative ones count from the end, and `depth` stands for all that lie outside."""
    dtype = places.type.dtype
    wide = dtype if dtype in (i32, i64) else i64 if dtype.bits >= 32 else i32
    if wide is not dtype:
        places = make.node(Cast(to=wide.onnx), places)
    zero, size = (make.constant(np.array(n, wide.numpy), f"{name}/bound") for n in (0, depth))
    if dtype.kind == "int":
        places = make.node(Where(), make.node(Less(), places, zero), make.node(Add(), places, size), places)
    outside = make.node(GreaterOrEqual(), places, size)
    if dtype.kind == "int":
        outside = make.node(Or(), outside, make.node(Less(), places, zero))
    return make.node(Where(), outside, size, places)
