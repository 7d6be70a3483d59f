"""Numbers kinds that work along some axes, and in the same way at all positions of the other axes."""

from __future__ import annotations

import numpy as np

from ....expr.ir import Expr
from ....kinds.api import AlongAxes
from ....kinds.dft import Dft
from ....kinds.gemm import Gemm
from ....kinds.normalize import Normalize
from ....kinds.reduce import Reduce
from .kind_rules import Operands, expression, name_of, numbered
from .numbers import Numbers, joined, places, summed


def _along(kind: AlongAxes, of: Operands, element: Expr | None) -> tuple[Numbers, Numbers]:
    """Each element, and all of those along the axes."""
    operands = of.numbers[: kind.operands]
    each = operands[0] if element is None else expression(element, operands)
    each = np.broadcast_to(each, (each.shape[0], *operands[0].shape[1:]))
    axes = [axis + 1 for axis in kind.axes]
    return each, summed(each, axes, f"along {[each.shape[axis] for axis in axes]}", keep=True)


@numbered(Reduce)
def reduce(kind: Reduce, of: Operands) -> Numbers:
    return joined(name_of(kind), _along(kind, of, kind.element)[1])


@numbered(Normalize)
def normalize(kind: Normalize, of: Operands) -> Numbers:
    return joined(name_of(kind), *_along(kind, of, kind.element))


@numbered(Gemm)
def gemm(kind: Gemm, of: Operands) -> Numbers:
    a, b = of.numbers[:2]
    rows, columns = summed(a, [a.ndim - 1], "inner"), summed(np.swapaxes(b, -1, -2), [b.ndim - 1], "inner")
    zeros = list(of.numbers[2 : kind.fixed])
    if kind.a_zero:
        rows = joined("zero point", rows, zeros.pop(0))
    if kind.b_zero:
        columns = joined("zero point", columns, zeros.pop(0))
    return joined(name_of(kind), np.expand_dims(rows, -1), np.expand_dims(columns, -2))


@numbered(Dft)
def dft(kind: Dft, of: Operands) -> Numbers:
    x, axes = of.numbers[0], (of.numbers[0].ndim - 2, of.numbers[0].ndim - 1)
    tables = [summed(each, range(1, each.ndim), f"table {each.shape[1:]}") for each in of.numbers[1:]]
    across = [table.reshape(-1, *(1 for _ in x.shape[1:])) for table in tables]
    signal = summed(x, axes, f"signal {x.shape[-2:]}", keep=True)
    shape = (1, *of.results[0])
    return joined(name_of(kind), signal, places(shape, (len(shape) - 2, len(shape) - 1), "bin"), *across)
