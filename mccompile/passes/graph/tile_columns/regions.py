"""Parts of a graph that can be computed in tiles of columns: all nodes between two values through which every path
goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from ....base.dims import static
from ....base.records import dataclass
from ....graph.ir import Graph, Node, Value
from .column_steps import COLUMNS, ROWS, USUAL, Axes, ColumnStep, Span, column_step


@dataclass(frozen=True)
class CutValue:
    """A value of four axes through which everything goes."""

    value: Value
    nodes: tuple[Node, ...]  # that make it out of the one before


class Region:
    """Nodes in the graph's order; the last one makes what they are for."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes

    @property
    def last(self) -> Value:
        return self.nodes[-1].output

    @cached_property
    def steps(self) -> dict[Node, ColumnStep]:
        """Those of nodes that are computed by columns."""
        axes, found = {self.last: USUAL}, dict[Node, ColumnStep]()
        for node in reversed(self.nodes):
            step = column_step(node, axes[node.output]) if node.outputs[0] in axes else None
            if step is None:
                continue
            found[node] = step
            for position in step.reads(ROWS, (0, 1)):
                x = node.inputs[position]
                if x is not None and axes.setdefault(x, step.axes) != step.axes:
                    del found[node]
        return found

    @cached_property
    def axes(self) -> dict[Value, Axes]:
        """Which axes are rows and columns."""
        operands = {x: self.steps[node].axes for node in self.steps for x, _ in self.reads(node, ROWS, (0, 1))}
        return {self.last: USUAL, **operands}

    def size(self, x: Value, which: int) -> int:
        """How many rows or columns it has."""
        return static(x.type.shape[self.axes[x][which]])

    @property
    def is_whole(self) -> bool:
        """Is every node computed by columns, and all of them from one value?"""
        made = {node.output for node in self.nodes}
        outside = {x for node in self.nodes for x in node.present_inputs if x.constant is None and x not in made}
        return len(self.steps) == len(self.nodes) and len(outside) == 1

    def spans(self, count: int) -> list[dict[Value, Span]] | None:
        """Which columns of each value the tiles need. None: there are no such tiles."""
        tiles = [self._needed(self._tile(number, count)) for number in range(count)]
        return tiles if all(low < high for tile in tiles for low, high in tile.values()) else None

    def widths(self, count: int) -> list[dict[Value, int]]:
        """How many columns of each value each tile needs."""
        tiles = (self._needed(self._tile(number, count)) for number in range(count))
        return [{x: high - low for x, (low, high) in tile.items()} for tile in tiles]

    def _tile(self, number: int, count: int) -> Span:
        width = self.size(self.last, COLUMNS)
        return width * number // count, width * (number + 1) // count

    def _needed(self, span: Span) -> dict[Value, Span]:
        found = {self.last: span}
        for node in reversed(self.nodes):
            if node.output not in found:
                continue
            for x, wanted in self.reads(node, COLUMNS, found[node.output]):
                low, high = self.within(wanted, x)
                before = found.get(x, (low, high))
                found[x] = min(low, before[0]), max(high, before[1])
        return found

    def held(self, inside: Collection[Value] = (), narrow: Collection[Node] = (), rows: int = 1) -> dict[Value, int]:
        """How many rows of each value between the first and the last are held at once where all runs by rows; in the
        order in which they are made. Those `inside` of bottlenecks are not: rows under them are made again, for so many
        rows at a time of what the nodes in `narrow` make."""
        read = self.lines(inside, narrow, rows)
        held = {node.output: read[node.output] for node in self.nodes[:-1] if node.output in read}
        held |= dict.fromkeys(inside, 0)
        return {x: 0 if number == 1 and self._is_overwritten(x) else number for x, number in held.items()}

    def lines(self, inside: Collection[Value] = (), narrow: Collection[Node] = (), rows: int = 1) -> dict[Value, int]:
        """Of each value that is read by rows, how many its readers need at once."""
        newest, oldest = {self.last: 0}, dict[Value, int]()
        for node in reversed(self.nodes):
            if node.output not in newest:
                continue
            row = newest[node.output]
            first = oldest[node.output] if node.output in inside else row - (rows - 1) * (node in narrow)
            for x, (low, high) in self.reads(node, ROWS, (first, row + 1)):
                newest[x] = max(newest.get(x, high - 1), high - 1)
                oldest[x] = min(oldest.get(x, low), low)
        return {x: min(newest[x] - oldest[x] + 1, self.size(x, ROWS)) for x in oldest}

    def _is_overwritten(self, x: Value) -> bool:
        """By the result of the only node that reads it."""
        readers = [node for node in self.nodes if any(value is x for value in node.inputs)]
        return len(readers) == 1 and self.steps[readers[0]].alike

    def reads(self, node: Node, which: int, span: Span) -> Iterator[tuple[Value, Span]]:
        for position, wanted in self.steps[node].reads(which, span).items():
            x = node.inputs[position]
            assert x is not None
            yield x, wanted

    def within(self, span: Span, x: Value) -> Span:
        """As far as x has such columns."""
        return max(span[0], 0), min(span[1], self.size(x, COLUMNS))


def ways_through(graph: Graph) -> list[CutValue]:
    """In the graph's order. An input counts from its first reader on."""
    nodes = list(graph.nodes)
    last_read: dict[Value, int] = dict.fromkeys(graph.outputs, len(nodes))
    for place, node in enumerate(nodes):
        for value in node.present_inputs:
            last_read[value] = max(place, last_read.get(value, 0))
    inputs = {value for value in graph.inputs if value in last_read}
    alive = {value for node in nodes[:1] for value in node.present_inputs if value in inputs}
    found, before, known = list[CutValue](), 0, set[Value]()
    steps: list[Node | None] = [None, *nodes]
    for place, step in enumerate(steps):
        if step is not None:
            alive.update(value for value in step.present_inputs if value in inputs)
            alive.update(value for value in step.present_outputs if value in last_read)
            alive = {value for value in alive if last_read[value] >= place}
        only = next(iter(alive)) if len(alive) == 1 else None
        if only is not None and only not in known and only.type.rank == 4 and only.type.is_static:
            known.add(only)
            found.append(CutValue(only, tuple(nodes[before:place])))
            before = place
    return found


def region(graph: Graph, first: str, last: str) -> Region | None:
    """None: between values of these names lies nothing, or something that is not computed by columns."""
    ways = ways_through(graph)
    places = {way.value.name: number for number, way in enumerate(ways)}
    if first not in places or places.get(last, 0) <= places[first]:
        return None
    found = Region(tuple(node for way in ways[places[first] + 1 : places[last] + 1] for node in way.nodes))
    return found if found.is_whole else None
