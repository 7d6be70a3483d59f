"""The order of operators whose peak of live bytes is smallest.

What is alive depends only on WHICH nodes have run, not on their order. So the search walks over sets of nodes that have
run ("states"), and a path to the full set is an order; its peak is the highest step on the path.

- A node that every other node must come before or after cuts the graph in two; the pieces are solved one by one, the
  heaviest first, and a piece that already stays under the peak of another is left as it is.
- If a node that is ready raises neither the peak so far nor the live bytes, running it now is never wrong: moved to the
  front of any order it only lowers the steps it overtakes. This removes most of the choices.
- Small pieces are solved exactly: the state with the lowest peak is continued first, so the first complete one is
  optimal. Large ones, and small ones that take too much work, are searched with a beam: the best few states of each
  length are kept.

Invariant: the answer is a topological order, its peak is never larger than that of the given order (which is kept when
nothing is gained), and effort is a count of steps, so it is the same on every machine.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mccompile.base.errors import InternalError

EXACT_NODES = 400
EXACT_WORK = 200_000  # steps tried, in all pieces together
BEAM_WORK = 600_000
BEAM_WIDTH = 64
BEAM_CHOICES = 32  # of the nodes that are ready, so many are considered
REMEMBERED = 64  # answers: trials of where tensors lie ask for the same order again and again


@dataclass(frozen=True, slots=True)
class Node:
    """A node runs after its `dependencies` (those that follow from the tensors need not be repeated).

    Its result may be laid over one of the tensors `overwrites` that dies with it; `workspace` bytes live only while it
    runs.
    """

    dependencies: tuple[int, ...] = ()
    overwrites: tuple[int, ...] = ()
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """Alive from its producer (None: from the start) to its last consumer, or to the end if it is an output."""

    bytes: int
    producer: int | None
    consumers: tuple[int, ...]
    is_output: bool = False


def best_order(nodes: Sequence[Node], tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """A topological order with a small peak; the given order of the nodes (0, 1, 2, ...) must be one."""
    return _found(tuple(nodes), tuple(tensors))


@lru_cache(REMEMBERED)
def _found(nodes: tuple[Node, ...], tensors: tuple[Tensor, ...]) -> tuple[int, ...]:
    graph = _Graph(nodes, tensors)
    pieces = [_Piece(graph, first, last) for first, last in graph.pieces()]
    live = graph.live_at_start()
    for piece in pieces:
        live = piece.start(live)
    work = EXACT_WORK
    floor = max((piece.peak for piece in pieces if len(piece.nodes) == 1), default=0)
    for piece in sorted(pieces, key=lambda piece: (-piece.peak, piece.first)):
        if piece.peak > floor:
            work -= piece.improve(floor, work)
            floor = max(floor, piece.peak)
    return tuple(node for piece in pieces for node in piece.nodes)


def results_first(nodes: Sequence[Node], tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """An order that always runs what the fewest results depend on, of equal nodes the first of the given order: what
    only leads to a result runs in front of what leads on to others."""
    graph, order = _Graph(nodes, tensors), list[int]()
    results = [0] * len(nodes)  # that depend on each node, as a set of bits
    for node in reversed(range(len(nodes))):
        for after in graph.after[node]:
            results[node] |= results[after]
        results[node] = results[node] or 1 << node
    waits = [len(before) for before in graph.before]
    ready = [(results[node].bit_count(), node) for node, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for after in graph.after[node]:
            waits[after] -= 1
            if not waits[after]:
                heapq.heappush(ready, (results[after].bit_count(), after))
    return tuple(order)


def peak_of(nodes: Sequence[Node], tensors: Sequence[Tensor], order: Sequence[int]) -> int:
    """The largest number of live bytes in the course of an order."""
    piece = _Piece(_Graph(nodes, tensors), 0, len(nodes))
    live = highest = piece.graph.live_at_start()
    done = 0
    for node in order:
        during, live = piece.run(node, done, live)
        highest = max(highest, during)
        done |= 1 << node
    return highest


class _Graph:
    def __init__(self, nodes: Sequence[Node], tensors: Sequence[Tensor]) -> None:
        self.nodes, self.tensors = nodes, tensors
        self.reads: list[list[int]] = [[] for _ in nodes]
        self.born = [0] * len(nodes)  # bytes that come to life with a node
        self.stillborn = [0] * len(nodes)  # those of them that nobody wants
        before = [set(node.dependencies) for node in nodes]
        for index, tensor in enumerate(tensors):
            for consumer in sorted(set(tensor.consumers)):
                self.reads[consumer].append(index)
                if tensor.producer is not None:
                    before[consumer].add(tensor.producer)
            if tensor.producer is not None:
                self.born[tensor.producer] += tensor.bytes
                if not tensor.consumers and not tensor.is_output:
                    self.stillborn[tensor.producer] += tensor.bytes
        self.before = [sorted(found) for found in before]
        self.after: list[list[int]] = [[] for _ in nodes]
        for node, found in enumerate(self.before):
            if found and not 0 <= found[0] <= found[-1] < node:
                raise InternalError(f"the given order runs node {node} before one of {found}, which it depends on")
            for earlier in found:
                self.after[earlier].append(node)

    def live_at_start(self) -> int:
        return sum(t.bytes for t in self.tensors if t.producer is None and (t.consumers or t.is_output))

    def pieces(self) -> list[tuple[int, int]]:
        """Half-open ranges of the given order: the nodes that are comparable to all others, and the runs between.

        Node p comes after all earlier ones if each of these has a successor at p or before (then p is the only end of
        the part up to p); it comes before all later ones if each of those has a predecessor at p or after.
        """
        count = len(self.nodes)
        first_after = [min(after, default=count) for after in self.after]
        last_before = [max(before, default=-1) for before in self.before]
        begins_rest = [True] * count
        lowest = count
        for p in range(count - 1, -1, -1):
            begins_rest[p] = lowest >= p
            lowest = min(lowest, last_before[p])
        ranges, start, highest = [], 0, -1
        for p in range(count):
            if highest <= p and begins_rest[p]:
                ranges += [(start, p), (p, p + 1)] if start < p else [(p, p + 1)]
                start = p + 1
            highest = max(highest, first_after[p])
        return [*ranges, (start, count)] if start < count else ranges


@dataclass(frozen=True, slots=True)
class _State:
    """Nodes that have run and those ready (bits, counted from the first node of the piece), and how it came about."""

    done: int
    ready: int
    live: int
    peak: int
    path: tuple[int, object] | None


class _Step(NamedTuple):
    """What a node does to live bytes."""

    born: int
    during: int
    after: int
    deaths: list[tuple[int, int, bool]]  # tensors that die if these have run: bytes, and whether they are overwritten


class _Piece:
    """A range of the given order that can be solved on its own."""

    def __init__(self, graph: _Graph, first: int, last: int) -> None:
        self.graph, self.first, self.last = graph, first, last
        self.nodes: Sequence[int] = range(first, last)
        self.peak = self.live = self.end = self.work = 0  # live bytes before and after
        touched = sorted({i for node in self.nodes for i in graph.reads[node]})
        # The consumers inside the piece of each tensor that can die in it.
        self.waits = {i: self._bits(graph.tensors[i].consumers) for i in touched if self._can_die(graph.tensors[i])}
        self.needs = {node: self._bits(graph.before[node]) for node in self.nodes}
        self.steps = {node: self._step(node) for node in self.nodes}
        later = {node: [n for n in graph.after[node] if n < last] for node in self.nodes}
        self.unlocks = {node: [(1 << (n - first), self.needs[n]) for n in later[node]] for node in self.nodes}

    def start(self, live: int) -> int:
        """Fix the live bytes before the piece; returns those after it."""
        self.live = live
        done = 0
        for node in self.nodes:
            step, live = self.run(node, done, live)
            self.peak = max(self.peak, step)
            done |= 1 << (node - self.first)
        self.end = live
        return live

    def improve(self, floor: int, work: int) -> int:
        """Find an order with a smaller peak; below `floor` a smaller one is not worth anything.

        At most `work` steps are spent on an exact search; returns how many were.
        """
        self.work = 0
        if self.peak <= self._least():
            return 0
        found = self._exact(floor, work) if len(self.nodes) <= EXACT_NODES else None
        spent = self.work
        found = found or self._beam(floor)
        if found.peak < self.peak:
            self.peak = found.peak
            self.nodes = _nodes_of(found)
        return spent

    def _least(self) -> int:
        """No order has a smaller peak: one node runs before all others, and one when all others have run."""
        everything = (1 << len(self.nodes)) - 1
        first = min(self.run(node, 0, self.live)[0] for node in self.nodes if not self.needs[node])
        lasts = [node for node in self.nodes if not any(later < self.last for later in self.graph.after[node])]
        ends = (self.run(node, everything, 0) for node in lasts)
        return max(first, min(self.end - after + during for during, after in ends))

    def _exact(self, floor: int, work: int) -> _State | None:
        """Best first over states; None if that takes too much work."""
        start = self._forced(self._start_state(floor))
        heap = [(start.peak, -start.done.bit_count(), 0, start)]
        best = {start.done: start.peak}
        pushed = 0
        while heap and self.work < work:
            _, _, _, state = heapq.heappop(heap)
            if not state.ready:
                return state
            if best[state.done] < state.peak:
                continue
            for node in self.members(state.ready):
                child = self._forced(self._child(state, node))
                if child.peak >= self.peak or best.get(child.done, child.peak + 1) <= child.peak:
                    continue
                best[child.done] = child.peak
                pushed += 1
                heapq.heappush(heap, (child.peak, -child.done.bit_count(), pushed, child))
        return None if heap else self._given()

    def _beam(self, floor: int) -> _State:
        width = max(1, min(BEAM_WIDTH, BEAM_WORK // (len(self.nodes) * BEAM_CHOICES)))
        states = [self._start_state(floor)]
        for _ in self.nodes:
            steps: dict[int, tuple[int, int, int, int]] = {}  # done -> (peak, live, parent, node)
            for parent, state in enumerate(states):
                for node in itertools.islice(self.members(state.ready), BEAM_CHOICES):
                    during, live = self.run(node, state.done, state.live)
                    done = state.done | 1 << (node - self.first)
                    step = (max(state.peak, during), live, parent, node)
                    free = during <= state.peak and live <= state.live
                    if done not in steps or step < steps[done]:
                        steps[done] = step
                    if free:
                        break
            best = heapq.nsmallest(width, steps.values())
            states = [self._child(states[parent], node) for _, _, parent, node in best]
        return states[0]

    def _start_state(self, floor: int) -> _State:
        return _State(0, self.ready_at_start(), self.live, floor, None)

    def ready_at_start(self) -> int:
        return self._bits([node for node in self.nodes if not self.needs[node]])

    def _given(self) -> _State:
        path: tuple[int, object] | None = None
        for node in self.nodes:
            path = (node, path)
        return _State(0, 0, 0, self.peak, path)

    def _forced(self, state: _State) -> _State:
        """Run what is ready as long as there is no choice or a step is free."""
        while state.ready:
            alone = state.ready.bit_count() == 1
            for node in self.members(state.ready):
                during, live = self.run(node, state.done, state.live)
                if alone or (during <= state.peak and live <= state.live):
                    state = self._child(state, node)
                    break
            else:
                return state
        return state

    def _child(self, state: _State, node: int) -> _State:
        during, live = self.run(node, state.done, state.live)
        done = state.done | 1 << (node - self.first)
        ready = self.ready_after(node, state.done, state.ready)
        return _State(done, ready, live, max(state.peak, during), (node, state.path))

    def ready_after(self, node: int, done: int, ready: int) -> int:
        """What can run once `node` has run besides `done`."""
        bit = 1 << (node - self.first)
        done, ready = done | bit, ready & ~bit
        for later, needs in self.unlocks[node]:
            if not needs & ~done:
                ready |= later
        return ready

    def members(self, bits: int) -> Iterator[int]:
        """The nodes of a set, in the given order."""
        while bits:
            lowest = bits & -bits
            yield self.first + lowest.bit_length() - 1
            bits ^= lowest

    def _step(self, node: int) -> _Step:
        graph, bit = self.graph, 1 << (node - self.first)
        born, over = graph.born[node], graph.nodes[node].overwrites
        deaths = [
            (self.waits[i] & ~bit, graph.tensors[i].bytes, i in over) for i in graph.reads[node] if i in self.waits
        ]
        return _Step(born, born + graph.nodes[node].workspace, born - graph.stillborn[node], deaths)

    def run(self, node: int, done: int, live: int) -> tuple[int, int]:
        """Live bytes while a node runs and after it."""
        self.work += 1
        step = self.steps[node]
        freed = shared = 0
        for waits, size, over in step.deaths:
            if not waits & ~done:
                freed += size
                if over and size > shared:
                    shared = size
        return live + step.during - min(shared, step.born), live + step.after - freed

    def _can_die(self, tensor: Tensor) -> bool:
        return not tensor.is_output and max(tensor.consumers) < self.last

    def _bits(self, nodes: Sequence[int]) -> int:
        bits = 0
        for node in set(nodes):
            if self.first <= node < self.last:
                bits |= 1 << (node - self.first)
        return bits


def _nodes_of(state: _State) -> list[int]:
    nodes = []
    path = state.path
    while path is not None:
        node, rest = path
        nodes.append(node)
        assert rest is None or isinstance(rest, tuple)
        path = rest
    return nodes[::-1]
