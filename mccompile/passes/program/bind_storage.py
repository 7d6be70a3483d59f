"""bind_storage: decides what is written in place. The only pass that does.

Three decisions, each an `Overlap` of one buffer on another:
- an operand of a concat is written straight to its part of the result by the call that makes it (`part`), and not
  copied;
- a result is written over an operand that dies here, where the kernel's alias pattern allows it;
- inputs of the model may be overwritten once they are dead, unless they are to be kept.

Invariant: nobody reads a byte after it was overwritten. The accesses of every piece of memory (a `root` and all that
overlaps it) are kept in one list, so a decision sees earlier ones. After this pass a buffer may have several writers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...base.dims import static
from ...kernels.api import Needs
from ...kernels.registry import Registry
from ...kinds.concat import Concat
from ...program.ir import INPUT, TEMPORARY, Buffer, Call, If, Item, Overlap, Program, View, reads, root, writes
from ...targets.api import Target
from ..api import Context


def bind_storage(program: Program, context: Context) -> None:
    if any(not isinstance(d, int) for b in program.buffers() for d in b.shape):
        return  # distances between symbolic sizes are not decided yet: every buffer gets memory of its own
    _join_concats(program, context.registry, context.target)
    _write_in_place(program, context.registry, context.target, context.keep_inputs)


# -- concat


def _join_concats(program: Program, registry: Registry, target: Target) -> None:
    writers: dict[Buffer, list[Item]] = {}
    outputs = {view.buffer for _, view in program.outputs}

    def note(body: list[Item]) -> None:
        for item in body:
            for view in writes(item):
                writers.setdefault(view.buffer, []).append(item)
            if isinstance(item, If):
                note(item.then)
                note(item.otherwise)

    note(program.body)

    def visit(body: list[Item]) -> None:
        inside = set(map(id, body))
        result: list[Item] = []
        for item in body:
            if isinstance(item, If):
                visit(item.then)
                visit(item.otherwise)
            if isinstance(item, Call) and isinstance(item.kind, Concat):
                result += _join(item, item.kind, writers, outputs, inside, registry, target)
            else:
                result.append(item)
        body[:] = result

    visit(program.body)


def _join(
    call: Call,
    kind: Concat,
    writers: dict[Buffer, list[Item]],
    outputs: set[Buffer],
    inside: set[int],
    registry: Registry,
    target: Target,
) -> list[Item]:
    """What is left of a concat: nothing, copies of some parts, or the call as it was."""
    out = call.outs[0]
    position = 0
    joined: list[int] = []
    for index, view in enumerate(call.ins):
        size = static(view.shape[kind.axis])
        part = out.sliced(kind.axis, position, size)
        position += size
        buffer = view.buffer
        bits = buffer.dtype.bits
        made = writers.get(buffer, [])
        start = static(part.offset) * bits // 8
        if (
            buffer.role == TEMPORARY
            and buffer.overlap is None
            and buffer not in outputs
            and view.covers_buffer
            and part.is_dense
            and static(part.offset) * bits % 8 == 0
            and start % max(buffer.storage.align, 1) == 0
            and len(made) == 1
            and id(made[0]) in inside
            and sum(other.buffer is buffer for other in call.ins) == 1
        ):
            buffer.overlap = Overlap(out.buffer, start, part=True)
            joined.append(index)
    if not joined:
        return [call]
    rest = _copies(call, kind, joined, registry, target)
    if rest is None:  # no kernel copies what is left: undo
        for index in joined:
            call.ins[index].buffer.overlap = None
        return [call]
    return list(rest)


def _copies(call: Call, kind: Concat, joined: list[int], registry: Registry, target: Target) -> list[Call] | None:
    """Neighbouring parts that still have to be copied, as smaller concats into slices of the result."""
    runs: list[list[int]] = []
    for index in range(len(call.ins)):
        if index in joined or call.ins[index].type.count == 0:
            continue
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    calls = []
    for run in runs:
        start = sum(static(v.shape[kind.axis]) for v in call.ins[: run[0]])
        size = sum(static(call.ins[i].shape[kind.axis]) for i in run)
        out = call.outs[0].sliced(kind.axis, start, size)
        copy = Call(kind, tuple(call.ins[i] for i in run), (out,), call.provenance)
        choice = registry.choose(copy, target)
        if not choice.candidates:
            return None
        copy.kernel, copy.blocks = choice.candidates[0].kernel.id, choice.candidates[0].needs.blocks
        calls.append(copy)
    return calls


# -- over a dead operand


@dataclass(frozen=True)
class _Access:
    time: int
    low: int
    high: int  # bytes of the root


def _write_in_place(program: Program, registry: Registry, target: Target, keep_inputs: bool) -> None:
    times = {id(item): time for time, item in enumerate(_flat(program.body))}
    accesses: dict[Buffer, list[_Access]] = {}
    end = len(times)
    parts = {b for b in program.buffers() if b.overlap and b.overlap.part}

    def note(view: View, time: int) -> None:
        base, offset = root(view.buffer)
        low, high = view.byte_range
        accesses.setdefault(base, []).append(_Access(time, low + offset, high + offset))

    for item in _flat(program.body):
        for view in (*reads(item), *writes(item)):
            note(view, times[id(item)])
    for _, view in program.outputs:
        note(view, end)
    if keep_inputs:
        for _, buffer in program.inputs:
            note(buffer.whole(), end)

    for item in _flat(program.body):
        if not isinstance(item, Call) or not item.kernel:
            continue
        needs = registry[item.kernel].match(item, target)
        if not isinstance(needs, Needs) or not needs.alias:
            continue
        for result, out in enumerate(item.outs):
            _bind_result(item, result, out, needs, times[id(item)], accesses, parts)


def _bind_result(
    call: Call,
    result: int,
    out: View,
    needs: Needs,
    now: int,
    accesses: dict[Buffer, list[_Access]],
    parts: set[Buffer],
) -> None:
    buffer = out.buffer
    if (
        buffer.overlap is not None
        or not _whole_in_any_order(out)
        or any(p.overlap and p.overlap.base is buffer for p in parts)
    ):
        return
    if any(access.time < now for access in accesses.get(buffer, [])):
        return  # written piecewise: something of it is alive already
    for index, view in enumerate(call.ins):
        if needs.alias.get((result, index)) is None or view.buffer.role not in (TEMPORARY, INPUT):
            continue
        base, shift = root(view.buffer)
        start = shift + static(view.offset) * view.buffer.dtype.bits // 8
        span = (start, start + buffer.max_bytes)
        if (
            base is buffer
            or start % max(buffer.storage.align, buffer.dtype.bits // 8)
            or start + buffer.max_bytes > base.max_bytes
        ):
            continue
        if any(a.time > now and a.low < span[1] and span[0] < a.high for a in accesses[base]):
            continue
        if not _others_agree(call, result, index, needs, base, span):
            continue
        buffer.overlap = Overlap(base, start)
        base.storage = replace(base.storage, align=max(base.storage.align, buffer.storage.align))
        accesses[base] += [replace(a, low=a.low + start, high=a.high + start) for a in accesses.pop(buffer, [])]
        return


def _others_agree(call: Call, result: int, chosen: int, needs: Needs, base: Buffer, span: tuple[int, int]) -> bool:
    """Every other operand, result and workspace that lies in those bytes must tolerate the result there too: it is the
    same view of an operand that may be overwritten in the same way."""
    for index, view in enumerate(call.ins):
        if index == chosen or root(view.buffer)[0] is not base:
            continue
        low, high = (edge + root(view.buffer)[1] for edge in view.byte_range)
        if low < span[1] and span[0] < high and (needs.alias.get((result, index)) is None or view != call.ins[chosen]):
            return False
    for number, view in enumerate(call.outs):
        if number != result and root(view.buffer)[0] is base:
            return False
    return True


def _whole_in_any_order(view: View) -> bool:
    return view.offset == 0 and view.type.count == view.buffer.type.count


def _flat(body: list[Item]) -> list[Item]:
    """All items in textual order: later text never runs before earlier text, and that is all that liveness needs."""
    result: list[Item] = []
    for item in body:
        result.append(item)
        if isinstance(item, If):
            result += _flat(item.then) + _flat(item.otherwise)
    return result
