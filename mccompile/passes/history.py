"""Records what becomes of the model's nodes from pass to pass, by the names in the provenance.

Invariant: a name that was there after one pass is there after the next one, or has a fate: the pass, and what stands in
the node's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum

from ..base.provenance import Provenance, merge
from ..base.records import dataclass
from ..graph.ir import Graph, Node, Value, all_nodes, graphs
from ..program import ir


class How(StrEnum):
    FOLDED = "folded"  # its results are constants
    REPLACED = "replaced"  # what read its results reads those of other nodes, or of inputs
    VIEWED = "viewed"  # no code: addresses and strides of those that read it
    UNREAD = "unread"  # nobody reads its results
    FUSED = "fused"  # other calls do what it did


@dataclass(frozen=True)
class Disposition:
    stage: str  # the pass
    how: How
    into: Provenance  # names of constants, or of what stands in its place


_Item = tuple[Provenance, object, object]  # of a node or call: what it stands for, itself, its operator or kind


@dataclass
class History:
    fates: dict[str, Disposition] = field(default_factory=dict)
    passes: dict[str, list[str]] = field(default_factory=dict)  # that changed what carries a name
    _items: list[_Item] = field(default_factory=list)  # keeps what the keys are of alive
    _keys: dict[str, tuple[object, ...]] = field(default_factory=dict)
    _nodes: list[tuple[Node, list[Value | None]]] = field(default_factory=list)  # of the last graph

    def see(self, stage: str, whole: object) -> None:
        """After a pass, and after what makes one IR of another."""
        if isinstance(whole, Graph):
            nodes = list(all_nodes(whole))
            items: list[_Item] = [(n.provenance, n, n.op) for n in nodes]
        elif isinstance(whole, ir.Program):
            nodes = []
            items = [*_of_program(whole.body)]
        else:
            return
        if not self._keys:
            _forget(whole)
        elif len(items) == len(self._items) and all(map(_is_as_before, items, self._items)):
            self._note_nodes(whole, nodes)
            return
        found: dict[str, tuple[object, ...]] = {}
        for provenance, item, kind in items:
            for name in provenance:
                found[name] = (*found.get(name, ()), (id(item), id(kind)))
        self._lose(stage, self._keys.keys() - found.keys(), lowered=not isinstance(whole, Graph))
        for name, keys in found.items():
            self.fates.pop(name, None)
            if self._keys.get(name) != keys:
                self.passes.setdefault(name, []).append(stage)
        self._items, self._keys = items, found
        self._note_nodes(whole, nodes)

    def _note_nodes(self, whole: object, nodes: Sequence[Node]) -> None:
        if isinstance(whole, Graph):
            self._nodes = [(node, list(node.outputs)) for node in nodes]

    def _lose(self, stage: str, lost: Iterable[str], lowered: bool) -> None:
        by_name: dict[str, list[tuple[Node, list[Value | None]]]] = {}
        wanted = set(lost)
        for node, outputs in self._nodes if wanted else ():
            for name in wanted.intersection(node.provenance):
                by_name.setdefault(name, []).append((node, outputs))
        for name in sorted(wanted):
            made = [value for _, outputs in by_name.get(name, ()) for value in outputs if value is not None]
            how, into = _lowered(made, stage) if lowered else _replaced(made)
            self.fates[name] = Disposition(stage, how, into)


def _is_as_before(now: _Item, before: _Item) -> bool:
    return now[0] == before[0] and now[1] is before[1] and now[2] is before[2]


def _forget(whole: object) -> None:
    """What an earlier try to compile the graph has replaced."""
    for graph in graphs(whole) if isinstance(whole, Graph) else ():
        for value in graph.values():
            value.became = None


def _replaced(made: list[Value]) -> tuple[How, Provenance]:
    """What stands in place of values that are gone."""
    ends = [_end(value) for value in made]
    constants = [end.name for end in ends if end.constant is not None]
    if constants:
        return How.FOLDED, merge(constants)
    others = [_maker(end) for end, value in zip(ends, made, strict=True) if end is not value]
    if others:
        return How.REPLACED, merge(*others)
    readers = merge(*(reader.provenance for value in made for reader, _ in value.uses))
    return (How.FUSED, readers) if readers else (How.UNREAD, ())


def _lowered(made: list[Value], stage: str) -> tuple[How, Provenance]:
    """Of the last graph, seen from the program: nodes that are views of what others make."""
    readers: dict[str, None] = {}
    left, seen = list(made), set[Value]()
    while left:
        value = left.pop()
        if value not in seen:
            seen.add(value)
            for reader, _ in value.uses:
                readers |= dict.fromkeys(reader.provenance)
                left += [output for output in reader.outputs if output is not None]
    if made and all(value.fact.value is not None or value.constant is not None for value in made):
        return How.FOLDED, tuple(value.name for value in made)
    if not made:  # a call that the program alone had
        return How.UNREAD, ()
    how = How.VIEWED if stage == "lower" else How.FUSED
    return how, tuple(readers) or tuple(value.name for value in made)


def _end(value: Value) -> Value:
    """What is read in its place; two that took each other's place end with either."""
    seen = set[Value]()
    while value.became is not None and value not in seen:
        seen.add(value)
        value = value.became
    return value


def _maker(value: Value) -> Provenance:
    return value.producer.provenance if value.producer is not None else (value.name,)


def _of_program(body: Iterable[ir.Item]) -> Iterator[tuple[Provenance, object, object]]:
    for item in ir.walk(body):
        if isinstance(item, ir.Rows):
            yield from ((stage.call.provenance, stage.call, stage.call.kind) for stage in item.stages)
        yield item.provenance, item, item.kind if isinstance(item, ir.Call) else item
