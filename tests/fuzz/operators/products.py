"""Sums of products without windows."""

from __future__ import annotations

from ..builder import Builder, Dim, Value
from .registry import makes

REAL = ("float32", "float32", "float32", "float64", "float16", "bfloat16")


@makes("MatMul")
def matmul(g: Builder, op: str) -> Value | None:
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
