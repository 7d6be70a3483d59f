"""fold_constants: values that depend on constants only become constants.

Two sources: values that the type rules know (shape arithmetic), and onnx's evaluator for nodes whose operands are
constant. A node stays where the evaluator fails or gives another type than the type rule, where its result would add
too much to the weights, and where it is random or has regions. DequantizeLinear of constants stays as well, since
lower_qdq makes integer operators out of it; `fold_dequantized` folds what that has left.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...base.budgets import budgets
from ...base.constant import Constant
from ...base.dtypes import f32, i8
from ...base.errors import Problem, UnsupportedModel
from ...base.provenance import show
from ...frontend.evaluate import evaluate, known_constant
from ...graph.ir import Graph, Node, Refused, Value
from ...ops.quantize import DequantizeLinear
from ..api import Context


def fold_constants(graph: Graph, context: Context) -> None:
    _fold(graph, graph, context, set(), keep=True)


def fold_dequantized(graph: Graph, context: Context) -> None:
    _fold(graph, graph, context, set(), keep=False)


def _spend(node: Node, nbytes: int, graph: Graph, context: Context) -> None:
    """Counts what a node's results take; refuses what is over the budget, as constants are that double again and
    again."""
    folding, most = context.folding, budgets()
    if folding.allowed is None:
        given = {id(v.constant): v.constant.type.max_bytes for v in graph.values() if v.constant is not None}
        folding.allowed = most.folded + most.folded_per_byte * sum(given.values())
    folding.spent += nbytes
    if folding.spent > folding.allowed:
        raise UnsupportedModel(
            Problem(
                "constants grow too large",
                f'node "{show(node.provenance)}" ({node.op.qualified_name})',
                f"with it, results computed from constants take {folding.spent} bytes, {folding.allowed} are the most "
                "for the constants that the model has",
                "store the result in the model, or turn the constants that it is computed from into inputs",
            )
        )


def _fold(graph: Graph, whole: Graph, context: Context, changed: set[Node], keep: bool) -> None:
    """`changed`: nodes whose operands became better known; `keep`: leave DequantizeLinear alone. Facts are those of the
    whole graph, whichever region they are found in."""
    for node in list(graph.nodes):
        for region in node.regions:
            _fold(region, whole, context, changed, keep)
        if node in changed or node.regions:
            _infer_again(node, changed)
        folded = [None if value is None else known_constant(value.fact) for value in node.outputs]
        if keep and isinstance(node.op, DequantizeLinear):
            continue
        if any(value and not constant for value, constant in zip(node.outputs, folded, strict=True)):
            folded = evaluate(node, context.fold_limit, partial(_spend, node, graph=graph, context=context)) or folded
            if isinstance(node.op, DequantizeLinear) and folded[0] is not None:
                folded = [_with_origin(whole, node, folded[0])]
        for value, constant in zip(node.outputs, folded, strict=True):
            if value is not None and constant is not None:
                changed.update(reader for reader, _ in value.uses)
                _replace(graph, value, constant)
        if not any(value.uses or graph.is_output(value) for value in node.present_outputs):
            graph.remove(node)


def _with_origin(graph: Graph, node: Node, floats: Constant) -> Constant:
    """Floats that know the bytes they were, if these fit 8 bits without their zero points."""
    integers, scale, zero = (*node.inputs, None)[:3]
    if integers is None or integers.constant is None or scale is None or scale.constant is None:
        return floats
    dtype = integers.type.dtype
    if scale.type.dtype is not f32 or floats.type.dtype is not f32 or vars(node.op)["block_size"]:
        return floats
    if not dtype.is_integer or dtype.bits > 8 or (zero is not None and zero.constant is None):
        return floats
    shape = [1] * integers.type.rank
    if scale.type.count != 1:
        shape[vars(node.op)["axis"]] = -1
    points = zero.constant.array.astype(np.int16) if zero is not None and zero.constant is not None else None
    no_zeros = f"every element of {zero.name} is 0" if zero is not None else ""
    if dtype is i8 and (points is None or (not points.any() and graph.may_use(no_zeros))):
        narrow = integers.constant
        if zero is not None:
            graph.assumptions[no_zeros] = None
    else:
        wide = integers.constant.array.astype(np.int16)
        if points is not None:
            wide = wide - points.reshape(shape if points.size != 1 else ())
        if wide.size and (wide.min() < -128 or wide.max() > 127):
            return floats
        if dtype.bits == 8:
            fits = f"{integers.name} less its zero points fits 8 bits"
            if not graph.may_use(fits):
                return floats
            graph.assumptions[fits] = None
        narrow = Constant.of(wide.astype(np.int8))
    spread = Constant.of(scale.constant.array.reshape(shape))
    return Constant(floats.type, lambda: floats.array, (narrow, spread))


def _replace(graph: Graph, value: Value, constant: Constant) -> None:
    if not value.uses and not graph.is_output(value):
        return
    new = Value.of_constant(value.name, constant)
    graph.replace(value, new)
    value.name += "/folded"  # its node may stay, for other results


def _infer_again(node: Node, changed: set[Node]) -> None:
    """Types and known values may have become more precise."""
    try:
        facts = node.op.infer(node.site())
    except Refused as refused:
        what, where = "an operator does not fit", f'node "{show(node.provenance)}" ({node.op.qualified_name})'
        raise UnsupportedModel(Problem(what, where, refused.why, refused.fix)) from None
    for value, fact in zip(node.outputs, facts, strict=False):
        if value is not None and (fact.type != value.type or (fact.value is not None and value.fact.value is None)):
            value.fact = fact
            changed.update(reader for reader, _ in value.uses)
