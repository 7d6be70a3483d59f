"""gather_onehot_products: the product of one-hot rows with a constant matrix becomes a Gather of rows of this matrix.

The rows come from OneHot, or from Equal of a column of indices with 0, 1, 2, ... They have no one where an index lies
outside of the depth; the matrix gets a row of zeros for that. That off is 0, on is 1, that numbers count up and that
the matrix is finite is looked at, and recorded.
"""

from __future__ import annotations

import numpy as np

from ...base.dims import static
from ...base.dtypes import i32, i64, u64
from ...graph.ir import Graph, Value
from ...ops.binary import Add, GreaterOrEqual, Less, Or
from ...ops.cast import Cast
from ...ops.choose import Where
from ...ops.gather import Gather
from ...ops.reshape import Reshape
from ..api import Context
from ..pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, ResultOf, Rule, rewrite

_LINES = ResultOf("OneHot", AnyValue("places"), ConstantOperand("depth"), ConstantOperand("values"), name="one_hot")
_COMPARED = ResultOf("Equal", AnyValue("column"), ConstantOperand("counted"), either_order=True, name="equal")
_CAST = ResultOf("Cast", FirstOf(_LINES, _COMPARED))
_TURNED = ResultOf("Reshape Squeeze Unsqueeze Flatten", FirstOf(_LINES, _CAST), rest=True)
_PRODUCT = ResultOf("MatMul", FirstOf(_LINES, _CAST, _TURNED), ConstantOperand("matrix"))


def gather_onehot_products(graph: Graph, context: Context) -> None:
    rewrite(graph, (Rule("one_hot_product", _PRODUCT, _rows),))


def _rows(match: Match, make: Maker) -> Value | None:
    matrix, out, product = match["matrix"].type, match.root.output, match.root.inputs[0]
    if product is None or matrix.rank != 2 or not (out.type.is_static and matrix.dtype.is_float):
        return None
    depth, rows = static(matrix.shape[0]), match.array("matrix")
    if product.type.shape[-1] != depth or not np.isfinite(rows).all():
        return None
    indices = (_counted if "equal" in match.nodes else _one_hot)(match, make, depth)
    if indices is None:
        return None
    make.used(f"every element of {match['matrix'].name} is finite")
    table = make.constant(np.concatenate([rows, np.zeros_like(rows[:1])]), f"{match['matrix'].name}/and_zeros")
    found = make.node(Gather(axis=0), table, indices)
    if found.type == out.type:
        return found
    shape = make.constant(np.array(out.type.static_shape, np.int64), f"{out.name}/shape")
    return make.node(Reshape(allowzero=1), found, shape)


def _one_hot(match: Match, make: Maker, depth: int) -> Value | None:
    """The indices of OneHot as rows of the table."""
    places, node = match["places"], match.node("one_hot")
    lines = node.output.type
    if not (places.type.is_static and lines.is_static) or not _are_indices(places):
        return None
    if vars(node.op)["axis"] not in (-1, lines.rank - 1) or lines.shape[-1] != depth:
        return None
    if list(match.array("values").reshape(-1)) != [0, 1]:
        return None
    make.used(f"{match['values'].name} is 0 and 1")
    return _places(places, depth, make, match.root.output.name, wraps=True)


def _counted(match: Match, make: Maker, depth: int) -> Value | None:
    """The column that Equal compares with 0, 1, 2, ..., as rows of the table."""
    column, lines = match["column"], match.node("equal").output.type
    counted = match.array("counted")
    if not (column.type.is_static and lines.is_static) or not _are_indices(column) or column.type.rank != lines.rank:
        return None
    if lines.shape[-1] != depth or column.type.shape != (*lines.shape[:-1], 1) or counted.shape[-1:] != (depth,):
        return None
    if counted.size != depth or (counted.reshape(-1) != np.arange(depth)).any():
        return None
    make.used(f"{match['counted'].name} counts from 0")
    shape = make.constant(np.array(lines.static_shape[:-1], np.int64), f"{match.root.output.name}/places")
    indices = make.node(Reshape(allowzero=1), column, shape)
    return _places(indices, depth, make, match.root.output.name, wraps=False)


def _are_indices(value: Value) -> bool:
    return value.type.dtype.is_integer and value.type.dtype is not u64


def _places(places: Value, depth: int, make: Maker, name: str, wraps: bool) -> Value:
    """Indices of rows: negative ones count from the end if that `wraps`, and `depth` stands for all that lie
    outside."""
    dtype = places.type.dtype
    wide = dtype if dtype in (i32, i64) else i64 if dtype.bits >= 32 else i32
    if wide is not dtype:
        places = make.node(Cast(to=wide.onnx), places)
    zero, size = (make.constant(np.array(n, wide.numpy), f"{name}/bound") for n in (0, depth))
    if dtype.kind == "int" and wraps:
        places = make.node(Where(), make.node(Less(), places, zero), make.node(Add(), places, size), places)
    outside = make.node(GreaterOrEqual(), places, size)
    if dtype.kind == "int":
        outside = make.node(Or(), outside, make.node(Less(), places, zero))
    return make.node(Where(), outside, size, places)
