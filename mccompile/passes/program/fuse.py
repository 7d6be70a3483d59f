"""fuse: elementwise calls are fused into the call that produces their operand, or into the one that reads their result.

Calls are of four classes, as in TVM's grouping by dominators:

  injective  map                        goes into what makes its operand, and into maps and reductions that read it
  reduction  reduce, normalize          takes maps into its element (before) and its epilogue (after)
  anchor     whatever has an epilogue   (convolution, product, pool, normalization): takes maps after it
  opaque     all others                 stay as they are, but for a plain copy of the result: it is made in its place

Bias, activation, residual add and whole chains end up in one expression, and transposing copies end up as strides of
the result. A group ends where its result is read by several, unless these become one (the paths from a call meet again
in a call that takes all of them). A cheap map that several read is computed in each of them where that moves less
memory: where its operands have no more bytes than its result.

The map's view of the operand may be transposed, reshaped, sliced or broadcast; program/retarget.py says over which
shape the fused call runs. Where strides cannot say it, nothing is fused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...base.dims import upper
from ...base.provenance import merge
from ...expr.ir import Apply, Expr, Index, Operand, cast, operand, operands_used, rebuild, substitute, walk
from ...kernels.registry import PORTABLE, Candidate
from ...kinds.api import WithEpilogue
from ...kinds.conv import Conv
from ...kinds.conv_transpose import ConvTranspose
from ...kinds.gemm import Gemm
from ...kinds.map import Map
from ...kinds.normalize import Normalize
from ...kinds.pool import Pool
from ...kinds.reduce import Reduce
from ...program.ir import CONSTANT, TEMPORARY, Buffer, Call, Item, Program, View, bodies, reads
from ...program.ir import walk as walk_items
from ...program.planar import planar
from ...program.retarget import Common, fills, repeats, through, to_shape_of
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from .split_phases import as_convolutions

MAX_NODES = 64  # of a fused expression: enough for every activation, little enough to stay readable
MAX_OPERANDS = 16  # of a fused call
CHEAP_NODES = 8  # of an expression that may be computed several times; reading a quantized element takes as many
# fmt: off
COSTLY = frozenset({
    "exp", "expm1", "log", "log1p", "pow", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "erf", "div", "mod", "fmod",
})
# fmt: on


def fuse(program: Program, context: Context) -> None:
    """Runs until nothing can be fused any more; each fusion removes one call."""
    work = _Fuse(program, context)
    work.body(program.body)
    if work.recompute(program.body):
        work.body(program.body)


class _Fuse:
    def __init__(self, program: Program, context: Context) -> None:
        self.registry, self.target = context.registry, context.target
        self.vectors = any(isa != PORTABLE for isa in self.target.isas)  # can they compute maps, but not all reductions
        self.frugal = self.target.prefer != Prefer.TIME  # is memory worth computing what is normalized in every pass?
        self.names = taken_names(program)
        self.readers: dict[Buffer, int] = {}
        for item in walk_items(program.body):
            self.count(item, 1)
        for _, view in program.outputs:
            self.readers[view.buffer] = self.readers.get(view.buffer, 0) + 1

    def count(self, item: Item, step: int) -> None:
        for buffer in {view.buffer for view in reads(item)}:
            self.readers[buffer] = self.readers.get(buffer, 0) + step

    def body(self, body: list[Item]) -> None:
        """Fuses inside one straight line; regions are lines of their own."""
        done: list[Item | None] = []
        made: dict[Buffer, int] = {}  # position in `done` of the call that makes a buffer
        for item in body:
            if not isinstance(item, Call):
                for inner in bodies(item):
                    self.body(inner)
                done.append(item)
                continue
            call = item
            while (fused := self.into_producer(call, done, made)) is not None:
                call = fused
            for view in call.outs:
                made[view.buffer] = len(done)
            done.append(call)
        body[:] = [item for item in done if item is not None]

    def into_producer(self, call: Call, done: list[Item | None], made: dict[Buffer, int]) -> Call | None:
        """`call` composed with one of its producers (which is taken out of `done`), or None. The result runs where
        `call` did, so everything else it reads is there."""
        if not isinstance(call.kind, Map | Reduce | Normalize):
            return None
        # The latest producer first: it is the one whose result is best consumed at once.
        positions = {made[v.buffer] for v in call.ins if v.buffer in made}
        for position in sorted(positions, reverse=True):
            producer = done[position]
            if not isinstance(producer, Call) or len(producer.outs) != 1 or not fills(producer.outs[0]):
                continue
            buffer = producer.outs[0].buffer
            if self.readers.get(buffer) != 1 or buffer.role != TEMPORARY:
                continue
            fused = self.compose(producer, call)
            if fused is not None:
                self.count(producer, -1)
                self.count(call, -1)
                self.count(fused, 1)
                done[position] = None
                return fused
        return None

    def compose(self, producer: Call, consumer: Call) -> Call | None:
        if self.vectors and isinstance(consumer.kind, Reduce) and _is_costly(producer.kind.expressions()):
            return None
        if isinstance(consumer.kind, Normalize) and (self.vectors or not self.frugal or not _is_cheap(producer)):
            return None
        fused = _compose(producer, consumer)
        return None if fused is None or self.slows(producer, consumer, fused) else fused

    def slows(self, producer: Call, consumer: Call, fused: Call) -> bool:
        """Does what one adds to the other (a mask of truth values, a power) leave only portable code for a sum of
        products, a pool or a reduction that has a faster kernel by itself, or compute the elements of a pool one by
        one?"""
        alone = isinstance(producer.kind, Conv | ConvTranspose | Gemm | Pool | Reduce)
        if self.frugal or not self.vectors or not (alone or isinstance(consumer.kind, Reduce)):
            return False
        together = self.best(fused)
        if not together or not (_any_portable(together) or isinstance(producer.kind, Pool)):
            return False
        first, second = self.best(producer), self.best(consumer)
        if not first or not second or _any_portable(first):
            return False
        return sum(one.cost.time for one in (*first, *second)) < sum(one.cost.time for one in together)

    def best(self, call: Call) -> list[Candidate]:
        """What would do the call, or the convolutions that it may become; nothing where nothing can."""
        calls = as_convolutions(call)
        found = [self.registry.choose(planar(each), self.target).candidates for each in calls]
        return [each[0] for each in found] if all(found) else []

    def recompute(self, body: list[Item]) -> bool:
        """Gives every reader of a cheap map a map of its own, where all of them can take it in."""
        readers: dict[Buffer, list[Call]] = {}
        for item in body:
            if isinstance(item, Call):
                for buffer in {view.buffer for view in item.ins}:
                    readers.setdefault(buffer, []).append(item)
        changed = False
        result: list[Item] = []
        copies: dict[Call, list[Call]] = {}  # to run before a reader
        for item in body:
            for inner in bodies(item):
                changed |= self.recompute(inner)
            if not isinstance(item, Call):
                result.append(item)
                continue
            result += [*copies.pop(item, []), item]
            buffer, takers = item.outs[0].buffer, readers.get(item.outs[0].buffer, [])
            everybody = len(takers) == self.readers.get(buffer) and len(takers) > 1
            if not everybody or not _is_cheap(item) or not all(self.compose(item, taker) for taker in takers):
                continue
            result.pop()
            self.count(item, -1)
            for taker in takers:
                own = Buffer(self.names.take(buffer.name), buffer.dtype, buffer.shape, provenance=buffer.provenance)
                copy = Call(item.kind, item.ins, (replace(item.outs[0], buffer=own),), item.provenance)
                self.count(taker, -1)
                taker.ins = tuple(replace(v, buffer=own) if v.buffer is buffer else v for v in taker.ins)
                self.count(taker, 1)
                self.count(copy, 1)
                copies.setdefault(taker, []).append(copy)
            changed = True
        body[:] = result
        return changed


def _any_portable(candidates: Iterable[Candidate]) -> bool:
    return any(each.kernel.isa == PORTABLE for each in candidates)


def _is_cheap(call: Call) -> bool:
    """A map worth computing several times instead of keeping its result."""
    if not isinstance(call.kind, Map) or call.outs[0].buffer.role != TEMPORARY or not fills(call.outs[0]):
        return False
    if sum(1 for _ in walk(call.kind.expr)) > CHEAP_NODES or _is_costly([call.kind.expr]):
        return False
    read = {view.buffer: upper(view.type.count) for view in call.ins if view.buffer.role != CONSTANT}
    sizes = (min(count, upper(b.type.count)) * b.dtype.bits for b, count in read.items())
    out = call.outs[0]
    return sum(sizes) <= upper(out.type.count) * out.buffer.dtype.bits


def _is_costly(expressions: Iterable[Expr]) -> bool:
    nodes = (node for expr in expressions for node in walk(expr))
    return any(isinstance(node, Apply) and node.function in COSTLY for node in nodes)


def _compose(producer: Call, consumer: Call) -> Call | None:
    """One call that does what both do, or None."""
    fused: Call | None = None
    if isinstance(consumer.kind, Map):
        if isinstance(producer.kind, Map):
            fused = _map_into_map(producer, consumer)
        elif isinstance(producer.kind, WithEpilogue):
            fused = _map_into_epilogue(producer, producer.kind, consumer)
        elif consumer.kind.is_copy and consumer.ins[0] == producer.outs[0] and consumer.outs[0].covers_buffer:
            fused = Call(producer.kind, producer.ins, consumer.outs, merge(producer.provenance, consumer.provenance))
    elif isinstance(consumer.kind, Reduce | Normalize) and isinstance(producer.kind, Map):
        fused = _map_into_element(producer, consumer.kind, consumer)
    return fused if fused is not None and len(fused.ins) <= max(MAX_OPERANDS, len(consumer.ins)) else None


def _map_into_epilogue(producer: Call, kind: WithEpilogue, consumer: Call) -> Call | None:
    buffer = producer.outs[0].buffer
    mine = [view for view in consumer.ins if view.buffer is buffer]
    expr = consumer.kind.expressions()[0]
    if any(view != mine[0] for view in mine) or _has_index(expr):
        return None
    retarget = to_shape_of(mine[0], producer.outs[0])
    if retarget is None:
        return None
    others = [retarget(view) for view in consumer.ins if view.buffer is not buffer]
    out = retarget(consumer.outs[0])
    if out is None or any(view is None for view in others):
        return None
    inner = kind.epilogue or operand(0, mine[0].buffer.dtype)
    extras = list(producer.ins[kind.fixed :]) + [view for view in others if view is not None]
    position = iter(range(len(producer.ins) - kind.fixed + 1, len(extras) + 1))
    mapping = {
        index: inner if view.buffer is buffer else operand(next(position), view.buffer.dtype)
        for index, view in enumerate(consumer.ins)
    }
    composed = _merged(expr, mapping)
    if composed is None:
        return None
    # Operand 0 of an epilogue is the element; equal views among the others are passed once.
    composed, extras = _without_duplicates(composed, extras, first=1)
    if 0 not in operands_used(composed):
        return None  # kernels take it that what they sum is used
    return Call(
        replace(kind, epilogue=composed),
        (*producer.ins[: kind.fixed], *extras),
        (out,),
        merge(producer.provenance, consumer.provenance),
    )


def _map_into_map(producer: Call, consumer: Call) -> Call | None:
    out = producer.outs[0]
    mine = [view for view in consumer.ins if view.buffer is out.buffer]
    if not _keeps_index(producer, mine):
        return None
    found = _seen_through(producer, list(consumer.ins))
    outs = consumer.outs
    if found is None:  # over a finer shape
        common = Common.of(mine[0], out) if all(view == mine[0] for view in mine) else None
        if common is None or _has_index(consumer.kind.expressions()[0]) or _has_index(producer.kind.expressions()[0]):
            return None
        cut = [v if v.buffer is out.buffer else common.first(v) for v in consumer.ins]
        found = [[common.second(v) for v in producer.ins] if v.buffer is out.buffer else [v] for v in cut]
        outs = (common.first(outs[0]),)
    joined = _joined(producer, consumer.kind.expressions()[0], list(consumer.ins), found)
    if joined is None:
        return None
    return Call(Map(joined[0]), tuple(joined[1]), outs, merge(producer.provenance, consumer.provenance))


def _map_into_element(producer: Call, kind: Reduce | Normalize, consumer: Call) -> Call | None:
    """A map into what is combined or normalized; not where a result that the epilogue needs as well would come
    twice."""
    out = producer.outs[0]
    ins, extras = list(consumer.ins[: kind.operands]), consumer.ins[kind.operands :]
    if any(view.buffer is out.buffer for view in extras):
        return None
    if not _keeps_index(producer, [view for view in ins if view.buffer is out.buffer]):
        return None
    found = _seen_through(producer, ins)
    element = kind.element or cast(operand(0, ins[0].buffer.dtype), kind.accumulator)
    joined = None if found is None else _joined(producer, element, ins, found, keep_one=True)
    if joined is None:
        return None
    made = replace(kind, element=joined[0], operands=len(joined[1]))
    return Call(made, (*joined[1], *extras), consumer.outs, merge(producer.provenance, consumer.provenance))


def _seen_through(producer: Call, ins: list[View]) -> list[list[View]] | None:
    """Each operand, or what stands for it: the producer's operands as seen through it."""
    out = producer.outs[0]
    found: list[list[View]] = []
    for view in ins:
        if view.buffer is not out.buffer:
            found.append([view])
            continue
        if repeats(view):
            return None  # it would be computed again for every reader
        moved = [through(view, out, source) for source in producer.ins]
        seen = [source for source in moved if source is not None]
        if len(seen) < len(moved):
            return None
        found.append(seen)
    return found


