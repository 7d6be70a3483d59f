"""Results that overwrite operands at their last use, where the kernel's alias pattern allows it: part of bufferize.

Invariant: nobody reads a byte after it was overwritten. The accesses of every piece of memory (a `root` and all that
overlaps it) are kept together, so a decision sees earlier ones.
"""

from __future__ import annotations

from collections import defaultdict

from ...base.records import replace
from ...kernels.api import Needs, elementwise_alias
from ...kernels.registry import Registry
from ...program.ir import (
    EXTERNAL,
    INPUT,
    TEMPORARY,
    Buffer,
    Call,
    Carry,
    Loop,
    Overlap,
    Program,
    Rows,
    View,
    reads,
    root,
    walk,
    writes,
)
from ...program.spans import Span, loop_spans
from ...targets.api import Target
from .accesses import Access, Accesses

Known = dict[Buffer, Accesses]  # by the root; empty where nobody has touched it


def write_in_place(program: Program, registry: Registry, target: Target, keep_inputs: bool) -> None:
    times = {id(item): 2 * time for time, item in enumerate(walk(program.body))}  # odd times are between two items
    accesses: Known = defaultdict(Accesses)
    end = 2 * len(times)
    parts = {b.overlap.base for b in program.buffers() if b.overlap and b.overlap.part}  # what has parts

    def note(view: View, time: int) -> None:
        base, offset = root(view.buffer)
        low, high = view.byte_range
        accesses[base].add(Access(time, low + offset, high + offset))

    for item in walk(program.body):
        for view in (*reads(item), *writes(item)):
            note(view, times[id(item)])
    for _, view in program.outputs:
        note(view, end)
    for buffer in program.lasting_inputs(keep_inputs):
        note(buffer.whole(), end)

    spans = loop_spans(program)
    _hold(spans, accesses)
    partners = {carry.next: (carry.now, span) for span in spans for carry in span.loop.carries}
    for item in walk(program.body):
        if isinstance(item, Rows) and item.stages[-1].call.outs[0].buffer not in partners:
            _bind_region(item, registry, target, times[id(item)], accesses, parts)
        if not isinstance(item, Call) or not item.kernel:
            continue
        needs = registry.match(item, target)
        if not isinstance(needs, Needs):
            continue
        if item.workers > 1:
            needs = replace(needs, alias=_at_the_same_time(item, needs))
        if not needs.alias:
            continue
        for result, out in enumerate(item.outs):
            if out.buffer in partners:
                _bind_next(item, result, needs, times[id(item)], accesses, parts, *partners[out.buffer])
            else:
                _bind_result(item, result, needs, times[id(item)], accesses, parts)
    for span in spans:
        for carry in span.loop.carries:
            _bind_last(span.loop, carry)


def _at_the_same_time(call: Call, needs: Needs) -> dict[tuple[int, int], int]:
    """Where a result may lie over an operand while several workers write it: every element over the one that it is
    made of, so that nobody reads what another one writes."""
    found = {}
    for (result, index), reach in needs.alias.items():
        out, view = call.outs[result], call.ins[index]
        if reach == 0 and view.buffer.dtype.bits == out.buffer.dtype.bits and elementwise_alias(call, index, result):
            found[result, index] = reach
    return found


def _hold(spans: list[Span], accesses: Known) -> None:
    """What lasts longer than a trip must keep its bytes in all of them: noted as accesses just before and after the
    loop."""
    for span in spans:
        start, end = 2 * span.start, 2 * span.end
        carried = {root(buffer)[0] for carry in span.loop.carries for buffer in (carry.now, carry.next)}
        for base, known in accesses.items():
            if not any(start <= a.time <= end for a in known.all):
                continue
            before, after = base.role == INPUT or known.first < start, known.last > end
            if before or base in carried:
                known.add(Access(end + 1, 0, base.max_bytes, held=True))
            if after or base in carried:
                known.add(Access(start - 1, 0, base.max_bytes, held=True))


def _bind_region(
    region: Rows,
    registry: Registry,
    target: Target,
    now: int,
    accesses: Known,
    parts: set[Buffer],
) -> None:
    """The rows of a stage over those of an operand; the result of a region over an operand that all other readers have
    done with, row by row."""
    for stage in region.stages[:-1]:
        needs = registry.match(stage.call, target)
        if stage.over is not None and isinstance(needs, Needs):
            alias = {pair: reach for pair, reach in needs.alias.items() if pair[1] == stage.over}
            _bind_result(stage.call, 0, replace(needs, alias=alias), now, accesses, parts)
    call = region.stages[-1].call
    needs = registry.match(call, target)
    if not isinstance(needs, Needs):
        return
    if needs.at_end:
        _bind_after(region, call, now, accesses, parts)
        return
    touched = {view.buffer for view in (*reads(region), *writes(region))}
    free = {b for b in region.over if not any(t is not b and root(t)[0] is root(b)[0] for t in touched)}
    alias = {pair: reach for pair, reach in needs.alias.items() if call.ins[pair[1]].buffer in free}
    _bind_result(call, 0, replace(needs, alias=alias), now, accesses, parts)
    if call.outs[0].buffer.overlap is None:
        _bind_before(region, target, now, accesses, parts)


