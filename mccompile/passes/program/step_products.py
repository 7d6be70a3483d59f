"""step_products: the gradient of a product's weights, the new weights that are made of it, and the gradient of what
they are multiplied with become one call: part of recompute_activations.

Such a call writes over the old weights and over the activation, some inputs after the other, where two calls need room
for the new weights beside the old ones, which the second one still reads.

Invariant: the same products are added up, of the old weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.dims import product
from ...base.dtypes import DType, u8
from ...base.names import Names
from ...base.provenance import merge
from ...base.records import dataclass
from ...expr.ir import Expr, operand
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...kinds.map import Map
from ...kinds.product_step import ProductStep
from ...program.ir import Buffer, Call, Item, Program, View, reads, walk, writes
from ...program.taken_names import taken_names
from ..api import Context

TURNED = (1, 0)


@dataclass(frozen=True)
class _Product:
    """A product [rows, sum] x [sum, columns] -> [rows, columns], however it is written down."""

    call: Call
    left: View
    right: View
    out: View
    extras: tuple[View, ...]  # as the result lies

    @property
    def turned(self) -> _Product:
        left, right, out, *extras = (v.permuted(TURNED) for v in (self.right, self.left, self.out, *self.extras))
        return _Product(self.call, left, right, out, tuple(extras))

    @property
    def total(self) -> DType:
        return self.kind.accumulator

    @property
    def kind(self) -> Conv | Gemm:
        return self.call.of(Conv) if isinstance(self.call.kind, Conv) else self.call.of(Gemm)

    @property
    def expression(self) -> Expr:
        return self.kind.epilogue or operand(0, self.total)


def step_products(program: Program, context: Context) -> list[Item]:
    """The items with such calls, as far as there are any. Kernels are chosen."""
    products = [(number, each) for number, item in enumerate(program.body) for each in _products(item)]
    written, read = _written(program.body), _read(program.body)
    states = {dict(program.outputs)[after].buffer for after in program.states.values()} - read.keys()
    names, made, gone = taken_names(program), dict[Call, Sequence[Call]](), set[Call]()
    for place, back in products:
        for _, weights in products:
            if back.call in gone or weights.call in gone or weights.out.buffer not in states:
                continue
            early = all(written.get(view.buffer, -1) < place for view in weights.call.ins)
            calls = _joined(back, weights, names) if early and _agree(back, weights) else ()
            if calls and all(_choose(call, context, names) for call in calls):
                made[back.call] = calls
                gone |= {back.call, weights.call}
    whole = ((item,) if not isinstance(item, Call) or item not in gone else made.get(item, ()) for item in program.body)
    return [item for items in whole for item in items]


def _products(item: Item) -> Iterator[_Product]:
    """Both ways to look at a call, if it is a product of two matrices."""
    if not isinstance(item, Call) or not all(view.is_static for view in (*item.ins, *item.outs)):
        return
    found = None
    if isinstance(item.kind, Gemm) and item.kind.fixed == 2 and len(item.outs[0].shape) == 2:
        found = _Product(item, item.ins[0], item.ins[1], item.outs[0], item.ins[2:])
    elif isinstance(item.kind, Conv) and _takes_points(item):
        weights = item.ins[1].reshaped(item.ins[1].shape[:2])
        views = [_points(view) for view in (item.ins[0], item.outs[0], *item.ins[2:])]
        known = [view for view in views if view is not None]
        if weights is not None and len(known) == len(views):
            found = _Product(item, known[0], weights.permuted(TURNED), known[1], tuple(known[2:]))
    if found is not None:
        yield from (found, found.turned)


def _takes_points(call: Call) -> bool:
    kind = call.of(Conv)
    plain = kind.fixed == 2 and kind.group == 1 and set(kind.strides) == {1} and set(kind.pads) <= {0}
    return plain and set(call.ins[1].shape[2:]) == {1}


def _points(view: View) -> View | None:
    """A picture as a matrix of points and channels."""
    axes = [axis for axis in range(len(view.shape)) if axis != 1]
    if not all(isinstance(view.shape[axis], int) for axis in axes):
        return None
    last = view.permuted([*axes, 1])
    return last.reshaped((product(last.shape[:-1]), last.shape[-1]))


def _agree(back: _Product, weights: _Product) -> bool:
    """Is the one dy w, the other dy^T x?"""
    if back.call is weights.call or back.total is not weights.total or not back.total.is_float:
        return False
    same = _same(back.left, weights.left.permuted(TURNED))
    return same and back.out.shape == weights.right.shape and back.right.shape == weights.out.shape


def _same(a: View, b: View) -> bool:
    """Do they show the same elements?"""
    steps = zip(a.shape, a.strides, b.strides, strict=True)
    return (
        a.buffer is b.buffer
        and a.shape == b.shape
        and a.offset == b.offset
        and all(dim == 1 or one == other for dim, one, other in steps)
    )


def _joined(back: _Product, weights: _Product, names: Names) -> Sequence[Call]:
    """One call; what else the gradient of the activation is made of is read by a second one, so that it need not be
    there with all that the first one reads."""
    apart = any(not _same(extra, weights.right) for extra in back.extras)
    extras, expression, out = back.extras, back.expression, back.out
    if apart:
        product = Buffer(names.take(f"{out.buffer.name}_product"), back.total, out.shape)
        extras, expression, out = (), operand(0, back.total), product.whole()
    kind = ProductStep(back.total, expression, weights.expression, len(extras))
    ins = (back.left, weights.right, back.right, *extras, *weights.extras)
    step = Call(kind, _alike(ins), (out, weights.out), merge(weights.call.provenance, back.call.provenance))
    if not apart:
        return (step,)
    return step, Call(Map(back.expression), (out, *back.extras), (back.out,), back.call.provenance)


def _alike(views: Sequence[View]) -> tuple[View, ...]:
    """Of those that show the same, each as the first one."""
    return tuple(next(other for other in views if _same(other, view)) for view in views)


def _choose(call: Call, context: Context, names: Names) -> bool:
    if call.kind.check([view.type for view in call.ins], [view.type for view in call.outs]):
        return False
    found = context.registry.choose(call, context.target).candidates
    if not found:
        return False
    needs = found[0].needs
    call.kernel, call.blocks = found[0].kernel.id, needs.blocks
    if not needs.scratch:
        return True
    call.scratch = Buffer(names.take("scratch_step"), u8, (needs.scratch,), provenance=call.provenance)
    call.scratch.storage = replace(call.scratch.storage, align=needs.scratch_align)
    return True


def _written(body: Sequence[Item]) -> Mapping[Buffer, int]:
    """Where buffers are written last."""
    return {view.buffer: number for number, item in enumerate(body) for each in walk([item]) for view in writes(each)}


def _read(body: Sequence[Item]) -> Mapping[Buffer, int]:
    return {view.buffer: number for number, item in enumerate(body) for each in walk([item]) for view in reads(each)}
