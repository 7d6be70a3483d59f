"""What a run leaves for the next one is copied to where it is kept as soon as nothing reads the old state any more, and
not at the end, where that makes the arena smaller: part of bufferize.

A weight that learns is read once more behind its gradient, by the gradient of what it was multiplied with; without this
the new weight lies beside the old one until all gradients are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.records import dataclass
from ...expr.ir import operand
from ...kinds.map import Map
from ...memory.interval import lower_bound
from ...program.ir import Buffer, Call, Overlap, Program, View, reads, root, walk, writes
from ...program.taken_names import taken_names
from ..api import Context
from .liveness import blocks_of, liveness


@dataclass(frozen=True)
class Early:
    output: int  # its place among the program's outputs
    behind: int  # the item behind which it may be brought
    made: View
    kept: Buffer


def bring_states(program: Program, context: Context) -> None:
    """Inserts the copies, where nothing needs to be bound any more but what they bring."""
    found = [*early_states(program)]
    if not found:
        return
    before, body, outputs = _bound(program, context), [*program.body], [*program.outputs]
    _insert(program, found, context)
    if _bound(program, context) >= before:
        program.body, program.outputs = body, outputs


def early_states(program: Program) -> Iterator[Early]:
    """States that are ready before the old one is read for the last time, which is before the end."""
    first, last = dict[Buffer, int](), dict[Buffer, int]()
    for number, item in enumerate(program.body):
        for inner in walk([item]):
            for view in (*reads(inner), *writes(inner)):
                base = root(view.buffer)[0]
                first.setdefault(base, number)
                last[base] = number
    buffers, after = dict(program.inputs), {made: before for before, made in program.states.items()}
    for place, (name, view) in enumerate(program.outputs):
        kept, made = buffers.get(after.get(name, "")), root(view.buffer)[0]
        if kept is None or made is kept or kept.overlap is not None or not view.is_static:
            continue
        if kept not in last or made not in first or view.type != kept.type or first[made] > last[kept]:
            continue
        if any(root(other.buffer)[0] is kept for _, other in program.outputs):  # the old state is handed out
            continue
        free = max(last[kept], _last_write(program, made))
        if free + 1 < len(program.body):
            yield Early(place, free, view, kept)


def _last_write(program: Program, made: Buffer) -> int:
    """Of its memory: behind it, a view of it holds what it will hold at the end."""
    return max(
        number
        for number, item in enumerate(program.body)
        if any(root(view.buffer)[0] is made for inner in walk([item]) for view in writes(inner))
    )


def _insert(program: Program, found: list[Early], context: Context) -> None:
    names, behind = taken_names(program), dict[int, list[Call]]()
    outputs = [*program.outputs]
    for each in found:
        of = each.made.buffer
        buffer = Buffer(names.take(f"{of.name}_kept"), of.dtype, each.made.shape, provenance=of.provenance)
        buffer.overlap = Overlap(each.kept)
        copy = Call(Map(operand(0, of.dtype)), (each.made,), (buffer.whole(),), of.provenance)
        kernels = context.registry.choose(copy, context.target).candidates
        if kernels and not kernels[0].needs.scratch:
            copy.kernel, copy.blocks = kernels[0].kernel.id, kernels[0].needs.blocks
            outputs[each.output] = outputs[each.output][0], buffer.whole()
            behind.setdefault(each.behind, []).append(copy)
    program.outputs = outputs
    program.body = [each for n, item in enumerate(program.body) for each in (item, *behind.get(n, []))]


def _bound(program: Program, context: Context) -> int:
    return lower_bound(blocks_of(liveness(program, context.memory.keep_inputs), context.target.align)[0])
