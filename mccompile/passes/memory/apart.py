"""Results of regions that are laid over operands for nothing: part of bufferize.

A result over an operand becomes one block with it, and with all that lies over either. Such a block may be taller than
what is alive of it at any moment: a large operand, a small tensor over it, and a large result that begins before that.
Or it ties an operand that is alive again later, as an input of several phases is, to a place that suits nothing else.
Then the arena may be smaller if the result, and what was laid over it later, is a block of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...memory.interval import Block, lower_bound, peak
from ...memory.push_down import push_down
from ...program.ir import TEMPORARY, Buffer, Loop, Overlap, Program, Rows, root, walk
from .liveness import Span, blocks_of, liveness

Lives = dict[Buffer, Span]


def lay_apart(program: Program, keep_inputs: bool, align: int) -> None:
    """Takes results off their operands, one after the other, as long as that makes a memory smaller."""
    regions = (item for item in walk(program.body) if isinstance(item, Rows))
    results = [result for region in regions if _is_over(result := region.stages[-1].call.outs[0].buffer)]
    held = {root(buffer)[0] for buffer in _held(program)}
    results = [result for result in results if result.role == TEMPORARY and root(result)[0] not in held]
    lives = liveness(program, keep_inputs) if results else {}
    for far in {result.far: None for result in results}:
        inside = {buffer: span for buffer, span in lives.items() if buffer.far == far}
        while _one_apart(inside, results, align):
            pass


def _held(program: Program) -> Iterable[Buffer]:
    """What must stay where it is laid: states, and what loops hand on."""
    loops = (item for item in walk(program.body) if isinstance(item, Loop))
    inputs = dict(program.inputs)
    return [*(inputs[name] for name in program.states), *(c.now for loop in loops for c in loop.carries)]


def _is_over(buffer: Buffer) -> bool:
    return buffer.overlap is not None and not buffer.overlap.part


def _one_apart(lives: Lives, results: Sequence[Buffer], align: int) -> bool:
    """Takes that result off which saves most. False: none saves anything."""
    blocks, owners = blocks_of(lives, align)
    over = [result for result in results if _is_over(result) and result in owners]
    size, best = push_down(blocks).size if over else 0, None
    missed = size > lower_bound(blocks)
    tried = [result for result in over if missed or _is_tall(blocks[owners[result][0]])]
    for result in tried:
        before = _take_off(result, lives)
        found = push_down(blocks_of(lives, align)[0]).size
        for buffer, overlap in before.items():
            buffer.overlap = overlap
        if found < size:
            size, best = found, result
    if best is not None:
        _take_off(best, lives)
    return best is not None


def _is_tall(block: Block) -> bool:
    """Is it taller than what is alive of it at any moment?"""
    return block.size > peak([block]).bytes


def _take_off(result: Buffer, lives: Lives) -> dict[Buffer, Overlap | None]:
    """With what was laid over the same memory later. How they lay before."""
    base, start = root(result)
    later = [buffer for buffer in lives if _is_over(buffer) and buffer.overlap and buffer.overlap.base is base]
    later = [buffer for buffer in later if lives[buffer].start > lives[result].start]
    before = {buffer: buffer.overlap for buffer in (result, *later)}
    for buffer in later:
        buffer.overlap = Overlap(result, root(buffer)[1] - start)
    result.overlap = None
    return before
