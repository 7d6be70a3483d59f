"""How often a loop runs that ends by its condition, where sizes that are known only at run time decide.

Exporters write loops over time steps as `while step < steps`. What a trip adds to a counter is a number here, so that
each comparison holds for so many trips, an expression over sizes. Invariant: it says how large results are, and nothing
else; the loop still ends by its condition, and a run in which it makes another number of trips ends with a status.
"""

from __future__ import annotations

from ...base.dims import Dim, Symbolic, ceil_div, maximum, minimum, symbol, symbols
from ...graph.ir import Graph, Site, Value
from .known_shapes import single

_FAR = 2**31  # beyond all counters
_MOVES = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_MORE = {"Less": (1, 0, 0), "LessOrEqual": (1, 0, 1), "Greater": (0, 1, 0), "GreaterOrEqual": (0, 1, 1)}
_OPPOSITE = {
    "Less": "GreaterOrEqual", "GreaterOrEqual": "Less", "Greater": "LessOrEqual", "LessOrEqual": "Greater",
}  # fmt: skip


def trips_by_condition(site: Site, body: Graph) -> Dim | None:
    """The trips of a Loop whose condition is made of comparisons of counters; None where something else decides."""
    if site.has(1) and single(site.value(1)) is not True:
        return None
    counts = _Counts(site, body)
    conditions = counts.positive(body.outputs[0])
    if not conditions:
        return None
    found = [counts.first_that_fails(condition) for condition in conditions]
    known = [trip + 1 for trip in found if trip is not None]
    if len(known) < len(found):
        return None
    trips = known[0]
    for other in known[1:]:
        trips = minimum(trips, other)
    return trips


class _Counts:
    """Scalars of a region as expressions over the number of the trip."""

    def __init__(self, site: Site, body: Graph) -> None:
        self.site, self.body = site, body
        counter = single(body.inputs[0].fact.value)
        own = counter if isinstance(counter, Symbolic) else symbol("trip", 0, _FAR)
        (self.trip,) = symbols(own)
        self.given: dict[Value, Dim | None] = {body.inputs[0]: own}
        self.known = dict(self.given)

    def number(self, value: Value | None) -> Dim | None:
        if value is None or not value.type.dtype.is_integer:
            return None
        if value not in self.known:
            self.known[value] = self.carried(value) if value in self.body.inputs else self.made(value)
        return self.known[value]

    def carried(self, value: Value) -> Dim | None:
        """Its first value, and in each trip so much more."""
        place = self.body.inputs.index(value)
        start = single(self.site.value(place))
        before = symbol(f"before_{place}", -_FAR, _FAR)
        outside = self.given, self.known
        self.given = {**self.given, value: before}
        self.known = dict(self.given)
        after = self.number(self.body.outputs[place - 1])
        self.given, self.known = outside
        step = None if after is None else after - before
        if start is None or not isinstance(step, int):
            return None
        return start + step * self._trip

    @property
    def _trip(self) -> Dim:
        return Symbolic((((self.trip,), 1),))

    def made(self, value: Value) -> Dim | None:
        node = value.producer
        found = single(value.fact.value)
        if found is not None or node is None:
            return found
        if node.op.name in _MOVES:
            return self.number(node.inputs[0]) if value.type.count == 1 else None
        if node.op.name not in ("Add", "Sub"):
            return None
        a, b = (self.number(operand) for operand in node.inputs)
        if a is None or b is None:
            return None
        return a + b if node.op.name == "Add" else a - b

    def positive(self, value: Value | None, negated: bool = False) -> list[Dim] | None:
        """What has to be greater than 0 for the condition to be true; None where nobody knows."""
        if value is self.body.inputs[1] and not negated:
            return []  # it was true before the trip
        node = None if value is None else value.producer
        if value is None or value.type.count != 1 or node is None:
            return None
        name = node.op.name
        if name in _MOVES and node.inputs[0] is not None and node.inputs[0].type.dtype is value.type.dtype:
            return self.positive(node.inputs[0], negated)
        if name == "Not":
            return self.positive(node.inputs[0], not negated)
        if name == "And" and not negated:
            parts = [self.positive(operand) for operand in node.inputs]
            return [each for part in parts for each in part or ()] if None not in parts else None
        if name not in _MORE:
            return None
        more, less, extra = _MORE[_OPPOSITE[name] if negated else name]
        above, below = self.number(node.inputs[more]), self.number(node.inputs[less])
        return None if above is None or below is None else [above - below + extra]

    def first_that_fails(self, condition: Dim) -> Dim | None:
        """The first trip behind which it is not greater than 0; it has to fall by the same in each trip."""
        if isinstance(condition, int):
            return None
        (step,) = [c for atoms, c in condition.terms if atoms == (self.trip,)] or [0]
        begins = condition - step * self._trip
        if step >= 0 or self.trip in symbols(begins):
            return None
        return maximum(ceil_div(begins, -step), 0)
