"""fuse: elementwise calls become part of the call that makes their operand.

A `map` whose operand is made by one call and read by nobody else is composed into that call: into its epilogue
(convolution, matrix product, pool ...) or into its expression (another map). Bias, activation, residual add and whole
chains end up in one expression, and transposing copies end up as strides of the result.

The map's view of the operand may be transposed, reshaped, sliced or broadcast; the other operands and the result are
re-expressed over the producer's shape (or the producer's operands over the map's), and where that is impossible nothing
is fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...base.dims import Dim, static, upper
from ...base.provenance import merge
from ...base.tensor import Shape, dense_strides
from ...expr.ir import Expr, Index, Operand, operand, operands_used, rebuild, substitute, walk
from ...kinds.api import WithEpilogue
from ...kinds.map import Map
from ...program.ir import TEMPORARY, Buffer, Call, Item, Program, View, bodies, reads
from ...program.ir import walk as walk_items
from ..api import Context

MAX_NODES = 64  # of a fused expression: enough for every activation, little enough to stay readable


def fuse(program: Program, context: Context) -> None:
    """Runs until nothing can be fused any more; each fusion removes one call."""
    _Fuse(program).body(program.body)


class _Fuse:
    def __init__(self, program: Program) -> None:
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
        if not isinstance(call.kind, Map):
            return None
        # The latest producer first: it is the one whose result is best consumed at once.
        positions = {made[v.buffer] for v in call.ins if v.buffer in made}
        for position in sorted(positions, reverse=True):
            producer = done[position]
            if not isinstance(producer, Call) or len(producer.outs) != 1:
                continue
            buffer = producer.outs[0].buffer
            if self.readers.get(buffer) != 1 or buffer.role != TEMPORARY or not _fills(producer.outs[0]):
                continue
            fused = _compose(producer, call)
            if fused is not None:
                self.count(producer, -1)
                self.count(call, -1)
                self.count(fused, 1)
                done[position] = None
                return fused
        return None


def _compose(producer: Call, consumer: Call) -> Call | None:
    if isinstance(producer.kind, Map):
        return _map_into_map(producer, consumer)
    if isinstance(producer.kind, WithEpilogue):
        return _map_into_epilogue(producer, producer.kind, consumer)
    return None


def _map_into_epilogue(producer: Call, kind: WithEpilogue, consumer: Call) -> Call | None:
    buffer = producer.outs[0].buffer
    mine = [view for view in consumer.ins if view.buffer is buffer]
    expr = consumer.kind.expressions()[0]
    if any(view != mine[0] for view in mine) or any(isinstance(node, Index) for node in walk(expr)):
        return None
    retarget = _retarget(mine[0], producer.outs[0])
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
    return Call(
        replace(kind, epilogue=composed),
        (*producer.ins[: kind.fixed], *extras),
        (out,),
        merge(producer.provenance, consumer.provenance),
    )


def _map_into_map(producer: Call, consumer: Call) -> Call | None:
    buffer = producer.outs[0].buffer
    expr = consumer.kind.expressions()[0]
    inner = producer.kind.expressions()[0]
    if any(isinstance(node, Index) for node in walk(inner)):
        return None
    ins: list[View] = []
    mapping: dict[int, Expr] = {}
    for index, view in enumerate(consumer.ins):
        if view.buffer is not buffer:
            mapping[index] = operand(len(ins), view.buffer.dtype)
            ins.append(view)
            continue
        if upper(view.type.count) > upper(buffer.type.count):
            return None  # broadcast: it would be computed again for every reader
        moved = [_through(view, producer.outs[0], source) for source in producer.ins]
        if any(source is None for source in moved):
            return None
        shifted = {i: operand(len(ins) + i, source.buffer.dtype) for i, source in enumerate(producer.ins)}
        mapping[index] = substitute(inner, shifted)
        ins += [source for source in moved if source is not None]
    composed = _merged(expr, mapping)
    if composed is None:
        return None
    expr, ins = _without_duplicates(composed, ins)
    return Call(Map(expr), tuple(ins), consumer.outs, merge(producer.provenance, consumer.provenance))


def _merged(expr: Expr, mapping: dict[int, Expr]) -> Expr | None:
    """The composed expression, unless it grows too large (an operand used twice doubles what is behind it)."""
    composed = substitute(expr, mapping)
    return composed if sum(1 for _ in walk(composed)) <= MAX_NODES else None


def _without_duplicates(expr: Expr, ins: list[View]) -> tuple[Expr, list[View]]:
    """Equal views are passed once, unused ones not at all."""
    used = operands_used(expr)
    kept: list[View] = []
    number: dict[int, int] = {}
    for index, view in enumerate(ins):
        if index not in used:
            continue
        if view not in kept:
            kept.append(view)
        number[index] = kept.index(view)
    renamed = rebuild(expr, lambda n: operand(number[n.index], n.dtype) if isinstance(n, Operand) else None)
    return renamed, kept


def _fills(out: View) -> bool:
    """Does the view touch every element of its buffer, in whatever order of axes?"""
    return out.offset == 0 and out.type.count == out.buffer.type.count


def _retarget(view: View, out: View) -> Callable[[View], View | None] | None:
    """How views over `view.shape` are re-expressed over `out.shape`, where both look at the same whole buffer; None
    where `view` is neither a transposition nor a reshape of `out`."""
    if view.shape == out.shape and view.strides == out.strides and view.offset == out.offset:
        return lambda other: other
    order = _axis_order(view, out)
    if order is not None:
        inverse = sorted(range(len(order)), key=lambda axis: order[axis])
        return lambda other: other.permuted(inverse)
    if view.is_dense and view.offset == 0 and out.is_dense and view.type.count == out.type.count:
        return lambda other: other.reshaped(out.shape)
    return None


def _axis_order(view: View, out: View) -> list[int] | None:
    """Which axis of `out` each axis of `view` runs along, if one is a transposition of the other."""
    if len(view.shape) != len(out.shape) or view.offset != out.offset:
        return None
    free = list(range(len(out.shape)))
    order: list[int] = []
    for dim, stride in zip(view.shape, view.strides, strict=True):
        fits = [a for a in free if out.shape[a] == dim and (dim == 1 or out.strides[a] == stride)]
        if not fits:
            return None
        order.append(fits[0])
        free.remove(fits[0])
    return order


def _through(view: View, out: View, source: View) -> View | None:
    """`source`, an operand over `out.shape`, as seen by somebody who looks at the result `out` through `view`."""
    order = _axis_order(view, out)
    if order is not None:
        return source.permuted(order)
    if view.is_dense and view.offset == 0 and out.is_dense and view.type.count == out.type.count:
        return source.reshaped(view.shape)
    return _sliced(view, out.shape, source) if out.is_dense else None


def _sliced(view: View, shape: Shape, source: View) -> View | None:
    """A slice (with steps) of the producer's result, taken of its operand instead; axes keep their order."""
    if len(view.shape) != len(shape) or not all(
        isinstance(d, int) for d in (*shape, *view.shape, *view.strides, view.offset)
    ):
        return None
    offset: Dim = source.offset
    rest = static(view.offset)
    strides: list[Dim] = []
    for axis, (size, stride) in enumerate(zip(shape, dense_strides(shape), strict=True)):
        unit, step = static(stride), static(view.strides[axis])
        start, rest = divmod(rest, unit) if unit else (0, rest)
        count = static(view.shape[axis])
        if (count > 1 and step % unit) or not 0 <= start + (count - 1) * (step // unit if count > 1 else 0) < static(
            size
        ):
            return None
        offset = offset + source.strides[axis] * start
        strides.append(source.strides[axis] * (step // unit) if count > 1 else 0)
    if rest:
        return None
    return View(source.buffer, view.shape, tuple(strides), offset)
