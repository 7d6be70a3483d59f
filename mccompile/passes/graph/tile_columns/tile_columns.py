"""tile_columns: spatial tiling with recomputation. Parts of the graph are computed in tiles of columns, one after the
other, so that line buffers (fuse_line_buffers) are as wide as a tile. The halo, where windows of two tiles overlap,
is computed twice. The pass also marks the bottlenecks that become single calls (fuse_bottlenecks), because their nodes
still exist here.

Which parts, and how many tiles, is decided by driver/recomputing.py from what this pass says that they take.

Invariant: every element is computed as before, from the same operands in the same order.
"""

from __future__ import annotations

import numpy as np

from ....base.constant import Constant
from ....base.names import new_name
from ....graph.ir import Graph, Value
from ....ops.concat import JoinStrips
from ....ops.slice import Slice
from ...api import Context, Cut
from ..eliminate_dead import eliminate_dead
from .bottlenecks import bottlenecks
from .column_steps import COLUMNS, USUAL, Span
from .conv_global_pool import pooled
from .expected import expected
from .expected_copies import expected_copies
from .regions import Region, region, ways_through


def tile_columns(graph: Graph, context: Context) -> None:
    memory = context.memory
    if memory.recompute > 1:
        ways = ways_through(graph)
        context.cuts.extend(Cut(w.value.name, frozenset(n for node in w.nodes for n in node.provenance)) for w in ways)
        context.column_tiles.extend(expected_copies(ways, memory) if memory.copied else expected(ways, memory))
    for tiles in memory.column_tiles:
        found = region(graph, tiles.first, tiles.last)
        for each in bottlenecks(found) if found is not None and tiles.rows else ():
            context.bottlenecks[frozenset(each.slide.provenance)] = tiles.rows
        pool = pooled(found) if found is not None else None
        if pool is not None:
            context.channel_blocks[frozenset(pool.provenance)] = tiles.count
            continue
        spans = found.spans(tiles.count) if found is not None and tiles.count > 1 else None
        if found is not None and spans is not None:
            _Splitting(graph, found).split(spans)
            eliminate_dead(graph, context)


class _Splitting:
    def __init__(self, graph: Graph, region: Region) -> None:
        self.graph, self.region = graph, region
        self.names = {value.name for value in graph.values()}

    def split(self, tiles: list[dict[Value, Span]]) -> None:
        last = self.region.last
        parts = [self.tile(needed) for needed in tiles]
        assert last.producer is not None
        joined = self.graph.compute(
            JoinStrips(USUAL[COLUMNS]), parts, [self.name(last.name)], last.producer.provenance
        )[0]
        self.graph.replace(last, joined)
        if not self.graph.is_output(joined):  # which has the name already
            joined.name, last.name = last.name, joined.name
        self.graph.sort()

    def tile(self, needed: dict[Value, Span]) -> Value:
        """The columns of the result that are `needed`."""
        made: dict[Value, Value] = {}
        for node in self.region.nodes:
            if node.output not in needed:
                continue
            step, (left, right) = self.region.steps[node], (0, 0)
            operands = list(node.inputs)
            for position, wanted in step.reads(COLUMNS, needed[node.output]).items():
                x = node.inputs[position]
                assert x is not None
                there = self.region.within(wanted, x)
                left, right = there[0] - wanted[0], wanted[1] - there[1]
                operands[position] = self.columns(x, made.get(x, x), there, needed[x] if x in made else None)
            made[node.output] = self.graph.compute(
                step.op(left, right), operands, [self.name(node.output.name)], node.provenance
            )[0]
        return made[self.region.last]

    def columns(self, x: Value, value: Value, wanted: Span, there: Span | None) -> Value:
        """The columns `wanted` of x; `value` holds those that are `there`, or all."""
        first, end = there or (0, self.region.size(x, COLUMNS))
        if (first, end) == wanted:
            return value
        numbers = [wanted[0] - first, wanted[1] - first, self.region.axes[x][COLUMNS]]
        bounds = [self.constant(np.array([number], np.int64), x.name) for number in numbers]
        provenance = self.region.nodes[0].provenance if x.producer is None else x.producer.provenance
        return self.graph.compute(Slice(), [value, *bounds], [self.name(x.name)], provenance)[0]

    def constant(self, array: np.ndarray, name: str) -> Value:
        return Value.of_constant(self.name(f"{name}/columns"), Constant.of(array))

    def name(self, text: str) -> str:
        return new_name(text, self.names)