def _bind_before(region: Rows, target: Target, now: int, accesses: Known, parts: set[Buffer]) -> None:
    """The result of a region a little before an operand that dies there: its rows follow those that are read."""
    out = region.stages[-1].call.outs[0]
    buffer = out.buffer
    touched = {view.buffer for view in (*reads(region), *writes(region))}
    for source, nbytes in region.before if _is_free(out, now, accesses, parts) else ():
        base, shift = root(source)
        if base.far != buffer.far:
            continue
        align = max(target.align, buffer.storage.align, base.storage.align)
        start = (shift - nbytes) // align * align
        later = accesses[base].used_after(now, start, start + buffer.max_bytes)
        if later or base.role not in (TEMPORARY, INPUT) or any(t is not source and root(t)[0] is base for t in touched):
            continue
        base.storage = replace(base.storage, align=align)
        _lay(buffer, base, start, accesses)
        return


def _bind_after(region: Rows, call: Call, now: int, accesses: Known, parts: set[Buffer]) -> None:
    """The result of a region that is written when all has been read, over anything that is not needed any more."""
    buffer = call.outs[0].buffer
    if not _is_free(call.outs[0], now, accesses, parts):
        return
    own = {root(view.buffer)[0] for view in call.ins}
    for base in dict.fromkeys(root(view.buffer)[0] for view in reads(region)):
        ends = base.role in (TEMPORARY, INPUT) and base.far == buffer.far and accesses[base].last <= now
        if ends and base not in own and base.max_bytes >= buffer.max_bytes:
            _lay(buffer, base, 0, accesses)
            return


def _bind_next(
    call: Call,
    result: int,
    needs: Needs,
    now: int,
    accesses: Known,
    parts: set[Buffer],
    partner: Buffer,
    span: Span,
) -> None:
    """What a loop hands to its next trip, over what it was handed, if nobody reads that after this call. It can lie
    over nothing else: the two change places."""
    out, (base, shift) = call.outs[result], root(partner)
    later = [a for a in accesses[base].all if now < a.time <= 2 * span.end and not a.held]
    elsewhere = [a for a in accesses[out.buffer].all if a.time != now and not a.held]
    for index, view in enumerate(call.ins):
        if (
            view.buffer is partner
            and needs.alias.get((result, index)) is not None
            and _whole_in_any_order(view)
            and _whole_in_any_order(out)
            and not later
            and not elsewhere
            and out.buffer not in parts
            and _others_agree(call, result, index, needs, base, (shift, shift + out.buffer.max_bytes))
        ):
            _lay(out.buffer, partner, 0, accesses)
            return


def _bind_last(loop: Loop, carry: Carry) -> None:
    """The value after the loop stays where the last trip leaves it."""
    if carry.last.overlap is None and carry.last.role != EXTERNAL:
        odd = isinstance(loop.trips, int) and loop.condition is None and loop.trips % 2
        carry.last.overlap = Overlap(carry.next if odd else carry.now)


def _bind_result(call: Call, result: int, needs: Needs, now: int, accesses: Known, parts: set[Buffer]) -> None:
    out = call.outs[result]
    buffer = out.buffer
    if not _is_free(out, now, accesses, parts):
        return
    for index, view in enumerate(call.ins):
        if needs.alias.get((result, index)) is None or view.buffer.role not in (TEMPORARY, INPUT):
            continue
        if not isinstance(view.offset, int):
            continue
        base, shift = root(view.buffer)
        start = shift + view.offset * view.buffer.dtype.bits // 8
        span = (start, start + buffer.max_bytes)
        if (
            base is buffer
            or base.far != buffer.far
            or start % max(buffer.storage.align, buffer.dtype.bits // 8)
            or start + buffer.max_bytes > base.max_bytes
        ):
            continue
        if accesses[base].used_after(now, *span):
            continue
        if not _others_agree(call, result, index, needs, base, span):
            continue
        _lay(buffer, base, start, accesses)
        return


def _lay(buffer: Buffer, over: Buffer, start: int, accesses: Known) -> None:
    """Lays a buffer over another one; its accesses are then ones of that memory."""
    buffer.overlap = Overlap(over, start)
    over.storage = replace(over.storage, align=max(over.storage.align, buffer.storage.align))
    base, begin = root(buffer)
    accesses[base].take(accesses.pop(buffer), begin)


def _is_free(out: View, now: int, accesses: Known, parts: set[Buffer]) -> bool:
    """Can the buffer of a result still be laid over another one? Not where something of it is alive already: written
    piecewise, or in parts."""
    buffer = out.buffer
    return (
        buffer.overlap is None
        and buffer.role != EXTERNAL
        and _whole_in_any_order(out)
        and buffer not in parts
        and accesses[buffer].first >= now
    )


def _others_agree(call: Call, result: int, chosen: int, needs: Needs, base: Buffer, span: tuple[int, int]) -> bool:
    """Every other operand, result and workspace that lies in those bytes must tolerate the result there too: it is the
    same view of an operand that may be overwritten in the same way."""
    for index, view in enumerate(call.ins):
        if index == chosen or root(view.buffer)[0] is not base:
            continue
        low, high = (edge + root(view.buffer)[1] for edge in view.byte_range)
        if low < span[1] and span[0] < high and (needs.alias.get((result, index)) is None or view != call.ins[chosen]):
            return False
    return all(not (number != result and root(view.buffer)[0] is base) for number, view in enumerate(call.outs))


def _whole_in_any_order(view: View) -> bool:
    if view.lines:
        return view.buffer.shape[0] == view.lines and view.offset == 0
    return view.offset == 0 and view.type.count == view.buffer.type.count
