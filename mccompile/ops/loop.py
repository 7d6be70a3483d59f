"""Loop: a region that runs again until its condition or its count of trips ends it.

Sizes must not change from trip to trip. Where the number of trips is known only at run time and results are collected,
their counter has a bound: a run that would need more trips ends with a status, and how many there were is measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.dims import Dim, Symbolic, bounds, maximum, minimum, symbol, upper
from ..base.dtypes import bool_, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..graph.ir import Graph, Limit, Value
from ..program.ir import View
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site
from .rules.backward import Backward
from .rules.free_trips import trips_by_condition
from .rules.known_shapes import single
from .rules.trips import MANY, LoopWriter, check_states, counter_name, seen_through
from .rules.trips import stacked as stacked_type
from .rules.written_trips import copied, stacked, trips_of


@dataclass(frozen=True)
class Loop(Operator):
    """Operands: trip count, condition, first values. The region: counter, condition, values -> condition, values,
    collected."""

    versions = (1, 11, 13, 16, 19, 21, 23, 24, 25)
    bounded = (0,)

    @classmethod
    def region_inputs(cls, node: OnnxNode, index: int) -> Sequence[Fact] | None:
        operands = [None if value is None else value.fact for value in node.inputs]
        trips = _known_trips(Site(tuple(operands), node.outputs))
        counter, condition = (_one(node, index, position) for position in range(2))
        first = _counter_fact(node.name, _most_trips(node) if trips is None else upper(trips), counter)
        own = single(first.value)
        states = [
            _carried(fact, None if own is None else own * node.steps.get(number, 0))
            for number, fact in enumerate(operands)
            if number > 1 and fact is not None
        ]
        return [first, Fact(TensorType(bool_, condition)), *states]

    def infer(self, site: Site) -> list[Fact]:
        body = site.regions[0]
        states = len(site.facts) - 2
        self.check(site, body, states)
        collected = [value.type for value in body.outputs[1 + states :]]
        facts = [Fact(value.type) for value in body.outputs[1 : 1 + states]]
        if collected:
            trips = self.collected(site, body, states)
            facts += [Fact(stacked_type(type, 0, trips, body, body.inputs[0])) for type in collected]
        return facts

    def check(self, site: Site, body: Graph, states: int) -> None:
        if site.has(0) and (site.type(0).dtype is not i64 or site.type(0).count != 1):
            raise Invalid(f"the trip count is {site.type(0)}, not one i64")
        if site.has(1) and (site.type(1).dtype is not bool_ or site.type(1).count != 1):
            raise Invalid(f"the condition is {site.type(1)}, not one bool")
        if states < 0 or len(body.inputs) != 2 + states or len(body.outputs) < 1 + states:
            raise Invalid(
                f"with {max(states, 0)} carried values its body has {len(body.inputs)} inputs "
                f"and {len(body.outputs)} outputs"
            )
        if body.outputs[0].type.dtype is not bool_ or body.outputs[0].type.count != 1:
            raise Invalid(f"its body gives {body.outputs[0].type} as the condition, not one bool")
        if not site.has(0) and not _ends_early(site, body):
            raise Invalid("it has no trip count, and its condition is always true: it never ends")
        check_states([site.type(2 + n) for n in range(states)], body.outputs[1 : 1 + states])

    def trips(self, site: Site, body: Graph) -> Dim | None:
        """How often it runs, where that follows from numbers and sizes."""
        count = _known_trips(site)
        if not _ends_early(site, body):
            return count
        ends = trips_by_condition(site, body) if count is not None or _never_ends(site) else None
        return ends if ends is None or count is None else minimum(ends, count)

    def collected(self, site: Site, body: Graph, states: int) -> Dim:
        """How many elements it collects: as many as there are trips."""
        trips = self.trips(site, body)
        if trips is not None:
            return trips
        results = range(states, site.outputs)
        present = [n for n in results if n < len(site.results) and site.results[n] is not None]
        if site.name and _known_trips(site) is None and not any(_said(limit) for limit in site.limits[states:]):
            for number in present:  # what the model declares is what it will be
                declared = site.results[number]
                if declared is not None and declared.rank and isinstance(declared.shape[0], int):
                    return declared.shape[0]
        return site.size(present[0] if present else states, 0, _bound(body))

    def gradient(self, back: Backward) -> None:
        body, states = back.forward.regions[0], len(back.forward.inputs) - 2
        values = [back.input(2 + n) for n in range(states)]
        collected = list[list[Value]]()
        for trip in trips_of(back, body, self.trips(back.site, body)):
            own = [np.full(value.type.static_shape, n) for value, n in zip(body.inputs, (trip, True), strict=False)]
            _, *made = copied(back, body, [*map(back.constant, own), *values])
            values = made[:states]
            collected.append(made[states:])
        back.instead([*values, *(stacked(back, parts, 0) for parts in zip(*collected, strict=True))], everywhere=True)

    def fixed_trips(self, site: Site) -> bool:
        return isinstance(self.trips(site, site.regions[0]), int)

    def lower(self, to: Lowering) -> None:
        site, body = to.site, to.node.regions[0]
        states = len(to.node.inputs) - 2
        trips = _known_trips(site)
        writer = LoopWriter(to, body, [to.input(2 + n) for n in range(states)])
        first = seen_through(body.inputs[1])
        early = _ends_early(site, body)
        true = to.constant(np.array(True), "true")
        start = to.input(1) if to.has(1) and early else true
        start = to.reshape(start, body.inputs[1].type.shape)
        if early and seen_through(body.outputs[0]) is not first:
            writer.carry(1, start, 0)
        else:
            writer.bind(1, start)
        if early:
            writer.condition = to.reshape(writer.bound[1], ())
        for number in range(states):
            writer.state(2 + number, 1 + number)
        writer.collect([(1 + states + n, 0, False) for n in range(len(body.outputs) - 1 - states)])
        count: int | View = trips if isinstance(trips, int) else MANY
        if not isinstance(trips, int) and not _never_ends(site):
            count = to.reshape(to.input(0), ())
        dims = [to.type(n).shape[0] for n in range(states, len(to.node.outputs)) if to.wants(n)]
        bound, follows = _bound(body), self.trips(site, body)
        if bound is None and dims and follows is not None:
            bound = upper(follows)
            writer.counter = symbol(counter_name(to.provenance[0]), 0, bound - 1)
        if not isinstance(trips, int) and bound is not None:
            writer.bounded(count, bound, 0)
        else:
            writer.run(count, 1 + states, 0)
        if dims and (not isinstance(trips, int) or early):
            writer.counted(dims[0])


def _one(node: OnnxNode, region: int, position: int) -> tuple[int, ...]:
    """The shape of the counter or of the condition in the body: exporters declare scalars, or vectors of one."""
    rank = node.rank(region, position) or 0
    if rank > 1:
        what = "condition" if position else "counter"
        raise Invalid(f"its body declares the {what} with rank {rank}, and it is a scalar or a vector of one element")
    return (1,) * rank


def _carried(fact: Fact, added: Dim | None) -> Fact:
    """What is known of a carried value in a trip, where so much has been added to it and nothing has wrapped around."""
    start, dtype = single(fact.value), fact.type.dtype
    if added is None or not isinstance(added, Symbolic) or start is None or not dtype.is_integer:
        return Fact(fact.type)
    low, high = bounds(start + added)
    if low < dtype.low or high > dtype.high:
        return Fact(fact.type)
    value = np.empty(fact.type.static_shape, dtype=object)
    value[...] = start + added
    return Fact(fact.type, value)


def _counter_fact(node: str, trips: int | None, shape: tuple[int, ...]) -> Fact:
    type = TensorType(i64, shape)
    if trips is None or trips < 1:
        return Fact(type)
    value = np.empty(shape, dtype=object)
    value[...] = symbol(counter_name(node), 0, trips - 1)
    return Fact(type, value)


def _said(limit: Limit) -> bool:
    return limit.most(0) is not None


def _most_trips(node: OnnxNode) -> int | None:
    """The most trips that a loop can make whose trip count is known only at run time, where something bounds it."""
    states = max(len(node.inputs) - 2, 0)
    said = [node.most[0]] if 0 in node.most else []
    said += [most for limit in node.limits[states:] if (most := limit.most(0)) is not None]
    if said:
        return max(min(said), 1)
    declared = [type.shape[0] for type in node.results[states:] if type is not None and type.rank]
    sizes = [size for size in declared if isinstance(size, int)]
    otherwise = node.limits[0].otherwise if node.limits and node.outputs > states else None
    return max(min(sizes), 1) if sizes else otherwise


def _bound(body: Graph) -> int | None:
    """The most trips that addresses in the body allow."""
    value = body.inputs[0].fact.value
    return bounds(value.item())[1] + 1 if value is not None else None


def _known_trips(site: Site) -> Dim | None:
    """The trip count, where it is known and meant to be one."""
    count = single(site.value(0))
    return maximum(count, 0) if count is not None and upper(count) < MANY else None


def _never_ends(site: Site) -> bool:
    """Is there no trip count, or one that nobody means?"""
    count = single(site.value(0))
    return not site.has(0) or (count is not None and bounds(count)[0] >= MANY)


def _ends_early(site: Site, body: Graph) -> bool:
    """Can the condition end the loop before its trip count?"""
    if _known_trips(site) == 0:
        return False
    start = True
    if site.has(1):
        known = site.value(1)
        start = known is not None and known.size == 1 and known.item() is True
    after = seen_through(body.outputs[0])
    if after is body.inputs[1]:
        return not start
    known = after.fact.value
    return not (
        start and known is not None and known.size == 1 and bool(known.item()) and isinstance(known.item(), int)
    )
