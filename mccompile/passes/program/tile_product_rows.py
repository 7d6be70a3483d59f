"""tile_product_rows: two consecutive products run by blocks of rows, where the tensor between them is most of the
memory at the peak.

The MLP of a transformer makes each row four times as wide and narrow again. Rows do not depend on each other, so a
block of rows goes through both products before the next one, and only a block of what is between exists at a time. The
results are joined, which bufferize has them written in place for. Blocks have as many rows where that is possible,
so that they share one function, and are long enough for kernels to be as quick as on all rows. Where time comes first,
only long blocks are made.

Invariant: nothing is computed twice, and each result is what it was.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from ...base.dims import static
from ...base.names import Names
from ...base.records import dataclass
from ...kinds.block_gemm import BlockGemm
from ...kinds.concat import Concat
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, TEMPORARY, Buffer, Call, Program, View, reads, walk, writes
from ...program.taken_names import taken_names
from ..api import Context
from ..memory.liveness import liveness

SHORTEST = 16  # rows of a block, where memory comes first
LONG = 256  # rows for which reading the weights once more takes no time that can be measured
MOST = 8  # blocks


@dataclass(frozen=True)
class Pair:
    """Two products by their places in the body, and what lies between them."""

    first: int
    second: int
    between: Buffer
    rows: int


def tile_product_rows(program: Program, context: Context) -> None:
    if not context.memory.blocks:
        return
    shortest = SHORTEST if context.memory.rows else LONG * context.threads
    pairs = _pairs(program)
    if not pairs:
        return
    alive = _alive(program)
    inside = {place for pair in pairs for place in (pair.first, pair.second)}
    floor = max((size for place, size in enumerate(alive) if place not in inside), default=0)
    names = taken_names(program)
    most = {pair: max(alive[pair.first], alive[pair.second]) for pair in pairs}
    counts = {pair: _blocks(pair, most[pair], floor, shortest) for pair in pairs}
    gaining = sorted((pair for pair in pairs if counts[pair] > 1), key=lambda pair: -most[pair])
    for pair in sorted(_apart(gaining), key=lambda pair: -pair.first):
        _split(program, pair, counts[pair], names)


def _apart(pairs: list[Pair]) -> list[Pair]:
    """Those that meet none before them: splitting moves the first product to the second, so a place that lies within
    two pairs would be another call for the second one of these."""
    kept: list[Pair] = []
    for pair in pairs:
        if all(pair.second < other.first or other.second < pair.first for other in kept):
            kept.append(pair)
    return kept


def _pairs(program: Program) -> list[Pair]:
    readers: dict[Buffer, list[int]] = {}
    makers: dict[Buffer, list[int]] = {}
    for place, item in enumerate(program.body):
        for inner in walk([item]):
            for view in reads(inner):
                readers.setdefault(view.buffer, []).append(place)
            for view in writes(inner):
                makers.setdefault(view.buffer, []).append(place)
    outputs = {view.buffer for _, view in program.outputs}
    found: list[Pair] = []
    for first, item in enumerate(program.body):
        if not isinstance(item, Call) or not _is_product(item):
            continue
        made = item.outs[0]
        users = readers.get(made.buffer, [])
        if made.buffer in outputs or makers[made.buffer] != [first] or len(users) != 1:
            continue
        after, rows = program.body[users[0]], static(made.shape[-2])
        if isinstance(after, Call) and _is_product(after) and after.ins[0].buffer is made.buffer:
            whole = made.buffer.role == TEMPORARY and after.ins[0].covers_buffer
            if whole and after.ins[0].shape[-2] == after.outs[0].shape[-2] == rows:
                found.append(Pair(first, users[0], made.buffer, rows))
    return found


def _is_product(call: Call) -> bool:
    """Of one matrix and a constant, all of it known."""
    if not isinstance(call.kind, Gemm | BlockGemm) or not call.outs[0].covers_buffer:
        return False
    if isinstance(call.kind, Gemm) and call.kind.a_zero:
        return False  # these go by rows too
    known = all(view.is_static and isinstance(view.offset, int) for view in (*call.ins, *call.outs))
    packed = any(view.buffer.dtype.is_packed for view in (call.ins[0], *call.ins[call.kind.fixed :], *call.outs))
    alone = all(dim == 1 for dim in call.outs[0].shape[:-2])
    return known and alone and not packed and call.ins[1].buffer.role == CONSTANT


def _alive(program: Program) -> list[int]:
    """Bytes that are alive during each item of the body, without anything in place."""
    changes: dict[int, int] = {}
    for buffer, span in liveness(program).items():
        changes[span.start] = changes.get(span.start, 0) + buffer.max_bytes
        changes[span.end] = changes.get(span.end, 0) - buffer.max_bytes
    whole = list(accumulate(changes.get(time, 0) for time in range(max(changes, default=0) + 1)))
    found, time = [], 0
    for item in program.body:
        found.append(whole[time + 1] if time + 1 < len(whole) else 0)
        time += sum(1 for _ in walk([item]))
    return found


def _blocks(pair: Pair, most: int, floor: int, shortest: int) -> int:
    """As few as bring the memory down to what is needed elsewhere, or some more where these have as many rows."""
    row = pair.between.max_bytes // pair.rows
    possible = [count for count in range(1, MOST + 1) if count == 1 or pair.rows // count >= shortest]
    held = {count: max(most - (pair.rows - -(-pair.rows // count)) * row, floor) for count in possible}
    enough = [count for count in possible if held[count] == min(held.values())]
    return next((count for count in enough if pair.rows % count == 0), enough[0])


def _split(program: Program, pair: Pair, count: int, names: Names) -> None:
    first, second = program.body[pair.first], program.body[pair.second]
    assert isinstance(first, Call) and isinstance(second, Call)
    most = -(-pair.rows // count)
    calls: list[Call] = []
    for start in range(0, pair.rows, most):
        size = min(most, pair.rows - start)
        made = _block(first, _rows(first.ins[0], start, size), start, size, names)
        taken = made.outs[0].reshaped((*second.ins[0].shape[:-2], size, second.ins[0].shape[-1]))
        assert taken is not None  # it is dense
        calls += [made, _block(second, taken, start, size, names)]
    parts = tuple(call.outs[0] for call in calls[1::2])
    joined = Call(Concat(len(second.outs[0].shape) - 2), parts, second.outs, second.provenance)
    program.body[pair.second : pair.second + 1] = [*calls, joined]
    del program.body[pair.first]
    program.values = [(name, view) for name, view in program.values if view.buffer is not pair.between]


def _rows(view: View, start: int, size: int) -> View:
    return view.sliced(len(view.shape) - 2, start, size)


def _block(call: Call, multiplied: View, start: int, size: int, names: Names) -> Call:
    """The call for some of its rows."""
    assert isinstance(call.kind, Gemm | BlockGemm)
    out, fixed = call.outs[0], call.kind.fixed
    shape = (*out.shape[:-2], size, out.shape[-1])
    buffer = Buffer(names.take(f"{out.buffer.name}_rows"), out.buffer.dtype, shape, provenance=call.provenance)
    others = (_rows(view, start, size) for view in call.ins[fixed:])
    return replace(call, ins=(multiplied, *call.ins[1:fixed], *others), outs=(buffer.whole(),))
