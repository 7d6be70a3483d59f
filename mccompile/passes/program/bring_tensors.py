"""bring_tensors: a program for two memories, where steps work only in the near one. Tensors that do not fit there are
stored in the far one; their rows are copied to ring buffers in the near memory when they are read, and rows of results
are copied to the far memory when they are complete.

What is copied is as little as is found (passes/staging/route.py) within the bytes of both memories, and in as few
copies as there is room for where each takes a time of its own. Where nothing fits, calls on the way get kernels with
smaller workspaces, one after the other. What a plan takes is known only once its buffers are placed: where that is more
than was expected, less is allowed, and another way found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.errors import CheckFailed, Problem, UnsupportedModel
from ...base.provenance import Provenance
from ...base.records import dataclass
from ...kernels.remembered import remembered
from ...kinds.transfer import Transfer
from ...memory.push_down import push_down
from ...program.clone import clone
from ...program.ir import Buffer, Call, Item, Program
from ...program.taken_names import taken_names
from ..api import Context, Cut, TilesCost
from ..memory.liveness import blocks_of, liveness
from ..rows.row_call import RowCall, comes_early
from ..rows.row_chains import LONGEST, Chain, Chains, frugal_kernel, row_calls
from ..staging.route import MemoryLimits, Path, Router
from ..staging.segments import Segment, Segments
from ..staging.tensors import Tensors
from .bufferize import bufferize
from .fuse_line_buffers import form_all

TRIALS = 8  # paths that are tried, each with less room than the one before
STEPS = (4, 2, 1)  # rows at a time that are tried
FEWER = (64, 32, 16, 8, *STEPS)  # the same where each copy takes a time of its own


@dataclass(frozen=True)
class _Draft:
    """A program whose runs of calls are to be joined: their first items, and what is known of them."""

    program: Program
    runs: tuple[tuple[int, Segment], ...]
    far: frozenset[Buffer]


def bring_tensors(program: Program, context: Context) -> None:
    memory = context.memory
    if not memory.copied:
        return
    _refuse(program)
    context = replace(context, registry=remembered(context.registry, context.target))
    tensors = Tensors(program, memory.keep_inputs, context.target.align)
    calls: list[RowCall | None] = row_calls(program, context) if memory.rows else [None] * len(program.body)
    room = MemoryLimits(memory.near, memory.far)
    router = Router(tensors, Segments(tensors, calls, context), context)
    above: MemoryLimits | None = None  # with which there was a path that takes more than was expected
    refused = room
    for trial in range(TRIALS):
        router, path = _routed(router, calls, room)
        if path is None:
            refused = room
            if above is None:
                break
            room = _between(room, above)
            continue
        draft = _draft(program, path, router.segments)
        for step in (FEWER if memory.latency else STEPS) if draft.runs else STEPS[-1:]:
            over = _over(draft, step, context)
            if over == [0, 0]:
                draft = _early(draft, step, context)
                program.copied_bound = router.bound(MemoryLimits(memory.near, memory.far), router.copied(path))
                program.body = draft.program.body
                _join(replace(draft, program=program), step, context)
                return
        less = [each << trial for each in over]  # what was too much; more, as the same path may come again
        above, room = room, MemoryLimits(_less(room.near, less[0]), _less(room.far, less[1]))
    raise _nothing_fits(program, refused, context)


def _routed(router: Router, calls: list[RowCall | None], room: MemoryLimits) -> tuple[Router, Path | None]:
    """The path that copies least, by the kernels that `calls` have, or frugal ones where it ends without them."""
    while True:
        path, context = router.best(room), router.context
        if path is not None or not room.short or not _spare(calls, max(room.short), context):
            return router, path
        router = Router(router.tensors, Segments(router.tensors, calls, context), context)
        room.short.clear()
        room.far_short.clear()


def _spare(calls: list[RowCall | None], at: int, context: Context) -> bool:
    """Has the call where paths end take a smaller workspace, or that one behind it which saves most by it. False: none
    can."""
    behind = list[tuple[int, int, RowCall]]()
    for place, call in enumerate(calls[at : at + LONGEST], at):
        frugal = None if call is None else frugal_kernel(call, context)
        if call is not None and frugal is not None:
            behind.append((call.scratch[0] - frugal.scratch[0], place, frugal))
    if not behind:
        return False
    _, place, frugal = min(behind, key=lambda each: (each[1] != at, -each[0], each[1]))
    calls[place] = frugal
    return True


def _less(room: int | None, over: int) -> int | None:
    """By so much, but not by more than a quarter: the next path may be placed better than the one before."""
    return None if room is None else max(room - over, room - room // 4)


def _between(low: MemoryLimits, high: MemoryLimits) -> MemoryLimits:
    near, far = (
        None if one is None or other is None else (one + other) // 2
        for one, other in ((low.near, high.near), (low.far, high.far))
    )
    return MemoryLimits(near, far)


def _draft(program: Program, path: Path, segments: Segments) -> _Draft:
    names, body, runs = taken_names(program), list[Item](), list[tuple[int, Segment]]()
    for step in path.steps:
        segment = segments.get(step.first, step.last, step.far, step.by_rows)
        assert segment is not None
        for twin, original in segment.twins:
            twin.name = names.take(f"{original.name}_near")
        if segment.chain is not None:
            runs.append((len(body) + len(segment.before), segment))
        body += segment.items
    return _Draft(replace(program, body=body, values=[]), tuple(runs), path.far)


def _early(draft: _Draft, step: int, context: Context) -> _Draft:
    """With copies that are on their way while steps run, in as many of the runs as the near memory has room for."""
    near = context.memory.near
    for number in range(len(draft.runs)) if context.memory.early and near is not None else ():
        queued = _queued(draft, number, context)
        if queued is not None and _over(queued, step, context) == [0, 0]:
            draft = queued
    return draft


def _queued(draft: _Draft, number: int, context: Context) -> _Draft | None:
    """The copies of a run of calls as a queue, in which those of far operands are early. None: there are none, or the
    program may end in the midst of it."""
    first, segment = draft.runs[number]
    body, early = list(draft.program.body), False
    for place, row in enumerate(segment.rows, first):
        call = body[place]
        assert isinstance(call, Call)
        if isinstance(call.kind, Transfer):
            brings = call.ins[0].buffer in draft.far
            body[place] = replace(call, kind=replace(call.kind, queued=True, early=brings))
            early |= brings
        elif context.registry[row.kernel].failure(call):
            return None
    return replace(draft, program=replace(draft.program, body=body)) if early else None


def _over(draft: _Draft, step: int, context: Context) -> list[int]:
    """Bytes that a draft takes of the near and of the far memory beyond what it may."""
    may = context.memory.near, context.memory.far
    return [max(0, has - (most or has)) for has, most in zip(_sizes(draft, step, context), may, strict=True)]


def _sizes(draft: _Draft, step: int, context: Context) -> tuple[int, int]:
    """Bytes of the near and of the far memory that a draft takes."""
    trial = clone(draft.program)
    twins = dict(zip(draft.program.buffers(), trial.buffers(), strict=True))
    _join(_Draft(trial, draft.runs, frozenset(twins[b] for b in draft.far if b in twins)), step, context)
    return taken(trial, context)


def taken(program: Program, context: Context) -> tuple[int, int]:
    """Bytes of the near and of the far memory that a program takes, which is bufferized for it."""
    bufferize(program, context)
    lives = liveness(program, context.memory.keep_inputs)
    near, far = (
        push_down(blocks_of({b: span for b, span in lives.items() if b.far == away}, context.target.align)[0]).size
        for away in (False, True)
    )
    return near, far


def _join(draft: _Draft, step: int, context: Context) -> None:
    program = draft.program
    for buffer in draft.far:
        buffer.far = True
    calls: list[RowCall | None] = [None] * len(program.body)
    chains = list[Chain]()
    for first, segment in draft.runs:
        for number, row in enumerate(segment.rows, first):
            call = program.body[number]
            calls[number] = replace(row, call=call)  # type: ignore[arg-type]
    player = Chains(program, calls)
    for first, segment in draft.runs:
        last = first + len(segment.rows) - 1
        steps = _steps([row for row in calls[first : last + 1] if row is not None], step)
        chain = player.play(first, last, steps, True) or player.play(first, last, 1, True)
        assert chain is not None
        chains.append(chain)
    form_all(program, chains, calls, program.buffers(), context)


def _steps(calls: Sequence[RowCall], step: int) -> list[int]:
    """Rows that each makes at a time; what comes early as many as a reader asks for at once, so that this waits for no
    other copy."""
    wanted = dict[Buffer, int]()
    for call in calls:
        for window in call.windows:
            buffer = call.call.ins[window.operand].buffer
            wanted[buffer] = max(step, step * window.stride // window.parts, wanted.get(buffer, 0))
    return [wanted[made] if comes_early(call) else step for call in calls for made in [call.call.outs[0].buffer]]


class NothingFits(CheckFailed):
    """Two memories are too small for a program. `nodes`: of the file, for the step that no path got beyond."""

    nodes: Provenance = ()
    cuts: Sequence[Cut] = ()
    column_tiles: Sequence[TilesCost] = ()


def _nothing_fits(program: Program, room: MemoryLimits, context: Context) -> NothingFits:
    at = max((*room.short, *room.far_short), default=0)
    step = program.body[at].provenance[:3] if program.body else ("an input that is the output",)
    nodes, ways = ", ".join(step) or "a step", list[str]()
    for what, may, left, short in (
        ("near", context.memory.near, room.near, room.short),
        ("copied", context.memory.far, room.far, room.far_short),
    ):
        if at in short and may is not None and left is not None:  # with what placing the others took more
            ways.append(f"{short[at] + may - left} bytes of the {what} one instead of {may}")
    what = "two memories are too small, with operands and results copied by rows as far as they can be"
    why = f"{nodes} needs {' or '.join(ways) or 'more'}"
    fix = "give --mem larger sizes, or none for the one that is copied"
    failed = NothingFits(Problem(what, program.name, why, fix))
    failed.nodes = program.body[at].provenance if program.body else ()
    failed.cuts, failed.column_tiles = context.cuts, context.column_tiles
    return failed


def _refuse(program: Program) -> None:
    if program.phases:
        what, fix = "a network that learns cannot run in a memory that tensors are copied to", "leave out `copied`"
        raise UnsupportedModel(Problem(what, program.name, "its phases share tensors in memory", fix))
