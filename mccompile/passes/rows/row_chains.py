"""Which calls can run row by row, how many rows each ring buffer needs, and which calls to join: the search of
fuse_line_buffers.

A chain is a run of calls in the program's order whose results, but the last, are read by calls of the chain alone. The
last call drives: before it makes some rows it has the calls that feed it make the rows that those need, and so on. Who
makes rows when follows from the shapes alone, so playing it through once tells how many rows of each result are in use
at most; no formula has to be right.

Invariant: `play` refuses every chain in which a row would be read before it is made or after it was overwritten.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from ...base.budgets import budgets
from ...base.dims import static, upper
from ...base.records import dataclass
from ...kernels.registry import Candidate
from ...kinds.bottleneck import Bottleneck
from ...kinds.conv import Conv
from ...kinds.conv_transpose import ConvTranspose
from ...kinds.dft import Dft
from ...kinds.fetch import Fetch
from ...kinds.pool import Pool
from ...kinds.resize import Resize
from ...kinds.transfer import Transfer
from ...program.ir import CONSTANT, TEMPORARY, Buffer, Call, Item, Program, View, reads, walk, writes
from ...program.planar import turned
from ...program.pull import Pull
from ..api import Context
from .row_call import RowCall, RowFacts, comes_early, read_row_bytes, rows_at_a_time
from .row_play import Feeds, Window, Wired, consumers_of, played, trees_of
from .row_windows import AXIS, FOLLOWING, axes_of_rows, followers, pooled_whole, windows_of

LONGEST = 24  # calls in a chain
WINDOWS = (Conv, ConvTranspose, Bottleneck, Pool, Resize)


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
    steps: list[int] = field(default_factory=list)  # rows that each makes at a time


def row_calls(program: Program, context: Context) -> list[RowCall | None]:
    """Per item of the body, how it can run row by row; None where it cannot."""
    known = row_strides(program.body, _turns(context))
    found: list[RowCall | None] = []
    for item in program.body:
        found.append(_row_call(item, known, context) if isinstance(item, Call) else None)
    return found


Strides = dict[Buffer, tuple[int, int]]  # of the rows of a buffer, and their number


def _turns(context: Context) -> bool:
    """Do signals run moment by moment? Kernels that compute several positions at once have one then, so only where
    memory comes first."""
    return context.memory.worth != 1


def row_strides(body: Sequence[Item], turns: bool = False) -> Strides:
    """Along which steps the rows of each buffer lie: windows say it, elementwise calls hand it on. `turns`: signals go
    along time."""
    known: Strides = {}
    for item in body:
        if isinstance(item, Call) and isinstance(item.kind, WINDOWS) and len(item.outs[0].shape) > 3:
            along = (turns and turned(item)) or item
            for view in (along.outs[0], along.ins[0], *along.ins[item.kind.fixed :]):
                _note(known, view, AXIS)
        if isinstance(item, Call) and isinstance(item.kind, Dft) and len(item.outs[0].shape) > 2:
            frames = item.outs[0].shape[:-2]
            _note(known, item.outs[0], max(range(len(frames)), key=lambda axis: upper(frames[axis])))
    for line in (body, list(reversed(body)), body):
        for item in line:
            if isinstance(item, Call) and isinstance(item.kind, FOLLOWING):
                axis = _row_axis(item, known)
                for view in (item.outs[0], *(item.ins[n] for n in followers(item))) if axis is not None else ():
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


def _row_axis(call: Call, known: Strides) -> int | None:
    for view in (*call.outs, *(call.ins[number] for number in followers(call))):
        if view.buffer in known:
            possible = axes_of_rows(call)
            axes = [
                axis
                for axis in range(len(view.shape))
                if (view.strides[axis], view.shape[axis]) == known[view.buffer]
                and (possible is None or axis in possible)
            ]
            if axes:
                return axes[0]
    return None


def _row_call(call: Call, known: Strides, context: Context) -> RowCall | None:
    call = (_turns(context) and _turned(call)) or call
    kind, out = call.kind, call.outs[0]
    views = (*call.ins, *call.outs)
    if not all(v.is_static and isinstance(v.offset, int) and not v.buffer.dtype.is_packed for v in views):
        return None
    axis, takes_all = AXIS, pooled_whole(call)
    if isinstance(kind, FOLLOWING):
        found = _row_axis(call, known)
        if found is None:
            return None
        axis, windows = found, [Window(index) for index in followers(call) if len(call.ins[index].shape) > found]
    elif isinstance(kind, Fetch):
        axis, windows = kind.axis, []
    elif isinstance(kind, Transfer):
        axis, windows = kind.axis, [Window(0)]
    else:
        said = windows_of(call)
        if said is None:
            return None
        windows = said
    fit = _row_kernels(call, axis, context)
    if not fit:
        return None
    best = min(fit, key=lambda c: c.kernel.id != call.kernel)  # the one it has, if that can
    height = static(call.ins[0].shape[AXIS] if takes_all else out.shape[axis])
    scratch = best.needs.scratch, best.needs.scratch_align
    alias = frozenset(operand for (_, operand), before in best.needs.alias.items() if before == 0)
    fewest = kind.rows if isinstance(kind, Bottleneck) else 1
    if height < 2:
        return None
    time = best.cost.time
    most = max(fewest, int(context.max_slice * height / max(time, 1))) if context.max_slice else sys.maxsize
    return RowCall(call, axis, height, tuple(windows), best.kernel.id, scratch, alias, time, fewest, most, takes_all)


def _row_kernels(call: Call, axis: int, context: Context) -> list[Candidate]:
    """Those that make rows of it, the fastest first."""
    choice = context.registry.choose(replace(call, rows=axis), context.target)
    return [c for c in choice.candidates if axis in c.needs.rows and not c.needs.dense and not c.needs.dense_outs]


def frugal_kernel(call: RowCall, context: Context) -> RowCall | None:
    """The same call with the fastest kernel of those that make its rows in less workspace; None where there is none."""
    for candidate in _row_kernels(call.call, call.axis, context):
        needs = candidate.needs
        if needs.scratch < call.scratch[0]:
            alias = frozenset(operand for (_, operand), before in needs.alias.items() if before == 0)
            scratch, time = (needs.scratch, needs.scratch_align), candidate.cost.time
            return replace(call, kernel=candidate.kernel.id, scratch=scratch, alias=alias, time=time)
    return None


def _turned(call: Call) -> Call | None:
    """A signal as a picture of one column, whatever kernel suits that."""
    found = turned(call)
    return found and replace(found, kernel="", blocks=())


@dataclass(frozen=True)
class _Played:
    work: int  # steps that it took
    chain: Chain | None  # with what the last result may overlap; None where the steps did not suffice


class Chains:
    """Plays chains of one program."""

    def __init__(self, program: Program, calls: Sequence[RowCall | None]) -> None:
        self.calls = calls
        self.readers: dict[Buffer, list[int]] = {}
        self.makers: dict[Buffer, list[int]] = {}
        self.work = budgets().rows
        self.known: dict[tuple[int, int, tuple[int, ...]], tuple[_Played, ...]] = {}
        self.facts = [RowFacts.of(call) if call is not None else None for call in calls]
        for number, item in enumerate(program.body):
            for view in _all_reads(item):
                self.readers.setdefault(view.buffer, []).append(number)
            for view in _all_writes(item):
                self.makers.setdefault(view.buffer, []).append(number)
        self.outputs = {view.buffer for _, view in program.outputs}
        results: dict[Buffer, list[int]] = {}
        for number, fact in enumerate(self.facts):
            if fact is not None:
                results.setdefault(fact.result, []).append(number)
        self.read = [self._read_between(number) for number in range(len(calls))]
        self.fed = [self._fed(call, results) if call is not None else [] for call in calls]
        # Calls whose results each call needs as a whole: it is in no chain with them.
        self.whole = [
            [maker for buffer in fact.whole for maker in results.get(buffer, ())] if fact is not None else []
            for fact in self.facts
        ]

    def again(self) -> None:
        """From here on there may be as much work as for a new one; what was played counts, but is not played again."""
        self.work = budgets().rows

    def _read_between(self, number: int) -> tuple[int, int] | None:
        """The first and the last reader of a result that may stay inside a chain; else None."""
        call, fact = self.calls[number], self.facts[number]
        if call is None or fact is None or call.takes_all or not fact.covers:
            return None
        buffer, readers = fact.result, self.readers.get(fact.result, [])
        if not readers or buffer.overlap or buffer.role != TEMPORARY or buffer in self.outputs:
            return None
        return (readers[0], readers[-1]) if self.makers[buffer] == [number] else None

    def _fed(self, call: RowCall, results: dict[Buffer, list[int]]) -> list[tuple[int, Window]]:
        """Which calls make the rows that a call reads, and how these are counted then."""
        return [
            (number, window.of(rows_at_a_time(call, window, made.height)))
            for window in call.windows
            for number in results.get(call.call.ins[window.operand].buffer, ())
            if (made := self.calls[number]) is not None
        ]

    def play(self, first: int, last: int, step: int | Sequence[int] = 1, overlapping: bool = False) -> Chain | None:
        """How the calls `first`..`last` run together; None if they cannot. `overlapping`: also how the last result can
        overlap operands."""
        if self.work <= 0 or not self._may_run(first, last):
            return None
        calls = [call for call in self.calls[first : last + 1] if call is not None]
        asked = zip(_each(step, len(calls)), calls, strict=True)
        steps = tuple([min(max(one, call.fewest), call.height) for one, call in asked])
        key = first, last, steps
        if key not in self.known:
            self.known[key] = tuple(self._played(first, last, calls, steps))
        played = list[Chain]()
        for one in self.known[key]:
            self.work -= one.work
            if one.chain is not None and self.work >= 0:
                played.append(one.chain)
        best = min(played, key=lambda c: sum(c.ring_bytes.values()), default=None)
        return best if best is None or overlapping else replace(best, before={})

    def _may_run(self, first: int, last: int) -> bool:
        """Do results but the last stay inside, and is all that is only there by rows read by rows?"""
        for number in range(first, last):
            read = self.read[number]
            if read is None or read[0] < first or read[1] > last:
                return False
        for number in range(first, last + 1):
            if self.calls[number] is None or any(first <= maker <= last for maker in self.whole[number]):
                return False
            if any(maker == last for maker, _ in self.fed[number]):
                return False
        return True

    def _played(self, first: int, last: int, calls: list[RowCall], steps: tuple[int, ...]) -> Iterator[_Played]:
        """Each way in which the rows may be pulled."""
        facts = [fact for fact in self.facts[first : last + 1] if fact is not None]
        early = [comes_early(call) for call in calls]
        feeds = tuple(
            [
                tuple(
                    [
                        (maker - first, window.ahead(steps[maker - first]) if early[maker - first] else window)
                        for maker, window in self.fed[number]
                        if maker >= first
                    ]
                )
                for number in range(first, last + 1)
            ]
        )
        for tree in trees_of(feeds, tuple([call.height for call in calls])):
            yield self._run(first, last, calls, facts, feeds, tree, steps)

    def _run(
        self,
        first: int,
        last: int,
        calls: list[RowCall],
        facts: list[RowFacts],
        feeds: Wired,
        tree: Wired,
        step: tuple[int, ...],
    ) -> _Played:
        results = [fact.result for fact in facts]
        inside, made_row = set(results), facts[-1].row
        outside: dict[Buffer, list[tuple[int, Window]]] = {}
        for number, fact in enumerate(facts):
            for buffer, window in fact.outside:
                if buffer not in inside:
                    outside.setdefault(buffer, []).append((number, window))
        readers = Counter([buffer for fact in facts for buffer in fact.operands])
        reads = tuple(
            [(tuple(users), read_row_bytes(buffer, users, facts, readers[buffer])) for buffer, users in outside.items()]
        )
        heights, limit = tuple(call.height for call in calls), budgets().rows
        run = played(feeds, tree, heights, reads, made_row, step, limit)
        if not run.done:
            return _Played(run.steps, None)
        lines, consumers = list(run.lines), consumers_of(feeds)
        never = frozenset[Buffer]().union(*(fact.folded | fact.whole for fact in facts))
        over = [b for b, is_over in zip(outside, run.over, strict=True) if is_over and b not in never]
        rigid = made_row and not calls[-1].takes_all
        far = zip(outside, run.before, reads, strict=True)
        before = {buffer: nbytes for buffer, nbytes, (_, row) in far if rigid and row}
        in_place = _in_place(calls, tree, consumers, lines, step)
        rings = {buffer: min(lines[n], heights[n]) for n, buffer in enumerate(results[:-1])}
        shared = {source for source, _ in in_place.values()}
        sizes = {
            buffer: 0 if n in shared else facts[n].result_bytes // heights[n] * rings[buffer]
            for n, buffer in enumerate(results[:-1])
        }
        chain = Chain(
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
            list(step),
        )
        return _Played(run.steps, chain)


def _each(step: int | Sequence[int], count: int) -> Sequence[int]:
    return [step] * count if isinstance(step, int) else step


def _in_place(
    calls: list[RowCall], tree: Wired, consumers: list[Feeds], lines: list[int], step: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """Calls whose rows may lie where those of another call did, which are made just before and for nobody else: the
    other call, and which operand that is. The ring of that one gets as many rows as that of the result."""
    found: dict[int, tuple[int, int]] = {}
    for number in range(len(calls) - 2, 0, -1):
        out = calls[number].call.outs[0]
        for source, window in tree[number]:
            if consumers[source] != [(number, window)] or step[source] != step[number]:
                continue
            view = calls[number].call.ins[window.operand]
            alike = (view.shape, view.offset, view.buffer.dtype.bits) == (out.shape, 0, out.buffer.dtype.bits)
            if (
                (window.pull, window.pad) == ((1, 0, 1), 0)
                and window.operand in calls[number].alias
                and alike
                and all(a == b or n == 1 for n, a, b in zip(out.shape, view.strides, out.strides, strict=True))
                and view.buffer.max_bytes == out.buffer.max_bytes
            ):
                found[number] = source, window.operand
                lines[source] = lines[number]
                break
    return found


def _all_reads(item: Item) -> list[View]:
    return [view for inner in walk([item]) for view in reads(inner)]


def _all_writes(item: Item) -> list[View]:
    return [view for inner in walk([item]) for view in writes(inner)]
