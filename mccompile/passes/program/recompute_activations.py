"""recompute_activations: calls of a network that learns are repeated (checkpointing) where that takes less memory than
keeping their results until the gradients need them. As many calls are repeated as a budget requires.

Runs behind the choice of kernels and of the order, so a call that is done again is the same one in all that it rounds.
What is tried is measured as the arena of the program that it leads to. Where that is above the budget even when calls
run row by row, new weights are made beside gradients of activations in one call (step_products), and calls are repeated
for what is left then: rows that follow those of their operand take hardly more memory than it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...base.dims import upper
from ...base.names import Names
from ...kernels.api import Needs
from ...kernels.remembered import remembered
from ...memory.interval import lower_bound
from ...memory.push_down import push_down
from ...memory.recompute import Line, Recomputation, Step, recomputed
from ...program.clone import clone
from ...program.ir import (
    CONSTANT,
    EXTERNAL,
    LASTING,
    STREAM,
    TEMPORARY,
    Buffer,
    Call,
    Item,
    Program,
    View,
    reads,
    walk,
    writes,
)
from ...program.relocate import covers
from ...program.taken_names import taken_names
from ..api import Context
from ..memory.liveness import blocks_of, liveness
from ..rows.row_windows import AXIS
from .bufferize import bufferize
from .fuse_line_buffers import fuse_line_buffers
from .order_calls import results_first_order
from .step_products import step_products

TRIALS = 10  # programs whose arena is worked out
LESS = 0.85  # of the goal before
ROWS = 4  # that are there besides those of an operand, where a call follows these
Measured = Callable[[Program, Context], int]


def recompute_activations(program: Program, context: Context) -> None:
    if context.memory.again <= 1:
        return
    context = replace(context, registry=remembered(context.registry, context.target), explanations=[])
    best, least, enough = program.body, arena(program, context), context.memory.enough
    orders = _orders(program, context)
    for body in orders if least > enough else ():
        found, size = _recomputed(replace(program, body=body), context, arena)
        if size < least:
            best, least = found, size
        if least <= enough:
            break
    program.body = best
    if least > enough > 0 and context.memory.rows and not context.memory.copied:
        _step_products(program, orders[-1], context)


def _step_products(program: Program, body: list[Item], context: Context) -> None:
    """New weights in one call with gradients, if the budget needs it and it makes the arena smaller."""
    least, joined = arena_by_rows(program, context), step_products(replace(program, body=body), context)
    if least > context.memory.enough and joined != body:
        found, size = _recomputed(replace(program, body=joined), context, arena_by_rows)
        if size < least:
            program.body = found


def _orders(program: Program, context: Context) -> list[list[Item]]:
    """Orders in which to recompute. The one with the smallest peak frees memory early only where it counts for that
    peak, which recomputation moves elsewhere: so that in which calls came, and one that makes new weights at once, so
    that what their gradients are made of need not stay."""
    given = program.unordered or program.body
    at_once = results_first_order(replace(program, body=given), context)
    program.unordered = []
    return [given] if at_once == given else [given, at_once]


def _recomputed(program: Program, context: Context, measure: Measured) -> tuple[list[Item], int]:
    """The items in their order, with calls that are done again, and the arena that comes of them."""
    enough, trials = context.memory.enough, _Trials(program, context, measure)
    trials.down_to(enough)
    if trials.least > enough:
        trials.by_shares(enough)
    for _ in range(TRIALS):
        before = trials.least
        trials.down_to(max(enough, before - 1))
        if trials.least == before or trials.least <= enough:
            break
    return trials.best, trials.least


class _Trials:
    """Programs whose arena is worked out, and the best of them. Which moves are taken depends on the goal, so that a
    lower goal may lead to a larger arena: none alone finds the smallest one."""

    def __init__(self, program: Program, context: Context, measure: Measured) -> None:
        self.program, self.context, self.measure = program, context, measure
        self.line = line_of(program, context, measure is arena_by_rows)
        macs = sum(step.again.macs for step in self.line.steps if step.again)
        self.macs = int(macs * (context.memory.again - 1))
        self.best, self.whole = program.body, measure(program, context)
        self.least = self.whole

    def down_to(self, enough: int) -> None:
        """The goal falls by what the arena is too large."""
        goal = self.line.peak - (self.whole - enough)
        for _ in range(TRIALS if enough >= self.line.floor else 0):
            if self.least <= enough:
                break
            found, tried = self._tried(goal)
            if found.peak > goal:
                break
            goal -= max(tried - enough, goal // 50)

    def by_shares(self, enough: int) -> None:
        """The goal falls by a share, as long as it is reached."""
        goal = int(self.line.peak * LESS)
        for _ in range(TRIALS):
            if self.least <= enough:
                break
            found, _ = self._tried(goal)
            if found.peak > goal:
                break
            goal = int((found.peak if self.measure is arena_by_rows else goal) * LESS)

    def _tried(self, goal: int) -> tuple[Line, int]:
        found = recomputed(self.line, goal, self.macs)
        body = _body(self.program, found)
        size = self.measure(replace(self.program, body=body), self.context)
        if size < self.least:
            self.least, self.best = size, body
        return found, size


def arena(program: Program, context: Context) -> int:
    """Bytes of the arena that the program comes to, if nothing runs row by row."""
    trial = clone(program)
    bufferize(trial, context, thorough=False)
    blocks, _ = blocks_of(liveness(trial, context.memory.keep_inputs), context.target.align)
    least = lower_bound(blocks)
    return least if least > context.memory.enough else push_down(blocks).size


def arena_by_rows(program: Program, context: Context) -> int:
    """The same, if calls run row by row where that gains."""
    trial = clone(program)
    fuse_line_buffers(trial, context)
    bufferize(trial, context, thorough=False)
    return push_down(blocks_of(liveness(trial, context.memory.keep_inputs), context.target.align)[0]).size


def line_of(program: Program, context: Context, by_rows: bool = False) -> Line:
    """The program in numbers. Results that are kept for the next run lie where they are kept, once nothing reads what
    was kept there. `by_rows`: as if all calls that can follow the rows of their first operand did."""
    numbers = {buffer: number for number, buffer in enumerate(_buffers(program))}
    writers = Counter(buffer for item in program.body for buffer in {view.buffer for view in _written(item)})
    outputs, kept = dict(program.outputs), {*program.lasting_inputs(context.memory.keep_inputs)}
    given, states = dict(program.inputs), program.states
    instead = {outputs[after].buffer: given[before] for before, after in states.items()}
    instead = {new: old for new, old in instead.items() if new.role == TEMPORARY and {new, old} <= numbers.keys()}
    lasting = {view.buffer for view in outputs.values()} | {b for b in numbers if b.role == LASTING}
    lasting -= instead.keys()
    alone = {b for b in numbers if b.role == TEMPORARY and not b.overlap and writers[b] == 1}
    alone -= lasting | instead.keys() | {b.overlap.base for b in numbers if b.overlap}
    fixed = {view.buffer for item in program.body if not isinstance(item, Call) for view in _touched(item)}
    steps = [_step(number, item, numbers, alone - fixed, context) for number, item in enumerate(program.body)]
    if by_rows:
        steps = [
            _by_rows(step, item, numbers, alone - fixed, context)
            for step, item in zip(steps, program.body, strict=True)
        ]
    return Line(
        tuple(steps),
        tuple(0 if b in kept or b.role == EXTERNAL else b.max_bytes for b in numbers),
        frozenset(numbers[b] for b in lasting),
        frozenset(numbers[b] for b in fixed & numbers.keys()),
        instead={numbers[new]: numbers[old] for new, old in instead.items()},
    )


def _step(number: int, item: Item, numbers: Mapping[Buffer, int], alone: set[Buffer], context: Context) -> Step:
    read = tuple(numbers[b] for b in dict.fromkeys(v.buffer for v in _read(item) if v.buffer in numbers))
    written = tuple(numbers[b] for b in dict.fromkeys(v.buffer for v in _written(item) if v.buffer in numbers))
    if not isinstance(item, Call):
        return Step(number, read, written)
    kernel, again, over = context.registry[item.kernel], None, tuple[int, ...]()
    if all(view.buffer in alone for view in item.outs):
        again = Recomputation(kernel.cost(item, context.target).time, upper(item.macs))
    needs = kernel.match(item, context.target)
    if isinstance(needs, Needs):
        operands = [item.ins[operand] for _, operand in needs.alias]
        over = tuple({numbers[v.buffer]: None for v in operands if v.buffer in alone and covers(v)})
    return Step(number, read, written, over, item.scratch.max_bytes if item.scratch else 0, again)


def _by_rows(step: Step, item: Item, numbers: Mapping[Buffer, int], alone: set[Buffer], context: Context) -> Step:
    """The step of a call whose rows can come to lie over those of its first operand, a few rows later."""
    if not isinstance(item, Call) or step.over or not item.kernel:
        return step
    needs, source, out = context.registry[item.kernel].match(item, context.target), item.ins[0], item.outs[0]
    by_rows = isinstance(needs, Needs) and AXIS in needs.rows and len(source.shape) == len(out.shape)
    larger = source.buffer.max_bytes >= out.buffer.max_bytes
    if not by_rows or not larger or source.buffer not in alone or not covers(source):
        return step
    rows = ROWS * out.buffer.max_bytes // max(1, upper(out.shape[AXIS]))
    return replace(step, over=(numbers[source.buffer],), workspace=step.workspace + rows)


def _buffers(program: Program) -> list[Buffer]:
    """Those that a plan has to place, and are not workspaces."""
    found = [buffer for _, buffer in program.inputs]
    found += [view.buffer for item in program.body for view in _touched(item)]
    return [buffer for buffer in dict.fromkeys(found) if buffer.role not in (CONSTANT, STREAM)]


def _read(item: Item) -> list[View]:
    return [view for inner in walk([item]) for view in reads(inner)]


def _written(item: Item) -> list[View]:
    return [view for inner in walk([item]) for view in writes(inner)]


def _touched(item: Item) -> list[View]:
    return [*_read(item), *_written(item)]


def _body(program: Program, line: Line) -> list[Item]:
    """The items of a line that was found for the program."""
    buffers, names = dict(enumerate(_buffers(program))), taken_names(program)
    numbers = {buffer: number for number, buffer in buffers.items()}
    body: list[Item] = []
    for step in line.steps:
        item = program.body[step.call]
        if not isinstance(item, Call):
            body.append(item)
            continue
        own = dict.fromkeys(numbers[v.buffer] for v in item.outs if v.buffer in numbers)
        instead = {}
        for old, new in zip(own, step.writes, strict=True):
            if new not in buffers:
                buffers[new] = replace(buffers[old], name=names.take(buffers[old].name))
            instead[buffers[old]] = buffers[new]
        before = dict.fromkeys(numbers[v.buffer] for v in item.ins if v.buffer in numbers)
        instead |= {buffers[old]: buffers[new] for old, new in zip(before, step.reads, strict=True)}
        body.append(_again(item, instead, names) if any(a is not b for a, b in instead.items()) else item)
    return body


def _again(call: Call, instead: Mapping[Buffer, Buffer], names: Names) -> Call:
    """The same call with other buffers."""
    ins, outs = (
        tuple(replace(v, buffer=instead.get(v.buffer, v.buffer)) for v in side) for side in (call.ins, call.outs)
    )
    scratch = replace(call.scratch, name=names.take(call.scratch.name)) if call.scratch is not None else None
    return replace(call, ins=ins, outs=outs, scratch=scratch)
