"""fuse_attention: product, softmax and product become one call, which keeps no matrix of scores.

All spellings come down to that: scale, mask and bias, wherever they stand between the first product and the softmax,
are one expression over the product by then (of maps that `fuse` left, too), transposes are strides. Products may be of
matrices, or of batches that the softmax sees cut otherwise, so everything is looked at over one frame: the shape of the
scores, cut as finely as any of the calls cuts it. An axis along which keys and values repeat, as where heads share
them, is a batch with a stride of 0.

Keys and values that are widened for it alone are read as they are stored (`stored_keys.py`), those of a cache always.

It is done where that takes less time or about the same, or, if RAM is preferred, less memory. Nobody else may read
scores or shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.dims import Dim, bounds, upper
from ...base.dtypes import bool_, f32
from ...base.provenance import merge
from ...base.records import dataclass
from ...base.tensor import Shape
from ...codegen.traffic import bytes_cycles, has_traffic
from ...expr.ir import Expr, Index, apply, operand, rebuild, substitute, walk
from ...kernels.api import viewed
from ...kernels.registry import effort
from ...kinds.attention import Attention
from ...kinds.gemm import Gemm
from ...kinds.map import Map
from ...kinds.normalize import Normalize
from ...program.ir import TEMPORARY, Buffer, Call, Item, Program, View, bodies, reads
from ...program.ir import walk as walk_items
from ...program.retarget import Alignment, aligned, fills, repeats
from ...targets.api import Prefer
from ..api import Context
from .stored_keys import read_as_stored

MAX_NODES = 64  # of the score
ABOUT = 1.05  # times the time is as long, as far as models tell: then what needs less memory is made


def fuse_attention(program: Program, context: Context) -> None:
    readers: dict[Buffer, int] = {}
    for item in walk_items(program.body):
        for buffer in {view.buffer for view in reads(item)}:
            readers[buffer] = readers.get(buffer, 0) + 1
    for _, view in program.outputs:
        readers[view.buffer] = readers.get(view.buffer, 0) + 1
    _body(program.body, program, context, readers)


def _body(body: list[Item], program: Program, context: Context, readers: dict[Buffer, int]) -> None:
    made: dict[Buffer, Call] = {}
    gone: set[Call] = set()
    result: list[Item] = []
    for item in body:
        for inner in bodies(item):
            _body(inner, program, context, readers)
        if isinstance(item, Call):
            found = _found(item, made, readers)
            if found is not None and found.fact and not context.training.may_use(found.fact):
                found = None
            if found is not None and _is_better(found.fused, found.parts, context):
                item = found.fused
                gone.update(found.parts)
                narrow, widening = read_as_stored(item, made, readers)
                if widening and (_of_states(narrow, program) or _takes_less(narrow, (item, *widening), context)):
                    item = narrow
                    gone.update(widening)
                program.assumptions |= dict.fromkeys([found.fact] if found.fact else [])
            for view in item.outs:
                made[view.buffer] = item
        result.append(item)
    body[:] = [item for item in result if not isinstance(item, Call) or item not in gone]


def _is_better(fused: Call, parts: Sequence[Call], context: Context) -> bool:
    """Than its parts, of which the first ones make scores."""
    choices = [context.registry.choose(call, context.target).candidates for call in (fused, *parts)]
    if not all(choices):
        return False
    (best, *_), *others = choices
    prefer = context.target.prefer
    scores = max(upper(part.outs[0].type.count) * f32.bits // 8 for part in parts[:-1])
    if prefer == Prefer.RAM and best.needs.scratch < scores:
        return True
    apart = sum(effort(found[0].cost, context.target) for found in others)
    if has_traffic(context.target):  # models of products leave out that scores are written, and shares read again
        apart += 2 * bytes_cycles(scores, context.target)
        apart *= ABOUT
    return effort(best.cost, context.target) <= apart


def _of_states(call: Call, program: Program) -> bool:
    """Are keys or values those of a cache that is stored in fewer bits? Whole copies as floats would need more memory
    than that saves."""
    kept = {view.buffer for name, view in program.outputs if name in program.states.values()}
    return any(view.buffer in kept for view in call.ins[1:3])


def _takes_less(one: Call, others: Sequence[Call], context: Context) -> bool:
    """Less time or about the same, or memory where that counts most."""
    choices = [context.registry.choose(call, context.target).candidates for call in (one, *others)]
    if not all(choices) or context.target.prefer == Prefer.RAM:
        return all(choices)
    best, *apart = (effort(found[0].cost, context.target) for found in choices)
    return best <= ABOUT * sum(apart)


@dataclass(frozen=True)
class _Found:
    fused: Call
    parts: tuple[Call, ...]  # what it stands for, in order
    fact: str  # that it relies on; or nothing


def _found(call: Call, made: dict[Buffer, Call], readers: dict[Buffer, int]) -> _Found | None:
    """What a second product becomes with all in front of it."""
    if not _is_product(call):
        return None
    for side in (0, 1):
        buffer = call.ins[side].buffer
        softmax = made.get(buffer)
        if softmax is None or sum(view.buffer is buffer for view in call.ins) != 1 or not _is_softmax(softmax):
            continue
        if not _only_for_one(softmax, readers):
            continue
        scores = _Scores.of(softmax)
        parts: list[Call] = [softmax, call]
        while scores is not None and (producer := scores.producer(made, readers)) is not None:
            parts.insert(0, producer)
            if isinstance(producer.kind, Gemm):
                fused = scores.attention(producer, call, side)
                if fused is None:
                    break
                provenance = parts[0].provenance
                for part in parts[1:]:
                    provenance = merge(provenance, part.provenance)
                return _Found(replace(fused, provenance=provenance), tuple(parts), scores.fact)
            scores = scores.behind(producer)
    return None


def _is_product(call: Call) -> bool:
    kind = call.kind
    if not isinstance(kind, Gemm) or kind.accumulator is not f32 or kind.a_zero or kind.b_zero:
        return False
    return all(view.buffer.dtype.is_float for view in call.ins[:2])


def _is_softmax(call: Call) -> bool:
    kind = call.kind
    if not isinstance(kind, Normalize) or kind.measure != "softmax" or len(kind.axes) != 1:
        return False
    return kind.accumulator is f32 and call.outs[0].buffer.dtype is f32


def _only_for_one(call: Call, readers: dict[Buffer, int]) -> bool:
    out = call.outs[0]
    return len(call.outs) == 1 and readers.get(out.buffer) == 1 and out.buffer.role == TEMPORARY and fills(out)


def _is_zero(view: View) -> bool:
    constant = view.buffer.constant
    return constant is not None and view.is_static and not viewed(view, constant).any()


@dataclass(frozen=True)
class _Scores:
    """What goes into the softmax: an expression over views of one shape, the frame; the result lies as `out` says."""

    expr: Expr
    views: tuple[View, ...]
    out: View
    keys: int  # the axis of the softmax
    or_zero: bool = False  # are shares that are not the number 0?
    chosen: tuple[View, ...] = ()  # which rows have shares of 0 instead, and that 0
    fact: str = ""  # about that 0

    @staticmethod
    def of(call: Call) -> _Scores | None:
        kind = call.of(Normalize)
        if kind.element is None and call.ins[0].buffer.dtype is not f32:
            return None
        keys, extras = kind.axes[0], call.ins[kind.operands :]
        scores = _Scores(kind.element or operand(0, f32), call.ins[: kind.operands], call.outs[0], keys)
        if kind.epilogue is None:
            return scores
        share = operand(0, f32)
        for number, zero in enumerate(extras, 1):
            if not _is_zero(zero):
                continue
            scores = replace(scores, fact=f"{zero.buffer.name} is 0")
            if kind.epilogue == apply("select", apply("is_nan", share), operand(number, f32), share):
                return replace(scores, or_zero=True)
            for other, rows in enumerate(extras, 1):
                if kind.epilogue == apply("select", operand(other, bool_), operand(number, f32), share):
                    return replace(scores, chosen=(rows, zero)) if rows.strides[keys] == 0 else None
        return None

    def producer(self, made: dict[Buffer, Call], readers: dict[Buffer, int]) -> Call | None:
        """The call, product or map, that made the scores for nobody else; of several the last."""
        order = list(made.values())
        found = []
        for view in self.views:
            call = made.get(view.buffer)
            if call is None or not _only_for_one(call, readers) or repeats(view):
                continue
            if isinstance(call.kind, Map) or _is_product(call):
                found.append(call)
        products = [call for call in found if isinstance(call.kind, Gemm)]
        return max(products or found, key=order.index, default=None)

    def onto(self, view: View, other: View) -> tuple[_Scores, Alignment] | None:
        """The same over a frame in which `view`, over this one, and `other`, of the same elements, look alike."""
        found = aligned(view, other)
        if found is None:
            return None
        if not found.cuts:
            return self, found
        pieces = found.pieces
        if pieces[self.keys] != 1 or any(isinstance(node, Index) for node in walk(self.expr)):
            return None
        keys = sum(pieces[: self.keys])
        views = tuple(found.first(v) for v in self.views)
        chosen = tuple(found.first(v) for v in self.chosen)
        return replace(self, views=views, out=found.first(self.out), keys=keys, chosen=chosen), found

    def behind(self, producer: Call) -> _Scores | None:
        """With the expression of a map in place of its result."""
        buffer = producer.outs[0].buffer
        mine = [view for view in self.views if view.buffer is buffer]
        expr = producer.kind.expressions()[0]
        if any(view != mine[0] for view in mine):
            return None
        moved = self.onto(mine[0], producer.outs[0])
        if moved is None or (any(isinstance(n, Index) for n in walk(expr)) and not moved[1].same):
            return None
        scores, change = moved
        sources = tuple(change.second(view) for view in producer.ins)
        return scores.with_part(buffer, expr, sources, 0)

    def with_part(self, buffer: Buffer, expr: Expr, sources: tuple[View, ...], first: int) -> _Scores | None:
        """With an expression in place of a view; its operands from `first` on become views, those before stay."""
        kept = [view for view in self.views if view.buffer is not buffer]
        mapping: dict[int, Expr] = {}
        inner = {i: operand(i, f32) for i in range(first)}
        inner |= {first + i: operand(first + len(kept) + i, v.buffer.dtype) for i, v in enumerate(sources)}
        for index, view in enumerate(self.views):
            if view.buffer is buffer:
                mapping[index] = substitute(expr, inner)
            else:
                mapping[index] = operand(first + kept.index(view), view.buffer.dtype)
        made = substitute(self.expr, mapping)
        if sum(1 for _ in walk(made)) > MAX_NODES:
            return None
        return replace(self, expr=made, views=(*kept, *sources))

    def attention(self, product: Call, last: Call, side: int) -> Call | None:
        """The whole: `product` makes the scores, `last` multiplies the shares, its operand `side`, with values."""
        out = product.outs[0]
        mine = [view for view in self.views if view.buffer is out.buffer]
        moved = None if any(view != mine[0] for view in mine) else self.onto(mine[0], out)
        if moved is None:
            return None
        scores, change = moved
        a, b = product.ins[:2]
        sides = [
            (change.second(_over(a, out, (*a.strides[:-1], 0))), a.shape[-1], a.strides[-1]),
            (change.second(_over(b, out, (*b.strides[:-2], 0, b.strides[-1]))), b.shape[-2], b.strides[-2]),
        ]
        kind = product.of(Gemm)
        extras = tuple(change.second(view) for view in product.ins[2:])
        indexed = any(isinstance(node, Index) for node in walk(kind.epilogue)) if kind.epilogue else False
        found = scores.with_part(out.buffer, kind.epilogue or operand(0, f32), extras, 1)
        if found is None or (indexed and not change.same):
            return None
        second = found.onto(found.out, last.ins[side])
        if second is None:
            return None
        scores, change = second
        if change.cuts:
            sides = [(change.first(view), count, stride) for view, count, stride in sides]
        return _Frame(scores, sides, change, last, side).call()


def _over(view: View, out: View, strides: Shape) -> View:
    """A factor as it is met by each element of a product."""
    return View(view.buffer, out.shape, strides, view.offset)


@dataclass(frozen=True)
class _Frame:
    """Everything over one frame: the scores, both factors of the product (with size and stride of what is summed up),
    and how the last product lies in it."""

    scores: _Scores
    sides: Sequence[tuple[View, Dim, Dim]]
    change: Alignment
    last: Call
    side: int

    def call(self) -> Call | None:
        keys = self.scores.keys
        shares, other, y = self.last.ins[self.side], self.last.ins[1 - self.side], self.last.outs[0]
        marks = (0,) * (len(shares.shape) - 1)
        summed, free = (-1, -2) if self.side == 0 else (-2, -1)  # axes of the shares
        mark = self.change.second(replace(shares, strides=(*marks, 1) if self.side == 0 else (*marks[:-1], 1, 0)))
        shape = mark.shape
        if [axis for axis, stride in enumerate(mark.strides) if stride != 0 and shape[axis] != 1] != [keys]:
            return None
        if mark.strides[keys] != 1 or bounds(shape[keys])[0] < 1:
            return None

        def of_rows(view: View) -> View:
            """A view over the last result, over the frame: it has no keys."""
            strides: list[Dim] = [*view.strides[:-2], 0, 0]
            strides[free] = view.strides[-2 if self.side == 0 else -1]
            return self.change.second(replace(shares, buffer=view.buffer, strides=tuple(strides), offset=view.offset))

        steps: list[Dim] = [*other.strides[:-2], 0, 0]
        steps[summed] = other.strides[-2 if self.side == 0 else -1]
        value = self.change.second(replace(shares, buffer=other.buffer, strides=tuple(steps), offset=other.offset))
        across = -1 if self.side == 0 else -2  # the axis of channels
        query, key = self.sides if self.sides[0][0].strides[keys] == 0 else (self.sides[1], self.sides[0])
        if query[0].strides[keys] != 0:
            return None
        shared = [
            axis
            for axis in range(len(shape))
            if axis != keys and all(view.strides[axis] == 0 or shape[axis] == 1 for view in (key[0], value))
        ]
        rows = max(shared, key=lambda axis: (upper(shape[axis]), axis), default=-1)
        batch = [axis for axis in range(len(shape)) if axis not in (rows, keys)]

        def cut(view: View, *more: tuple[Dim, Dim] | int) -> View:
            """Batches, then axes of the frame or others given by size and stride."""
            axes = [(view.shape[axis], view.strides[axis]) for axis in batch]
            for axis in more:
                known = axis if isinstance(axis, tuple) else (1, 0) if axis < 0 else (shape[axis], view.strides[axis])
                axes.append(known)
            return replace(view, shape=tuple(n for n, _ in axes), strides=tuple(s for _, s in axes))

        epilogue = self.last.of(Gemm).epilogue
        if epilogue is not None and any(isinstance(node, Index) for node in walk(epilogue)):
            return None
        places = {axis: place for place, axis in enumerate((*batch, rows, keys))}
        expr = rebuild(self.scores.expr, lambda n: replace(n, axis=places[n.axis]) if isinstance(n, Index) else None)
        channels, chosen = (y.shape[across], y.strides[across]), self.scores.chosen
        if chosen:
            element = apply("select", operand(1, bool_), operand(2, f32), operand(0, f32))
            inner = {i: operand(2 + i, view.buffer.dtype) for i, view in enumerate(self.last.ins[2:], 1)}
            epilogue = element if epilogue is None else substitute(epilogue, {0: element, **inner})
        ins = [
            cut(query[0], rows, query[1:]),
            cut(key[0], key[1:], keys),
            cut(value, keys, (other.shape[across], other.strides[across])),
            *(cut(view, rows, keys) for view in self.scores.views),
            *(cut(view, rows, (channels[0], 0)) for view in chosen),
            *(cut(of_rows(view), rows, (y.shape[across], view.strides[across])) for view in self.last.ins[2:]),
        ]
        score = None if expr == operand(0, f32) else expr
        kind = Attention(f32, score, len(self.scores.views), self.scores.or_zero, epilogue)
        return Call(kind, tuple(ins), (cut(of_rows(y), rows, channels),))
