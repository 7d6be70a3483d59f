"""The sizes to run a model with, where it leaves some free: the highest, the lowest, and an odd one between.

Invariant: the model has no tensor of a negative size at any of them, and they are within the bounds that it was read
with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.dims import Dim, Symbol, Symbolic, bounds, evaluate, symbols
from ..graph.ir import Graph, graphs

Sizes = Mapping[str, int]
_BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "Where", "And", "Or", "Max", "Min", "Less", "Greater", "Equal"}


def of_dim(dim: Dim, sizes: Sizes) -> int:
    """A dimension at these sizes; the most it can be where it follows from data."""
    return evaluate(dim, sizes) if all(each.name in sizes for each in symbols(dim)) else bounds(dim)[1]


def trials(graph: Graph) -> list[dict[str, int]]:
    """One without any where no size is free."""
    free = sorted({found for value in graph.inputs for dim in value.type.shape for found in symbols(dim)})
    if not free:
        return [{}]
    highest = {each.name: each.high for each in free}
    computed = [
        dim
        for value in graph.values()
        for dim in value.type.shape
        if not isinstance(dim, int) and {each.name for each in symbols(dim)} <= highest.keys()
    ]
    lowest = _raised({each.name: each.low for each in free}, highest, computed)
    odd = {each.name: _odd(each, lowest[each.name]) for each in free}
    bound = [each for each in _equal(graph) if {found.name for found in symbols(each[1])} <= highest.keys()]
    found = [_agreeing(sizes, bound) for sizes in (highest, lowest, odd if _is_possible(odd, computed) else highest)]
    return [sizes for number, sizes in enumerate(found) if sizes not in found[:number]]


def agreeing(graph: Graph, sizes: Sizes) -> Sizes:
    """Sizes of which those that follow from others, for the graph to be right, are what they have to be."""
    bound = [each for each in _equal(graph) if {found.name for found in symbols(each[1])} <= sizes.keys()]
    return _agreeing(dict(sizes), bound)


def _equal(graph: Graph) -> list[tuple[Symbol, Dim]]:
    """Sizes that the graph is right for only if they are equal, such as total and past + new: of operands that are
    added, say, and of axes that products sum over."""
    found = []
    for part in graphs(graph):
        for node in part.nodes:
            shapes = [value.type.shape for value in node.present_inputs]
            if node.op.name == "MatMul" and all(len(shape) > 1 for shape in shapes):
                pairs = [(shapes[0][-1], shapes[1][-2]), *zip(shapes[0][-3::-1], shapes[1][-3::-1], strict=False)]
            elif node.op.name in _BROADCAST:
                ends = [shape[::-1] for shape in shapes]
                pairs = [pair for n, a in enumerate(ends) for b in ends[:n] for pair in zip(a, b, strict=False)]
            else:
                continue
            for a, b in (ordered for pair in pairs for ordered in (pair, pair[::-1])):
                if a != b and not isinstance(a, int) and str(a) in (names := {s.name: s for s in symbols(a)}):
                    found.append((names[str(a)], b))
    return [each for each in found if not isinstance(each[1], int)]


def _agreeing(sizes: dict[str, int], bound: Iterable[tuple[Symbol, Dim]]) -> dict[str, int]:
    """With what follows from the others, where it is within bounds."""
    for symbol, dim in bound:
        if symbol not in symbols(dim) and (not isinstance(dim, Symbolic) or len(dim.terms) + bool(dim.constant) > 1):
            size = evaluate(dim, sizes)
            sizes = {**sizes, symbol.name: size} if symbol.low <= size <= symbol.high else sizes
    return sizes


def _odd(size: Symbol, low: int) -> int:
    """An odd number strictly between, where there is one: vectors and tiles do not divide it."""
    middle = low + (size.high - low) * 5 // 8
    near = (number for off in range(3) for number in (middle + off, middle - off))
    return next((number for number in near if low < number < size.high and number % 2), middle)


def _raised(sizes: dict[str, int], highest: Sizes, computed: Iterable[Dim]) -> dict[str, int]:
    """The lowest sizes at which no tensor has a negative one, all raised alike."""
    computed = list(computed)
    while not _is_possible(sizes, computed) and sizes != highest:
        sizes = {name: min(size + 1, highest[name]) for name, size in sizes.items()}
    return sizes


def _is_possible(sizes: Sizes, computed: Iterable[Dim]) -> bool:
    return all(evaluate(dim, sizes) >= 0 for dim in computed)
