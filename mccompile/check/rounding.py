"""How far numbers of few bits move what a network computes, of the largest element of an output: what a comparison has
to allow, and hardly more.

Rounding a number to a type whose last place is 2u of it is off by anything up to u: by u / sqrt(3) as a rule. A sum
that is made in the type itself rounds at each of its n terms; of terms of any sign it is off by u * sqrt(n / 6) as a
rule. What operators one behind the other add, adds up as squares do. Invariant: it follows from types and shapes alone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt

from ..base.dims import upper
from ..base.dtypes import DType, f16
from ..codegen.vector.vector_runs import HALF_RUN
from ..graph.ir import Graph, Node, Value
from ..ops.block_matmul import LONGEST
from ..ops.quantize import DequantizeLinear, RoundingDequantizeLinear

UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8}  # half of a last place
BEYOND = 3.0  # the largest error of many over the usual one
TRIPS = 32  # of a loop, after which errors of its state fade
CANCELLED = 2.0  # how much larger than results the terms are that they are sums of, in networks without it
PEAK = 4.0  # how much larger than the others the largest element of a block is taken to be, at most
SOFTMAX = 4.0  # the size of what it is given, in networks that tell classes apart
_RECURRENT = ("GRU", "LSTM", "RNN")


def of_numbers(graph: Graph, in_halves: bool) -> float:
    """Where numbers are rounded to the narrow types of the graph after every operator, here and by the reference, each
    in its own way. `in_halves`: sums of f16 are made in f16, in runs."""
    units = [_unit(value.type.dtype) for value in _computed(graph)]

    def squares(node: Node) -> float:
        unit = max((_unit(value.type.dtype) for value in node.present_outputs), default=0.0)
        summed = in_halves and any(value.type.dtype is f16 for value in node.present_outputs)
        return unit**2 * (1 / 3 + (min(_terms(node), HALF_RUN) / 6 if summed else 0))

    return 2 * max(units, default=0.0) + BEYOND * sqrt(_along(graph, squares))


def of_weights(graph: Graph, dtype: DType) -> float:
    """Where the weights of products are rounded to a narrow type. What Softmax is given is not near zero, so that it
    moves its results by more than that is moved by."""
    sharp = SOFTMAX if any(node.op.name == "Softmax" for node in graph.nodes) else CANCELLED
    return BEYOND * sharp * sqrt(_along(graph, lambda node: _unit(dtype) ** 2 / 3 if _terms(node) else 0.0))


def of_caches(count: int, dtype: DType) -> float:
    """Where so many states that grow are stored in a narrow type: in integers by the largest element of each row."""
    square = PEAK**2 / 127**2 / 12 if dtype.is_integer else _unit(dtype) ** 2 / 3
    return BEYOND * SOFTMAX * sqrt(count * square)


def of_activations(graph: Graph, everywhere: bool) -> float:
    """Where products with weights of few bits round the other operand to int8 in blocks: those that the model lets, or
    everywhere. An element is off by up to half of what the largest one of its block is over 127."""
    sharp = SOFTMAX if any(node.op.name == "Softmax" for node in graph.nodes) else CANCELLED

    def squares(node: Node) -> float:
        block = _rounded_block(node, everywhere)
        return min(block, PEAK**2) / 127**2 / 12 if block else 0.0

    return BEYOND * sharp * sqrt(_along(graph, squares))


def of_hybrid(graph: Graph) -> float:
    """Where LiteRT multiplies floats with int8 weights: it rounds the floats to int8, by the largest of a row. 0 where
    it does not."""
    found = _along(graph, lambda node: PEAK**2 / 127**2 / 12 if _is_hybrid(node) else 0.0)
    return BEYOND * CANCELLED * sqrt(found)


def _is_hybrid(node: Node) -> bool:
    if node.op.name not in ("MatMul", "Gemm", "Conv", "ConvTranspose", *_RECURRENT):
        return False
    x, w = node.inputs[:2]
    return w is not None and _is_dequantized(w) and x is not None and not _is_dequantized(x)


def _is_dequantized(value: Value) -> bool:
    maker = value.producer
    if maker is not None and maker.op.name in ("Transpose", "Reshape") and maker.inputs[0] is not None:
        return _is_dequantized(maker.inputs[0])
    return maker is not None and maker.op.name == "DequantizeLinear"


def _rounded_block(node: Node, everywhere: bool) -> int:
    """Elements of a block of a product that may round; 0: it does not."""
    value = node.inputs[1] if node.op.name in ("MatMul", "Gemm") else None
    maker = value.producer if value is not None else None
    if maker is not None and maker.op.name == "Transpose" and maker.inputs[0] is not None:
        maker = maker.inputs[0].producer
    if maker is None or not isinstance(maker.op, DequantizeLinear):
        return 0
    if not everywhere and not isinstance(maker.op, RoundingDequantizeLinear):
        return 0
    return maker.op.block_size or LONGEST


def _unit(dtype: DType) -> float:
    return UNITS.get(dtype.name, 0.0)


def _computed(graph: Graph) -> list[Value]:
    found = [*graph.inputs, *(value for node in graph.nodes for value in node.present_outputs)]
    return found + [value for node in graph.nodes for region in node.regions for value in _computed(region)]


def _along(graph: Graph, squares: Callable[[Node], float]) -> float:
    """The most that squares add up to along any path."""
    found: dict[Value, float] = {}
    for node in graph.nodes:
        before = max((found.get(value, 0.0) for value in node.present_inputs), default=0.0)
        inside = sum(_along(region, squares) for region in node.regions)
        times = upper(node.inputs[0].type.shape[0]) if node.op.name in _RECURRENT and node.inputs[0] is not None else 1
        for value in node.present_outputs:
            found[value] = before + squares(node) * times + inside * TRIPS
    return max(found.values(), default=0.0)


def _terms(node: Node) -> int:
    """How many products an operator adds up to an element of its result."""
    if node.op.name not in ("Conv", "ConvTranspose", "Gemm", "MatMul", *_RECURRENT):
        return 0
    x, w = node.inputs[:2]
    assert x is not None and w is not None
    if "Conv" in node.op.name:
        return prod(upper(dim) for dim in w.type.shape[1:])
    return upper(w.type.shape[-2]) if node.op.name == "MatMul" and w.type.rank > 1 else upper(w.type.shape[0])
