"""What can run row by row, how many rows each ring needs, and which calls to join: the search of form_rows.

A chain is a run of calls in the program's order whose results, but the last, are read by calls of the chain alone. The
last call drives: before it makes some rows it has the calls that feed it make the rows that those need, and so on. Who
makes rows when follows from the shapes alone, so playing it through once tells how many rows of each result are in use
at most; no formula has to be right.

Invariant: `play` refuses every chain in which a row would be read before it is made or after it was overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..base.budgets import budgets
from ..base.dims import static
from ..kinds.concat import Concat
from ..kinds.conv import Conv
from ..kinds.map import Map
from ..kinds.pad import Pad
from ..kinds.pool import Pool
from ..program.ir import CONSTANT, TEMPORARY, Buffer, Call, Item, Program, Pull, View, reads, walk, writes
from ..program.relocate import covers_in_any_order
from .api import Context

LONGEST = 24  # calls in a chain


@dataclass(frozen=True)
class Window:
    """Rows of an operand behind a row of the result: y * stride - pad and `size` of them."""

    operand: int
    stride: int = 1
    pad: int = 0
    size: int = 1

    def low(self, row: int) -> int:
        return max(0, row * self.stride - self.pad)

    def end(self, end: int, height: int) -> int:
        """How many rows the operand needs before the result has `end`."""
        return max(0, min(height, (end - 1) * self.stride - self.pad + self.size))

    @property
    def pull(self) -> tuple[int, int]:
        return self.stride, self.size - self.pad - self.stride


@dataclass(frozen=True)
class RowCall:
    """A call that can run row by row."""

    call: Call
    axis: int  # of the result
    height: int
    windows: tuple[Window, ...]  # of the operands whose rows are known
    kernel: str
    scratch: tuple[int, int]  # bytes and alignment
    alias: frozenset[int]  # operands that the result may be written over
    takes_all: bool = False  # its rows are those of the operand, and the result is there after the last: ends a chain


@dataclass
class Chain:
    """How a chain runs."""

    first: int
    last: int
    lines: dict[Buffer, int]  # of the results that stay inside
    ring_bytes: dict[Buffer, int]
    scratch: int  # calls run one after the other, so they share it, but for those that keep something from row to row
    pulls: list[tuple[Pull, ...]]  # per call, those it pulls
    over: list[Buffer] = field(default_factory=list)  # operands from outside that the last result may be written over
    before: dict[Buffer, int] = field(
        default_factory=dict
    )  # bytes before those where the last result may begin instead
    in_place: dict[int, int] = field(
        default_factory=dict
    )  # per call, the operand whose rows its own may be written over
    steps: int = 0


def row_calls(program: Program, context: Context) -> list[RowCall | None]:
    """Per item of the body, how it can run row by row; None where it cannot."""
    known = _row_strides(program.body)
    found: list[RowCall | None] = []
    for item in program.body:
        found.append(_row_call(item, known, context) if isinstance(item, Call) else None)
    return found


Feeds = list[tuple[int, Window]]  # calls of the chain that a call reads from
Strides = dict[Buffer, tuple[int, int]]  # of the rows of a buffer, and their number


def _row_strides(body: Sequence[Item]) -> Strides:
    """Along which steps the rows of each buffer lie: windows say it, elementwise calls hand it on."""
    known: Strides = {}
    for item in body:
        if isinstance(item, Call) and isinstance(item.kind, Conv | Pool) and len(item.outs[0].shape) > 3:
            for view in (item.outs[0], item.ins[0], *item.ins[item.kind.fixed :]):
                _note(known, view, 2)
    for line in (body, list(reversed(body)), body):
        for item in line:
            if isinstance(item, Call) and isinstance(item.kind, Map | Concat | Pad):
                axis = _map_axis(item, known)
                for view in (*item.outs, *item.ins) if axis is not None else ():
                    if len(view.shape) == len(item.outs[0].shape):
                        _note(known, view, axis or 0)
    return known


def _note(known: Strides, view: View, axis: int) -> None:
    if (
        view.buffer.role != CONSTANT
        and view.is_static
        and static(view.strides[axis]) > 0
        and static(view.shape[axis]) > 1
    ):
        known.setdefault(view.buffer, (static(view.strides[axis]), static(view.shape[axis])))


def _map_axis(call: Call, known: Strides) -> int | None:
    for view in (*call.outs, *call.ins):
        if view.buffer in known:
            axes = [a for a in range(len(view.shape)) if (view.strides[a], view.shape[a]) == known[view.buffer]]
            if axes:
                return axes[0]
    return None


def _row_call(call: Call, known: Strides, context: Context) -> RowCall | None:
    kind, out = call.kind, call.outs[0]
    views = (*call.ins, *call.outs)
    if not all(v.is_static and isinstance(v.offset, int) and not v.buffer.dtype.is_packed for v in views):
        return None
    windows: list[Window] = []
    takes_all = False
    if isinstance(kind, Conv):
        axis = 2
        reach = (static(call.ins[1].shape[2]) - 1) * kind.dilations[0] + 1
        windows.append(Window(0, kind.strides[0], kind.pads[0], reach))
        windows += [Window(index) for index in range(kind.fixed, len(call.ins))]
    elif isinstance(kind, Pool):
        axis = 2
        windows.append(Window(0, kind.strides[0], kind.pads[0], (kind.kernel[0] - 1) * kind.dilations[0] + 1))
        windows += [Window(index) for index in range(kind.fixed, len(call.ins))]
        if static(out.shape[2]) == 1 and not any(kind.pads) and kind.kernel[0] == call.ins[0].shape[2]:
            takes_all, windows = True, [Window(0)]
    elif isinstance(kind, Map | Concat | Pad):
        found = _map_axis(call, known)
        if found is None:
            return None
        axis = found
        windows += [Window(index) for index, view in enumerate(call.ins) if len(view.shape) > axis]
    else:
        return None
    draft = replace(call, rows=axis)
    choice = context.registry.choose(draft, context.target)
    fit = [c for c in choice.candidates if axis in c.needs.rows and not c.needs.dense and not c.needs.dense_outs]
    if not fit:
        return None
    best = min(fit, key=lambda c: c.kernel.id != call.kernel)  # the one it has, if that can
    height = static(call.ins[0].shape[2] if takes_all else out.shape[axis])
    scratch = best.needs.scratch, best.needs.scratch_align
    alias = frozenset(operand for (_, operand), before in best.needs.alias.items() if before == 0)
    return (
        RowCall(call, axis, height, tuple(windows), best.kernel.id, scratch, alias, takes_all) if height > 1 else None
    )


class Chains:
    """Plays chains of one program."""

    def __init__(self, program: Program, calls: Sequence[RowCall | None]) -> None:
        self.calls = calls
        self.readers: dict[Buffer, list[int]] = {}
        self.makers: dict[Buffer, list[int]] = {}
        self.work = budgets().rows
        for number, item in enumerate(program.body):
            for view in _all_reads(item):
                self.readers.setdefault(view.buffer, []).append(number)
            for view in _all_writes(item):
                self.makers.setdefault(view.buffer, []).append(number)
        self.outputs = {view.buffer for _, view in program.outputs}

    def play(self, first: int, last: int, step: int = 1, overlapping: bool = False) -> Chain | None:
        """How the calls `first`..`last` run together; None if they cannot. `overlapping`: also how the last result can
        overlap operands."""
        calls = [call for call in self.calls[first : last + 1] if call is not None]
        if len(calls) != last + 1 - first or self.work <= 0:
            return None
        maker = {call.call.outs[0].buffer: number for number, call in enumerate(calls)}
        for buffer, number in maker.items():
            if number == len(calls) - 1:
                continue
            if calls[number].takes_all:
                return None
            readers = self.readers.get(buffer, [])
            if not readers or buffer.overlap or buffer.role != TEMPORARY or buffer in self.outputs:
                return None
            if not all(first <= reader <= last for reader in readers) or self.makers[buffer] != [first + number]:
                return None
            if not covers_in_any_order(calls[number].call.outs[0]):
                return None
        feeds: list[Feeds] = []
        for call in calls:
            own = []
            for window in call.windows:
                source = call.call.ins[window.operand].buffer
                if source in maker and maker[source] != len(calls) - 1:
                    own.append((maker[source], window))
            inside = {call.call.ins[w.operand].buffer for _, w in own}
            if any(v.buffer in maker and v.buffer not in inside for v in call.call.ins):
                return None
            feeds.append(own)
        heights = [call.height for call in calls]
        tree = _tree(feeds, heights)
        if tree is None:
            return None
        trees = [tree, eager] if (eager := _eager(feeds, tree, heights)) != tree else [tree]
        played = [self._run(first, last, calls, feeds, one, step, overlapping) for one in trees]
        return min((c for c in played if c is not None), key=lambda c: sum(c.ring_bytes.values()), default=None)

    def _run(
        self,
        first: int,
        last: int,
        calls: list[RowCall],
        feeds: list[Feeds],
        tree: list[Feeds],
        step: int,
        overlapping: bool,
    ) -> Chain | None:
        heights = [call.height for call in calls]
        consumers: list[Feeds] = [[] for _ in calls]
        for number, own in enumerate(feeds):
            for source, window in own:
                consumers[source].append((number, window))
        outside: dict[Buffer, list[tuple[int, Window]]] = {}
        for number, call in enumerate(calls):
            for window in call.windows:
                view = call.call.ins[window.operand]
                if view.buffer.role != CONSTANT and not any(w is window for _, w in feeds[number]):
                    outside.setdefault(view.buffer, []).append((number, window))
        over = {buffer for buffer, users in outside.items() if any(n == len(calls) - 1 for n, _ in users)}
        made_row = _row_bytes(calls[-1].call.outs[0], calls[-1].axis)
        read_rows = {buffer: _read_row_bytes(buffer, users, calls) for buffer, users in outside.items()}
        before = {
            buffer: 0
            for buffer, bytes in read_rows.items()
            if overlapping and bytes and made_row and not calls[-1].takes_all
        }
        made = [0] * len(calls)
        lines = [0] * len(calls)
        steps = 0

        def pull(number: int, wanted: int) -> bool:
            nonlocal steps
            while made[number] < wanted:
                end = min(made[number] + step, heights[number])
                steps += 1
                if steps > self.work:
                    return False
                for source, window in tree[number]:
                    if not pull(source, window.end(end, heights[source])):
                        return False
                for source, window in feeds[number]:
                    if made[source] < window.end(end, heights[source]):
                        return False
                using = [w.low(made[n]) for n, w in consumers[number] if made[n] < heights[n]]
                lines[number] = max(lines[number], end - min(using, default=made[number]))
                if number == len(calls) - 1:
                    for buffer in list(over):
                        for user, window in outside[buffer]:
                            ahead = made[user] >= heights[user] or window.low(made[user]) >= end
                            if user != number and not ahead:
                                over.discard(buffer)
                    for buffer in before:
                        lows = [w.low(made[user]) for user, w in outside[buffer] if made[user] < heights[user]]
                        if lows:
                            before[buffer] = max(before[buffer], end * made_row - min(lows) * read_rows[buffer])
                made[number] = end
            return True

        done = pull(len(calls) - 1, heights[-1])
        self.work -= steps
        if not done:
            return None
        in_place = _in_place(calls, tree, consumers, lines)
        results = [call.call.outs[0].buffer for call in calls]
        rings = {buffer: min(lines[n], heights[n]) for n, buffer in enumerate(results[:-1])}
        shared = {source for source, _ in in_place.values()}
        sizes = {
            buffer: 0 if n in shared else buffer.max_bytes // heights[n] * rings[buffer]
            for n, buffer in enumerate(results[:-1])
        }
        return Chain(
            first,
            last,
            rings,
            sizes,
            sum(call.scratch[0] for call in calls if call.takes_all)
            + max((call.scratch[0] for call in calls if not call.takes_all), default=0),
            [tuple(Pull(source, *window.pull) for source, window in own) for own in tree],
            sorted(over, key=lambda b: b.name),
            before,
            {number: operand for number, (_, operand) in in_place.items()},
            steps,
        )


def _row_bytes(view: View, axis: int) -> int:
    """Bytes of a row, where a view shows whole rows of its buffer, one after the other; else 0."""
    size = static(view.strides[axis]) * view.buffer.dtype.bits // 8
    return size if covers_in_any_order(view) and size * static(view.shape[axis]) == view.buffer.type.max_bytes else 0


def _read_row_bytes(buffer: Buffer, users: Feeds, calls: list[RowCall]) -> int:
    """Bytes of a row of an operand from outside; 0 where somebody does not read it by rows."""
    readers = [(n, view) for n, call in enumerate(calls) for view in call.call.ins if view.buffer is buffer]
    by_rows = [(calls[n].call.ins[window.operand], operand_axis(calls[n], window)) for n, window in users]
    sizes = {_row_bytes(view, axis) for view, axis in by_rows}
    return sizes.pop() if len(sizes) == 1 and len(readers) == len(users) and buffer.role != CONSTANT else 0


def operand_axis(call: RowCall, window: Window) -> int:
    """The axis of rows of an operand: that of the result, but for what is pooled as a whole."""
    return 2 if call.takes_all else call.axis


def _in_place(
    calls: list[RowCall], tree: list[Feeds], consumers: list[Feeds], lines: list[int]
) -> dict[int, tuple[int, int]]:
    """Calls whose rows may lie where those of another call did, which are made just before and for nobody else: the
    other call, and which operand that is. The ring of that one gets as many rows as that of the result."""
    found: dict[int, tuple[int, int]] = {}
    for number in range(len(calls) - 2, 0, -1):
        out = calls[number].call.outs[0]
        for source, window in tree[number]:
            if consumers[source] != [(number, window)]:
                continue
            view = calls[number].call.ins[window.operand]
            alike = (view.shape, view.offset, view.buffer.dtype.bits) == (out.shape, 0, out.buffer.dtype.bits)
            if (
                (window.pull, window.pad) == ((1, 0), 0)
                and window.operand in calls[number].alias
                and alike
                and all(a == b or n == 1 for n, a, b in zip(out.shape, view.strides, out.strides, strict=True))
                and view.buffer.max_bytes == out.buffer.max_bytes
            ):
                found[number] = source, window.operand
                lines[source] = lines[number]
                break
    return found


def _tree(feeds: list[Feeds], heights: list[int]) -> list[Feeds] | None:
    """Who pulls whom: each call but the last once, by the reader that needs the most rows of it when half of the result
    is made (of several the one that runs first). None if a call is not read."""
    count = len(feeds)
    needs = [0] * count
    needs[-1] = max(1, heights[-1] // 2)
    puller: list[tuple[int, Window] | None] = [None] * count
    for number in range(count - 1, -1, -1):
        for source, window in feeds[number]:
            wanted = window.end(needs[number], heights[source])
            if puller[source] is None or wanted >= needs[source]:
                needs[source], puller[source] = wanted, (number, window)
    tree: list[Feeds] = [[] for _ in feeds]
    below: list[set[int]] = [{number} for number in range(count)]
    for number in range(count - 1):
        found = puller[number]
        if found is None:
            return None
        tree[found[0]].append((number, found[1]))
        below[found[0]] |= below[number]
    return [_in_order(own, feeds, below) for own in tree]


def _in_order(own: Feeds, feeds: list[Feeds], below: list[set[int]]) -> Feeds:
    """What one call pulls, such that rows that one branch makes and another one reads are made first."""
    left = sorted(own, key=lambda feed: -len(below[feed[0]]))
    ordered: Feeds = []
    while left:

        def waits(number: int) -> bool:
            read = {source for inner in below[number] for source, _ in feeds[inner]}
            return any(other != number and read & below[other] for other, _ in left)

        chosen = next((feed for feed in left if not waits(feed[0])), left[0])
        ordered.append(chosen)
        left.remove(chosen)
    return ordered


def _eager(feeds: list[Feeds], tree: list[Feeds], heights: list[int]) -> list[Feeds]:
    """The same tree, but a shortcut that makes as many rows as another reader of its source runs beside that one, and
    not only when its result is wanted: its source, mostly of more or longer rows, need not wait for it."""
    moved = [list(own) for own in tree]
    for number, own in enumerate(tree):
        for source, window in own:
            if window.pull != (1, 0) or not feeds[source]:
                continue
            behind, reach = feeds[source][0]
            for other in range(len(feeds)):
                beside = [w for s, w in feeds[other] if s == behind]
                if other in (source, number) or not beside or heights[other] != heights[source]:
                    continue
                if beside[0].stride == reach.stride:
                    moved[number].remove((source, window))
                    moved[other].append((source, window))
                    break
    return moved


def _all_reads(item: Item) -> list[View]:
    return [view for inner in walk([item]) for view in reads(inner)]


def _all_writes(item: Item) -> list[View]:
    return [view for inner in walk([item]) for view in writes(inner)]
