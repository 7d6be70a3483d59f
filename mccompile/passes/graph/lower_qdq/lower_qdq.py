"""lower_qdq: DequantizeLinear, operator, QuantizeLinear become one operator over integers.

The result is the rational value of everything between the integers that go in and the one that comes out, rounded to
the nearest once, halves to even, and saturated; scales are the rational numbers that their floats are. Where fixed
point cannot be proven to give exactly that, or an operator has no integer form, floats stay; `graph.left_in_float` says
where and why. In four steps:

1. Operators that only move elements are applied to the integers (`move_integers`).
2. The rules below, each rooted at a QuantizeLinear; then those for products of quantized tensors whose results are
   not quantized: integers are summed, and become floats once.
3. Chains of what came out become tables (`join_tables`).
4. What is left is noted.

That a zero point of weights is 0, or that two tensors are quantized alike, is a fact about values and recorded.
Invariant: folding has left DequantizeLinear of weights alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from ....base.dtypes import i32
from ....base.provenance import show
from ....graph.ir import Graph, Value, all_nodes
from ....ops import recurrent
from ....ops.binary import Mul
from ....ops.cast import Cast
from ....ops.fixed_point import Lookup, ProductInteger, times_taken
from ....ops.quantize import DequantizeLinear, QuantizeLinear
from ....targets.api import Prefer
from ...api import Context
from ...pattern import AnyValue, Maker, Match, ResultOf, Rule, rewrite
from ...quantized.quantized_tensors import Bounds, Scheme, bytes_rescaled, dequantized, rescaled
from ..eliminate_dead import eliminate_dead
from ..fold_constants import fold_constants
from ..fuse_pad import QUANTIZED_RULES
from .computed_weights import COMPUTED_WEIGHTS
from .join_tables import join_tables
from .lookup_table import table
from .move_integers import MOVES, move_integers
from .quantized_normalization import normalizations, normalized, softmax
from .quantized_patterns import W, X, between, bounds, product_range, result, source, target, zero_of
from .quantized_products import FLOAT_RESULTS, PRODUCTS, SHIFTS_OF_FEW, SHIFTS_OF_UPDATES
from .quantized_sums import SUMS


def lower_qdq(graph: Graph, context: Context) -> None:
    if not any(isinstance(node.op, DequantizeLinear) for node in all_nodes(graph)):
        return
    target = context.target
    graph.few_numbers = (
        target.prefer == Prefer.FLASH and bool(target.option("few_numbers", 0)) and not context.training.updatable
    )
    graph.in_vectors = "dot" in target.isas and not context.training.updatable
    move_integers(graph)
    fold_constants(graph, context)
    rewrite(graph, (*QUANTIZED_RULES, *RULES))
    rewrite(graph, FLOAT_RESULTS)
    eliminate_dead(graph, context)
    join_tables(graph)
    _note(graph)


def _add(match: Match, make: Maker) -> Value | None:
    a, b, y = source(match, "x"), source(match, "w"), result(match)
    if a is None or b is None:
        return None
    factors = [a.scale / y.scale, b.scale / y.scale]
    constant = -factors[0] * a.zero - factors[1] * b.zero
    terms = [match["x"], match["w"]]
    return _bytes_rescaled(match, make, terms, [a, b], factors, constant, y)


def _sub(match: Match, make: Maker) -> Value | None:
    a, b, y = source(match, "x"), source(match, "w"), result(match)
    if a is None or b is None:
        return None
    if all(found.is_bytes for found in (a, b, y)):
        factors, constant = [a.scale / y.scale, -b.scale / y.scale], (b.scale * b.zero - a.scale * a.zero) / y.scale
        short = bytes_rescaled(make, [match["x"], match["w"]], [a, b], factors, constant, y, bounds(match))
        if short is not None:
            return short
    return _of_opposites(match, make, a, b, y)


def _of_opposites(match: Match, make: Maker, a: Scheme, b: Scheme, y: Scheme) -> Value | None:
    """The second term is negative, since factors of long numbers are not."""
    times = [times_taken(found.dtype) for found in (a, b)]
    less = make.constant(np.array(-times[1], np.int32), f"{match.root.output.name}/less")
    terms = [match["x"], make.node(Mul(), make.node(Cast(i32.onnx), match["w"]), less)]
    factors = [a.scale / y.scale / times[0], b.scale / y.scale / times[1]]
    constant = (b.scale * b.zero - a.scale * a.zero) / y.scale
    ranges = [(a.low * times[0], a.high * times[0]), (-b.high * times[1], -b.low * times[1])]
    return rescaled(make, terms, [factors], [constant], [ranges], (), y, bounds(match), min(times))


def _bytes_rescaled(
    match: Match,
    make: Maker,
    terms: Sequence[Value],
    sources: Sequence[Scheme],
    factors: Sequence[Fraction],
    constant: Fraction,
    y: Scheme,
) -> Value | None:
    if all(found.is_bytes for found in (*sources, y)):
        short = bytes_rescaled(make, terms, sources, factors, constant, y, bounds(match))
        if short is not None:
            return short
    taken = [times_taken(found.dtype) for found in sources]
    ranges = [(found.low * unit, found.high * unit) for found, unit in zip(sources, taken, strict=True)]
    units = [factor / unit for factor, unit in zip(factors, taken, strict=True)]
    return rescaled(make, terms, [units], [constant], [ranges], (), y, bounds(match), min(taken))


def _mul(match: Match, make: Maker) -> Value | None:
    a, b, y = source(match, "x"), source(match, "w"), result(match)
    if a is None or b is None:
        return None
    zeros = [zero_of(make, match[name], found) for name, found in (("x", a), ("w", b))]
    total = make.node(ProductInteger(), match["x"], match["w"], *zeros)
    numbers = [[a.scale * b.scale / y.scale]], [Fraction(0)], [[product_range(a, b)]]
    shifts = SHIFTS_OF_UPDATES if make.whole.updatable else SHIFTS_OF_FEW
    return rescaled(make, [total], *numbers, (), y, bounds(match), shifts=shifts)


def _requantize(match: Match, make: Maker) -> Value | None:
    x, y, q = source(match, "x"), result(match), match["x"]
    if x is None:
        return None
    if x == y and bounds(match) == Bounds(None, None):
        make.used(f"{q.name} and {match.root.output.name} are quantized alike")
        return q
    factor = x.scale / y.scale
    return _bytes_rescaled(match, make, [q], [x], [factor], -factor * x.zero, y)


def _chosen(match: Match, make: Maker) -> Value | None:
    """What is chosen among may be quantized before, and go through the activation before that."""
    node, root, activation = match.node("anchor"), match.root, match.nodes.get("activation")
    if not all(found is not None and found.is_short for found in map(dequantized, node.inputs)):
        return None
    parts = list(node.present_inputs)
    if activation is not None:
        parts = [make.node(activation.op, part, *activation.inputs[1:]) for part in parts]
    return make.node(node.op, *(make.node(root.op, part, *root.inputs[1:]) for part in parts))


def _normalization(
    build: Callable[[Match, Maker, Scheme, Scheme], Value | None],
) -> Callable[[Match, Maker], Value | None]:
    def made(match: Match, make: Maker) -> Value | None:
        x = source(match, "x")
        y, plain = result(match), bounds(match) == Bounds(None, None)
        return build(match, make, x, y) if x is not None and x.is_bytes and y.is_bytes and plain else None

    return made


def _lookup(match: Match, make: Maker) -> Value | None:
    found = table(match["x"], result(match))
    if found is None:
        return None
    integers, entries = found
    return make.node(Lookup(), integers, make.constant(entries, f"{match.root.output.name}/table"))


RULES = (
    *PRODUCTS,
    *COMPUTED_WEIGHTS,
    between("add", ResultOf("Add Sum", X, W, read_once=True), _add),
    between("sub", ResultOf("Sub", X, W, read_once=True), _sub),
    between("mul", ResultOf("Mul", X, W, read_once=True), _mul),
    *SUMS,
    between("requantize", X, _requantize),
    between("softmax", ResultOf("Softmax", X, name="anchor", read_once=True), _normalization(softmax)),
    *(between("normalization", made, _normalization(normalized)) for made in normalizations(X)),
    between("chosen", ResultOf("Concat Max Min", rest=True, name="anchor", read_once=True), _chosen),
    Rule(
        "lookup", ResultOf("QuantizeLinear", AnyValue("x"), rest=True), _lookup, lambda match: target(match) is not None
    ),
)


def _note(graph: Graph) -> None:
    for node in all_nodes(graph):
        if isinstance(node.op, DequantizeLinear | QuantizeLinear) or not node.outputs or node.outputs[0] is None:
            continue
        sources = [value for value in node.present_inputs if dequantized(value) is not None]
        readers = [reader for reader, _ in node.output.uses]
        into = [reader for reader in readers if isinstance(reader.op, QuantizeLinear)]
        if not node.output.type.dtype.is_float or not (sources or into):
            continue
        if isinstance(node.op, MOVES) and not sources:
            continue  # moves what is computed elsewhere
        others = [value for value in node.present_inputs if value.constant is None and value not in sources]
        if isinstance(node.op, recurrent.Layer):
            why = "recurrent layers compute in floats: gates and states are not quantized, whatever their operands are"
        elif len(into) != len(readers) or not readers:
            why = "its result is not quantized"
        elif [value for value in others if value.type.dtype.is_float]:
            why = "its operands are not all quantized"
        else:
            why = f"{node.op.name} has no integer form with these attributes and types, or its sums may not fit 32 bits"
        graph.left_in_float[show(node.provenance)] = why
