"""Sums of products without windows."""

from __future__ import annotations

import numpy as np

from ..builder import LARGEST, Builder, Dim, Value
from .registry import makes

REAL = ("float32", "float32", "float32", "float64", "float16", "bfloat16")


def _attention(g: Builder) -> Value | None:
    """Of odd sizes: with a mask or a bias, heads that share keys, keys of the past, and rows that see what was."""
    batch, heads, each = g.integer(1, 2), g.integer(1, 3), g.pick([1, 1, 2])
    rows, new, past = g.pick([1, 2, 5, 9, 17]), g.pick([1, 2, 7, 16, 33, 131]), g.pick([0, 0, 3])
    keys = new + past
    room = max(LARGEST // (batch * heads * each * keys), 1)
    rows, depth, width = (min(size, room) for size in (rows, g.pick([1, 3, 8, 33, 70]), g.pick([1, 4, 7, 16, 20])))
    sides: list[Value | None] = []
    for last in (depth, width):
        side: Value | None = g.leaf("float32", (batch, heads, new, last), "unit")
        if past:
            side = g.node("Concat", [g.leaf("float32", (batch, heads, past, last), "unit"), side], axis=2)
        if each > 1:
            side = side and g.node("Unsqueeze", [side, g.constant([2])])
            side = side and g.node("Expand", [side, g.constant([batch, heads, each, keys, last])])
            side = side and g.node("Reshape", [side, g.constant([batch, heads * each, keys, last])])
        sides.append(side)
    q, turned = g.leaf("float32", (batch, heads * each, rows, depth), "unit"), sides[0]
    turned = turned and g.node("Transpose", [turned], perm=[0, 1, 3, 2])
    scores = turned and g.node("MatMul", [q, turned])
    if g.maybe(0.7):
        scores = scores and g.node("Mul", [scores, g.constant(depth**-0.5, "float32")])
    form = g.pick(["", "bias", "mask", "causal"])
    if form == "bias":
        bias = g.leaf("float32", g.pick([(batch, 1, 1, keys), (heads * each, rows, keys), (rows, 1)]), "unit")
        scores = scores and g.node("Add", [scores, bias])
    elif form:
        causal = g.constant(np.tri(rows, keys, past, bool))
        seen = causal if form == "causal" else g.leaf("bool", g.pick([(rows, keys), (batch, 1, 1, keys)]))
        scores = scores and g.node("Where", [seen, scores, g.constant(-1e5, "float32")])
    shares = scores and g.node("Softmax", [scores], axis=-1)
    return shares and g.node("MatMul", [shares, sides[1]])


@makes("MatMul")
def matmul(g: Builder, op: str) -> Value | None:
    if g.maybe(0.1):
        return _attention(g)
    x = g.any((*REAL, "int32"), (1, 4))
    if not x.is_fixed(-1) or x.shape[-1] == 0:
        return None
    if g.maybe(0.3):  # with itself turned
        if x.rank < 2:
            return g.node(op, [x, x], exact=True)
        perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        turned = g.node("Transpose", [x], perm=perm, exact=True)
        return turned and g.node(op, [x, turned], exact=True)
    columns = () if g.maybe(0.1) else (g.pick([1, 2, 3, 4, 7, 8, 16, 17, 33]),)
    lead: tuple[Dim, ...] = ()
    if g.maybe(0.3) and columns:
        lead = tuple(1 if g.maybe(0.3) else (g.dim_of(x, axis) or 1) for axis in range(x.rank - 2))
    y = g.leaf(x.dtype, (*lead, x.shape[-1], *columns))
    return g.node(op, [x, y], exact=True)


@makes("Gemm")
def gemm(g: Builder, op: str) -> Value | None:
    x = g.any(REAL, (2, 2))
    turned = g.integer(0, 1)
    inner = 0 if turned else 1
    if not x.is_fixed(inner) or x.shape[inner] == 0:
        return None
    columns, back = g.pick([1, 2, 3, 5, 8, 16, 17, 32]), g.integer(0, 1)
    y = g.leaf(x.dtype, (columns, x.shape[inner]) if back else (x.shape[inner], columns))
    bias = [g.leaf(x.dtype, g.pick([(columns,), (1, columns), (1,), ()]))] if g.maybe(0.7) else []
    factors = {"alpha": g.pick([None, 0.5, 2.0]), "beta": g.pick([None, 0.5, 0.0])}
    return g.node(op, [x, y, *bias], transA=turned, transB=back, exact=True, **factors)


@makes("Einsum")
def einsum(g: Builder, op: str) -> Value | None:
    a, b, c, d = (g.integer(1, 5) for _ in range(4))
    text, *shapes = g.pick(
        [
            ("ij,jk->ik", (a, b), (b, c)),
            ("bij,bjk->bik", (a, b, c), (a, c, d)),
            ("bhid,bhjd->bhij", (1, a, b, c), (1, a, d, c)),
            ("ij->ji", (a, b)),
            ("ij->j", (a, b)),
            ("ii->i", (a, a)),
            ("i,j->ij", (a,), (b,)),
            ("...ij,jk->...ik", (a, b, c), (c, d)),
            ("ab,ab->", (a, b), (a, b)),
            ("abc,cd,d->ab", (a, b, c), (c, d), (d,)),
        ]
    )
    return g.node(op, [g.leaf("float32", shape) for shape in shapes], equation=text, exact=True)


@makes("MatMulInteger")
def matmul_integer(g: Builder, op: str) -> Value | None:
    rows, inner, columns = g.integer(1, 9), g.pick([1, 3, 4, 7, 16, 33]), g.pick([1, 2, 5, 8, 17])
    x = g.leaf(g.pick(["uint8", "int8"]), (*g.dims(g.integer(0, 1), 3, (1, 2, 3)), rows, inner))
    y = g.leaf(g.pick(["uint8", "int8"]), (inner, columns))
    zeros = [g.drawn(v.dtype, ()) for v in (x, y)][: g.integer(0, 2)]
    return g.node(op, [x, y, *zeros])


@makes("Det")
def determinant(g: Builder, op: str) -> Value | None:
    n = g.integer(1, 4)
    return g.node(op, [g.leaf("float32", (*g.dims(g.integer(0, 2), 10, (1, 2, 3)), n, n))])


@makes("ConvInteger")
def conv_integer(g: Builder, op: str) -> Value | None:
    channels, out, group = g.integer(1, 4), g.integer(1, 5), 1
    x = g.leaf(g.pick(["uint8", "uint8", "int8"]), (g.integer(1, 2), channels, g.integer(3, 6), g.integer(3, 6)))
    w = g.leaf(x.dtype if x.dtype == "uint8" else "int8", (out, channels, g.integer(1, 3), g.integer(1, 3)))
    zeros = [g.drawn(v.dtype, ()) for v in (x, w)][: g.integer(0, 2)]
    return g.node(op, [x, w, *zeros], group=group, strides=[g.integer(1, 2)] * 2, pads=[g.integer(0, 1)] * 4)