def _joined(
    producer: Call, expr: Expr, ins: list[View], found: list[list[View]], keep_one: bool = False
) -> tuple[Expr, list[View]] | None:
    """`expr` over `ins`, with the producer's expression where its result was; and the operands of all that."""
    inner = producer.kind.expressions()[0]
    views: list[View] = []
    mapping: dict[int, Expr] = {}
    for index, (view, seen) in enumerate(zip(ins, found, strict=True)):
        if view.buffer is producer.outs[0].buffer:
            mapping[index] = substitute(inner, {i: operand(len(views) + i, v.buffer.dtype) for i, v in enumerate(seen)})
        else:
            mapping[index] = operand(len(views), view.buffer.dtype)
        views += seen
    composed = _merged(expr, mapping)
    if composed is None:
        return None
    found_once = _without_duplicates(composed, views)
    return None if keep_one and not found_once[1] else found_once  # a reduction takes its shape from an operand


def _merged(expr: Expr, mapping: dict[int, Expr]) -> Expr | None:
    """The composed expression, unless it grows too large (an operand used twice doubles what is behind it)."""
    composed = substitute(expr, mapping)
    return composed if sum(1 for _ in walk(composed)) <= MAX_NODES else None


def _without_duplicates(expr: Expr, ins: list[View], first: int = 0) -> tuple[Expr, list[View]]:
    """Equal views are passed once, unused ones not at all; `first`: the operand of the expression that ins[0] is. Once
    two operands are one, what compares them may be a literal."""
    used = operands_used(expr)
    kept: dict[View, int] = {}
    number = {index: index for index in range(first)}
    for index, view in enumerate(ins, first):
        if index in used:
            number[index] = kept.setdefault(view, len(kept) + first)
    renamed = rebuild(expr, lambda n: operand(number[n.index], n.dtype) if isinstance(n, Operand) else None)
    fewer = len(operands_used(renamed)) < len(operands_used(expr) & set(range(first))) + len(kept)
    return _without_duplicates(renamed, list(kept), first) if fewer else (renamed, list(kept))


def _has_index(expr: Expr) -> bool:
    return any(isinstance(node, Index) for node in walk(expr))


def _keeps_index(producer: Call, views: list[View]) -> bool:
    """Does an index in the producer mean the same to who sees its result through these views?"""
    out = producer.outs[0]
    return not _has_index(producer.kind.expressions()[0]) or all(
        view.shape == out.shape
        and view.offset == out.offset
        and all(a == b or n == 1 for n, a, b in zip(out.shape, view.strides, out.strides, strict=True))
        for view in views
    )
