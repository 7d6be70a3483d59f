"""bind_storage: decides what is written in place. The only pass that does.

- An operand of a concat, and what a constant is padded around, is written straight to its place in the result by the
call that makes it.
- A result is written over an operand that dies there, where the kernel's alias pattern allows it.
- Inputs of the model may be overwritten once they are dead, unless they are to be kept.

The second always gains. The first does not: a result whose parts are made early lives long, and strides may keep
results from being written over operands. So it is a choice per concat, made by trying: the one with the smallest
peak, and of equals the one with the fewest copies. The number of trials is bounded by a count of work, so the outcome
does not depend on the machine. After this pass a buffer may have several writers.
"""

from __future__ import annotations

from ...memory.interval import lower_bound
from ...program.clone import clone
from ...program.ir import Program, walk
from ..api import Context
from ..in_place import write_in_place
from ..join_parts import COPY, PIECES, PLANES, STRIDED, Joiner, candidates
from ..lives import blocks_of, lives_of
from .order_calls import order_calls

EFFORT = 60_000  # items looked at in all trials together


def bind_storage(program: Program, context: Context) -> None:
    if any(not isinstance(d, int) for b in program.buffers() for d in b.shape):
        return  # distances between symbolic sizes are not decided yet: every buffer gets memory of its own
    _bind(program, context, *best_modes(program, context))


def best_modes(program: Program, context: Context) -> tuple[list[str], bool]:
    """One choice per candidate, and whether calls are put into another order after that."""
    modes = [PIECES] * len(candidates(program))
    if not modes:
        return modes, False
    trials = EFFORT // max(1, sum(1 for _ in walk(program.body)))
    best = peak_of(program, context, modes)
    for number in range(len(modes)):
        for mode, gain in ((STRIDED, 0), (PLANES, 1), (COPY, 1)):
            if trials <= 0:
                break
            trials -= 1
            tried = [*modes[:number], mode, *modes[number + 1 :]]
            peak = peak_of(program, context, tried)
            if peak <= best - gain:
                best, modes = peak, tried
    return modes, peak_of(program, context, modes, True) < best


def peak_of(program: Program, context: Context, modes: list[str], reorder: bool = False) -> int:
    """The largest live set that these choices lead to."""
    trial = clone(program)
    _bind(trial, context, modes, reorder)
    return lower_bound(blocks_of(lives_of(trial, context.keep_inputs), context.target.align)[0])


def _bind(program: Program, context: Context, modes: list[str], reorder: bool) -> None:
    joiner = Joiner(program, context.registry, context.target)
    for call, mode in zip(candidates(program), modes, strict=True):
        joiner.join(call, mode)
    if reorder:
        order_calls(program, context)
    write_in_place(program, context.registry, context.target, context.keep_inputs)
