"""fuse_line_buffers: chains of convolutions, pools and elementwise calls run row by row. Between them are line buffers
of a few rows (`ring` in the code) instead of whole tensors.

A cut of the program's line into chains (of one call: as before) costs the largest of what its chains cost: their rings,
and what lives outside meanwhile. The best cut is found by dynamic programming: the least peak, then the fewest calls in
chains. It is taken only if the memory that comes out is really smaller. Where a number of bytes is enough, fewer calls
are better than fewer bytes below it. Results that begin before operands make rigid blocks, which may not lie close:
where calls may be done again, cuts with less of that are tried, as long as they cost less than the arena so far.

Nothing is computed twice, and every call computes what it did before, in another order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from ...base.dims import static
from ...base.dtypes import u8
from ...base.errors import InternalError
from ...base.records import dataclass, replace
from ...base.tensor import dense_strides
from ...kernels.api import Needs
from ...kernels.remembered import remembered
from ...memory.interval import align_up
from ...program.clone import clone
from ...program.ir import (
    CONSTANT,
    EXTERNAL,
    Buffer,
    Call,
    Item,
    Program,
    Rows,
    Stage,
    Storage,
    View,
    reads,
    root,
    scratches,
    walk,
    writes,
)
from ...program.relocate import Move
from ...program.taken_names import taken_names
from ..api import Context
from ..memory.bring_states import early_states
from ..memory.in_place import write_in_place
from ..memory.state import bind_states
from ..rows.row_call import RowCall, operand_axis, rows_at_a_time
from ..rows.row_chains import LONGEST, Chain, Chains, row_calls
from ..rows.row_cuts import row_cut
from .bufferize import best_choice, peak_of, size_of

Chosen = list[Chain]
STEPS = (1, 2, 4)  # rows at a time that are tried: more rows, less time


def fuse_line_buffers(program: Program, context: Context) -> None:
    enough_bytes = context.memory.enough
    if not context.memory.rows or context.memory.copied:
        return
    context = replace(context, registry=remembered(context.registry, context.target))
    calls = row_calls(program, context)
    if not any(calls):
        return
    best: Chosen = []
    tried, before = [best], 0
    search = _Search(Chains(program, calls), _Outside(program, context), Rings(program, calls, context))
    # Blocks that overlap are rigid: whether they lie close is known in the end, and with fewer rows they lie closer,
    # which is tried where the user gives time for memory.
    ways: list[tuple[bool, Sequence[int]]] = [(False, STEPS), (True, STEPS)]
    for overlapping, steps in (*ways, *[(True, STEPS[:1])] * bool(context.memory.column_tiles)):
        if len(steps) == 1 and not any(_moves_far(tried)):
            break
        for enough in dict.fromkeys((enough_bytes, 0)):
            chains = best_chains(program, context, search, overlapping, enough, steps)
            if chains in tried:
                continue
            if tried == [[]]:
                before = peak_of(program, context, best_choice(program, context))
                if before <= enough_bytes:
                    return
                least = before - enough_bytes, 0  # bytes that are too many, then calls
            tried.append(chains)
            reached = _measured(program, context, chains, enough_bytes, least if overlapping else None)
            if reached < least:
                best, least = chains, reached
    while context.memory.again > 1 and any(any(chain.before.values()) for chain in best) and least > (0, 0):
        chains = best_chains(program, context, search, True, enough_bytes + least[0] - 1, STEPS[:1], rigid=False)
        if chains in tried:
            break
        tried.append(chains)
        reached = _measured(program, context, chains, enough_bytes, least)
        if reached >= least:
            break
        best, least = chains, reached
    if best:
        form_all(program, best, calls, program.buffers(), context)
        program.call_by_call = before


def _measured(
    program: Program, context: Context, chains: Chosen, enough: int, least: tuple[int, int] | None
) -> tuple[int, int]:
    """Bytes that are too many with these chains, then calls. `least`: if blocks may be rigid, what is not placed unless
    it can come below this."""
    trial = clone(program)
    form_all(trial, chains, row_calls(trial, context), program.buffers(), context)
    choice = best_choice(trial, context, thorough=False)
    nbytes, work = peak_of(trial, context, choice), _row_calls(trial) if enough else 0
    if least is not None and (max(0, nbytes - enough), work) < least:
        nbytes = size_of(trial, context, choice)
    return max(0, nbytes - enough), work


def _moves_far(tried: Sequence[Chosen]) -> Iterator[bool]:
    """Are there chains whose results begin before operands, two or more rows at a time, and several of these?"""
    for chains in tried:
        yield sum(max(chain.steps) > 1 and any(chain.before.values()) for chain in chains) > 1


def _row_calls(program: Program) -> int:
    stages = (stage for item in program.body if isinstance(item, Rows) for stage in item.stages)
    return sum(-(-stage.height // stage.step) for stage in stages)


# -- which


def best_chains(
    program: Program,
    context: Context,
    search: _Search,
    overlapping: bool,
    enough: int = 0,
    steps: Sequence[int] = STEPS,
    rigid: bool = True,
) -> Chosen:
    """Chains of calls. Each makes as many rows at a time as memory allows: first all of a chain, then those calls that
    save most by it. `overlapping`: results may begin a little before operands; then one call is a chain as well where
    that is needed. `enough`: bytes, of which fewer are no better. `steps`: rows at a time that are tried. Not
    `rigid`: results begin as little before operands as such chains allow, even if more calls are in chains then."""
    player, outside, rings = search.player, search.outside, search.rings
    player.again()
    calls, weights = player.calls, _weights(program.body)
    count = len(program.body)
    room = context.memory.window * 7 // 8 or sys.maxsize  # packed they may be larger
    costs: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int], Chain] = {}
    whole = [outside.cost(last, last, None) for last in range(count)]
    costs |= {(k, k): cost for k, cost in enumerate(whole)}
    floor = max((costs[k, k] for k in range(count) if calls[k] is None), default=0)
    for last in range(count):
        for first in range(last, max(-1, last - LONGEST), -1):
            if calls[first] is None or calls[last] is None:
                break
            if all(whole[k] <= floor for k in range(first, last + 1)):
                continue  # nothing to gain here
            if room < sys.maxsize and first < last and _sum(weights[first : last + 1]) > room:
                continue  # all of them are in the window at once
            chain = player.play(first, last, 1, overlapping)
            if chain is not None and rings.possible(chain):
                cost = outside.cost(first, last, chain)
                if first < last or cost < whole[last]:
                    found[first, last], costs[first, last] = chain, cost
    joined = {(first, last): last - first for first, last in costs}
    peak = max(enough, row_cut(count, costs, joined, None)[0])
    if not rigid:
        far = {at: max(chain.before.values(), default=0) for at, chain in found.items()}
        joined = {at: calls + count * far.get(at, 0) for at, calls in joined.items()}
    elif context.memory.again > 1:
        joined |= {(k, k): LONGEST for k in range(count) if whole[k] > peak}
    joined |= {(k, k): 0 for k in range(count) if whole[k] <= peak}
    _, cuts = row_cut(count, costs, joined, peak)
    chosen: Chosen = []
    for first, last in cuts:
        if first == last and whole[last] <= peak:
            continue
        best = found[first, last]
        members = [call for call in calls[first : last + 1] if call is not None]
        for step in steps[1:]:
            wider = player.play(first, last, [min(step, call.most) for call in members], overlapping)
            if wider is not None and outside.cost(first, last, wider) <= peak:
                best = wider
        each = sorted(range(len(members)), key=lambda n: (-members[n].saved(context.target.machine.row), n))
        for number, step in ((number, step) for number in each for step in reversed(steps)):
            if step <= best.steps[number] or members[number].height <= step // 2 or step > members[number].most:
                continue
            wanted = [step if n == number else old for n, old in enumerate(best.steps)]
            wider = player.play(first, last, wanted, overlapping)
            if wider is not None and outside.cost(first, last, wider) <= peak:
                best = wider
        chosen.append(best)
    return chosen


def _weights(items: Sequence[Item]) -> list[dict[Buffer, int]]:
    """Constants that each item reads, and their bytes."""
    constants = [[view.buffer for view in reads(item) if view.buffer.role == CONSTANT] for item in items]
    return [{buffer: buffer.max_bytes for buffer in read} for read in constants]


def _sum(weights: Sequence[dict[Buffer, int]]) -> int:
    """Of those that several read once."""
    together: dict[Buffer, int] = {}
    for each in weights:
        together |= each
    return sum(together.values())


class _Outside:
    """What lives beside a chain, when everything else runs call by call and in place where it can."""

    def __init__(self, program: Program, context: Context) -> None:
        self.align = context.target.align
        self.results = [item.outs[0].buffer if isinstance(item, Call) else None for item in program.body]
        trial = clone(program)
        write_in_place(trial, context.registry, context.target, context.memory.keep_inputs)
        bind_states(trial, context.registry, context.target)
        twins = dict(zip(trial.buffers(), program.buffers(), strict=True))
        self.roots = {twins[b]: twins[root(b)[0]] for b in trial.buffers()}
        self.scratches = {buffer for item in walk(program.body) for buffer in scratches(item)}
        self.spans: dict[Buffer, list[int]] = {buffer: [-1, -1] for _, buffer in program.inputs}
        for time, item in enumerate(program.body):
            for inner in walk([item]):
                for buffer in [*(view.buffer for view in (*reads(inner), *writes(inner))), *scratches(inner)]:
                    if buffer.role != CONSTANT:
                        self.spans.setdefault(buffer, [time, time])[1] = time
        kept = program.lasting_inputs(context.memory.keep_inputs)
        for buffer in [*(view.buffer for _, view in program.outputs if view.buffer.role != CONSTANT), *kept]:
            self.spans[buffer][1] = len(program.body)
        for early in early_states(trial):
            self.spans[twins[early.made.buffer]][1] = early.behind
        self.spans = {buffer: span for buffer, span in self.spans.items() if buffer.role != EXTERNAL}
        self.sizes = {buffer: align_up(buffer.max_bytes, self.align) for buffer in self.spans}

    def cost(self, first: int, last: int, chain: Chain | None) -> int:
        inside = chain.lines if chain is not None else {}
        total = (
            sum(align_up(size, self.align) for size in (*chain.ring_bytes.values(), chain.scratch))
            if chain is not None
            else 0
        )
        over = {self.roots.get(buffer) for buffer in chain.over} if chain is not None else set()
        groups: dict[object, int] = {}
        members: dict[object, list[Buffer]] = {}
        for buffer, (start, end) in self.spans.items():
            if buffer in inside or start > last or end < first:
                continue
            if chain is not None and buffer in self.scratches:
                continue  # of a call in the chain, which asks for another one there
            lies_in = self.roots.get(buffer, buffer)
            key: object = lies_in
            if chain is not None and start >= first and lies_in not in over:
                key = (buffer, "made here")
            groups[key] = max(groups.get(key, 0), self.sizes[buffer])
            members.setdefault(key, []).append(buffer)
        alone = {found[0] for found in members.values() if len(found) == 1}
        gained = self.gained(last, chain, alone) if chain is not None else 0
        return total + sum(groups.values()) - gained

    def gained(self, last: int, chain: Chain, alone: set[Buffer]) -> int:
        """Bytes less where the last result begins a little before an operand that dies, instead of beside it. `alone`:
        what shares its memory with nobody now."""
        result = self.results[last]
        if result not in alone:
            return 0
        best = 0
        for buffer, nbytes in chain.before.items():
            if buffer in alone and self.spans[buffer][1] <= last:
                beside = sum(align_up(b.max_bytes, self.align) for b in (buffer, result))
                together = align_up(max(result.max_bytes, align_up(nbytes, self.align) + buffer.max_bytes), self.align)
                best = max(best, beside - together)
        return best


@dataclass(frozen=True)
class _Search:
    """What all searches of a program ask."""

    player: Chains
    outside: _Outside
    rings: Rings


# -- how


@dataclass
class Ring:
    """A result that shrinks to a few rows: its buffer, and where the views of the old buffer lie in it. `finer`: for
    some readers a row of it is several, which must lie one after the other."""

    old: View
    axis: int
    lines: int
    finer: bool = False

    def __post_init__(self) -> None:
        def place(axis: int) -> tuple[bool, bool, int]:
            reach = static(self.old.strides[axis]) * static(self.old.shape[axis])
            inside = self.finer and reach == self.old.strides[self.axis]
            return axis != self.axis, not inside, -static(self.old.strides[axis])

        order = sorted(range(len(self.old.shape)), key=place)
        shape = tuple(self.old.shape[a] for a in order)
        strides = dict(zip(order, dense_strides(shape), strict=True))
        self.row = static(strides[self.axis])
        buffer = replace(self.old.buffer, shape=(self.lines, *shape[1:]))
        turned = tuple(strides[a] for a in range(len(order)))
        self.move = Move(self.old, View(buffer, self.old.shape, turned))

    def view(self, view: View) -> View | None:
        """A view of the old buffer over the ring; None where it does not go by rows."""
        if view.buffer is not self.old.buffer:
            return view
        moved = self.move.apply(view)
        if moved is None:
            return None
        inside, row = static(moved.offset), self.row
        along = []
        for dim, stride in zip(moved.shape, moved.strides, strict=True):
            if self.rows(static(dim), static(stride)):
                row = static(stride)
                along.append(self.row // row)
            else:
                inside += (static(dim) - 1) * abs(static(stride))
        return replace(moved, lines=self.lines * along[0]) if len(along) == 1 and inside < row else None

    def rows(self, count: int, stride: int) -> bool:
        """Does an axis go along the rows, or along the parts of each?"""
        height = static(self.old.shape[self.axis])
        return count * stride == height * self.row and count % height == 0 and (self.finer or count == height)


class Rings:
    """Which results can become rings: all their readers go by rows, and the kernels take it."""

    def __init__(self, program: Program, calls: Sequence[RowCall | None], context: Context) -> None:
        self.calls, self.context = calls, context
        self.makers = {call.call.outs[0].buffer: call for call in calls if call is not None}
        self.users: dict[Buffer, list[int]] = {}
        for number, item in enumerate(program.body):
            for view in reads(item):
                self.users.setdefault(view.buffer, []).append(number)
        self.known: dict[Buffer, bool] = {}

    def possible(self, chain: Chain) -> bool:
        return all(self.one(buffer) for buffer in chain.lines)

    def one(self, buffer: Buffer) -> bool:
        if buffer not in self.known:
            maker = self.makers[buffer]
            users = [self.calls[number] for number in self.users.get(buffer, [])]
            ring = Ring(maker.call.outs[0], maker.axis, 2, _is_read_finer(buffer, maker, users))
            self.known[buffer] = all(user is not None and self.serves(user, ring) for user in (maker, *users))
        return self.known[buffer]

    def serves(self, user: RowCall, ring: Ring) -> bool:
        moved = [ring.view(view) for view in (*user.call.ins, *user.call.outs)]
        views = tuple(view for view in moved if view is not None)
        if len(views) != len(moved):
            return False
        for window in user.windows:  # what it takes for rows must be those that are made
            view, axis = views[window.operand], operand_axis(user, window)
            if view.lines and not ring.rows(static(view.shape[axis]), static(view.strides[axis])):
                return False
        count = len(user.call.ins)
        draft = replace(user.call, ins=views[:count], outs=views[count:], rows=user.axis, kernel=user.kernel)
        needs = self.context.registry.match(draft, self.context.target)
        return isinstance(needs, Needs) and user.axis in needs.rows and not needs.dense and not needs.dense_outs


def _is_read_finer(buffer: Buffer, maker: RowCall, users: Sequence[RowCall | None]) -> bool:
    """Does a reader take each row that is made for several?"""
    return any(
        user.call.ins[window.operand].buffer is buffer and rows_at_a_time(user, window, maker.height) > 1
        for user in users
        if user is not None
        for window in user.windows
    )


def form_all(
    program: Program,
    chains: Chosen,
    calls: list[RowCall | None],
    old: list[Buffer],
    context: Context,
) -> None:
    """Puts regions in place of chains, those nearest the end first. `old` are the buffers that the chains name, in
    the order of the program's own."""
    twins = dict(zip(old, program.buffers(), strict=True))
    registry, target, names = context.registry, context.target, taken_names(program)
    for chain in reversed(chains):
        members = [call for call in calls[chain.first : chain.last + 1] if call is not None]
        for buffer, lines in chain.lines.items():
            maker = next(m for m in members if m.call.outs[0].buffer is twins[buffer])
            ring = Ring(maker.call.outs[0], maker.axis, lines, _is_read_finer(twins[buffer], maker, members))
            named = ((name, ring.view(view)) for name, view in program.values)
            program.values = [(name, view) for name, view in named if view is not None]
            for member in members:
                call = member.call
                call.ins = tuple(_sure(ring.view(view)) for view in call.ins)
                call.outs = tuple(_sure(ring.view(view)) for view in call.outs)
        stages, shared = [], Buffer(names.take("scratch_rows"), u8, (0,))
        for number, (member, pulls) in enumerate(zip(members, chain.pulls, strict=True)):
            call = member.call
            call.kernel, call.rows = member.kernel, member.axis
            needs = registry.match(call, target)
            if not isinstance(needs, Needs):
                raise InternalError(f"{call.kernel} does not run row by row: {needs.reason}")
            call.blocks, call.scratch = needs.blocks, None
            if needs.scratch:
                call.scratch = Buffer(names.take("scratch_kept"), u8, (0,)) if member.takes_all else shared
                _widen(call.scratch, needs, call)
            stages.append(Stage(call, member.height, chain.steps[number], pulls, chain.in_place.get(number)))
        provenance = tuple(dict.fromkeys(name for m in members for name in m.call.provenance))
        before = tuple((twins[b], nbytes) for b, nbytes in sorted(chain.before.items(), key=lambda pair: pair[0].name))
        region = Rows(stages, tuple(twins[b] for b in chain.over), before, provenance)
        program.body[chain.first : chain.last + 1] = [region]


def _widen(scratch: Buffer, needs: Needs, call: Call) -> None:
    """Makes room for one more call."""
    scratch.shape = (max(scratch.max_bytes, needs.scratch),)
    scratch.storage = Storage(max(scratch.storage.align, needs.scratch_align))
    scratch.provenance = tuple(dict.fromkeys((*scratch.provenance, *call.provenance)))


def _sure(view: View | None) -> View:
    if view is None:
        raise InternalError("a view of a ring does not go by rows")
    return view
