"""A transposed convolution as a product and its fold: every input times all weights that meet it, and these terms added
up where they belong. Nothing is multiplied with zeros at edges, and short lines fill vectors, as all positions together
are a dimension of the product.

Invariant: the same sums of the same terms; the epilogue runs once per result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.names import Names
from ...base.tensor import Shape
from ...kernels.api import viewed
from ...kinds.conv_transpose import ConvTranspose
from ...kinds.fold import Fold
from ...kinds.gemm import Gemm
from ...kinds.map import Map
from ...program.ir import CONSTANT, Buffer, Call, View

MOST_TERMS = 1 << 19  # that wait to be added up: what caches hold
TURNED = (0, 1, 3, 2)


def folded_products(call: Call, names: Names) -> Iterator[list[Call]]:
    """Calls that do the same, with the weights as either operand of the product."""
    kind, (x, w), y = call.of(ConvTranspose), call.ins[:2], call.outs[0]
    views = (*call.ins, *call.outs)
    if w.buffer.constant is None or not all(view.is_static and 0 not in view.shape for view in views):
        return
    window, places = w.type.static_shape[2:], x.type.static_shape[2:]
    batch, depth, rows = static(x.shape[0]), static(w.shape[0]) // kind.group, math.prod(w.type.static_shape[1:])
    pixels = math.prod(places)
    inputs = x.reshaped((batch, kind.group, depth, pixels))
    if inputs is None or batch * kind.group * rows * pixels > MOST_TERMS:
        return
    weights = viewed(w, w.buffer.constant).reshape(1, kind.group, depth, rows)
    shape, stored = (batch, kind.group, rows, pixels), (batch, static(y.shape[1]), *window, *places)
    terms = _new(y, shape, kind, names)
    folded = terms.reshaped(stored)
    if folded is not None:
        yield _calls(call, (_constant(w, weights.swapaxes(2, 3), names), inputs), terms, folded, names)
    terms = _new(y, tuple(shape[axis] for axis in TURNED), kind, names)
    folded = terms.permuted(TURNED).reshaped(stored)
    if folded is not None:  # results of several groups do not lie side by side
        yield _calls(call, (inputs.permuted(TURNED), _constant(w, weights, names)), terms, folded, names)


def _calls(call: Call, ins: tuple[View, View], terms: View, folded: View, names: Names) -> list[Call]:
    """The product, its fold, and the epilogue where there is one."""
    kind, y = call.of(ConvTranspose), call.outs[0]
    a, b = (view.broadcast_to((*terms.shape[:2], *view.shape[2:])) for view in ins)
    is_first = ins[0].buffer is call.ins[0].buffer
    zeros: tuple[View, ...] = ()
    if kind.x_zero:
        zeros = (call.ins[2].broadcast_to((*terms.shape[:2], terms.shape[2 if is_first else 3])),)
    product = Gemm(kind.accumulator, a_zero=kind.x_zero and is_first, b_zero=kind.x_zero and not is_first)
    sums = y if kind.epilogue is None else _new(y, y.shape, kind, names)
    fold = Fold(tuple(map(static, kind.space)), kind.strides, kind.dilations, kind.pads)
    calls = [
        Call(product, (a, b, *zeros), (terms,), call.provenance),
        Call(fold, (folded,), (sums,), call.provenance),
    ]
    if kind.epilogue is None:
        return calls
    return [*calls, Call(Map(kind.epilogue), (sums, *call.ins[kind.fixed :]), (y,), call.provenance)]


def _new(like: View, shape: Shape, kind: ConvTranspose, names: Names) -> View:
    name = names.take(f"{like.buffer.name}_terms")
    return Buffer(name, kind.accumulator, shape, provenance=like.buffer.provenance).whole()


def _constant(like: View, array: np.ndarray, names: Names) -> View:
    value = Constant.of(np.ascontiguousarray(array))
    name = names.take(f"{like.buffer.name}_matrix")
    return Buffer(name, like.buffer.dtype, value.type.static_shape, CONSTANT, value, like.buffer.provenance).whole()
