"""Normalizations."""

from __future__ import annotations

from ..builder import Builder, Value
from .registry import makes
from .windows import picture

REAL = ("float32", "float32", "float32", "float64", "float16")


@makes("LayerNormalization", opset=17)
def layer(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float32", "float16"), (1, 4))
    axis = g.integer(0, x.rank - 1)
    if not all(x.is_fixed(a) for a in range(axis, x.rank)) or not x.size:
        return None
    gain = g.drawn(x.dtype, x.shape[axis:], "positive")
    bias = [g.drawn(x.dtype, x.shape[axis:])] if g.maybe(0.7) else []
    return g.node(op, [x, gain, *bias], axis=axis - x.rank * g.integer(0, 1), epsilon=g.pick([None, 0.01]))


@makes("RMSNormalization", opset=23)
def root_mean_square(g: Builder, op: str) -> Value | None:
    x = g.any(("float32",), (1, 4))
    axis = g.integer(0, x.rank - 1)
    if not all(x.is_fixed(a) for a in range(axis, x.rank)) or not x.size:
        return None
    return g.node(op, [x, g.drawn(x.dtype, x.shape[axis:], "positive")], axis=axis)


@makes("SimplifiedLayerNormalization")
def simplified(g: Builder, op: str) -> Value | None:
    x = g.any(("float32",), (1, 4))
    if not x.is_fixed(-1) or not x.size:
        return None
    return g.node(op, [x, g.drawn(x.dtype, x.shape[-1:], "positive")], axis=-1, epsilon=1e-5)


@makes("BatchNormalization", opset=15)
def batch(g: Builder, op: str) -> Value | None:
    x = picture(g, dtypes=("float32", "float32", "float64"))
    c = (x.shape[1],)
    ins = [g.drawn(x.dtype, c), g.drawn(x.dtype, c), g.drawn(x.dtype, c), g.drawn(x.dtype, c, "positive")]
    return g.node(op, [x, *ins])


@makes("InstanceNormalization")
def instance(g: Builder, op: str) -> Value | None:
    x = picture(g, dtypes=("float32",))
    return g.node(op, [x, g.drawn(x.dtype, x.shape[1:2]), g.drawn(x.dtype, x.shape[1:2])], epsilon=g.pick([None, 0.1]))


@makes("GroupNormalization", opset=21)
def group(g: Builder, op: str) -> Value | None:
    x = picture(g, dtypes=("float32",))
    c = x.shape[1]
    groups = g.pick([n for n in range(1, c + 1) if c % n == 0])
    return g.node(op, [x, g.drawn(x.dtype, (c,)), g.drawn(x.dtype, (c,))], num_groups=groups, epsilon=0.01)


@makes("MeanVarianceNormalization")
def mean_variance(g: Builder, op: str) -> Value | None:
    x = picture(g, g.pick([1, 2, 2, 2]), ("float32",))
    axes = g.pick([None, [0, 2, 3], [2, 3], [1], [0, 1, 2, 3]] if x.rank == 4 else [None, [1], [-1]])
    return g.node(op, [x], axes=axes) if min(x.shape) > 1 else None


@makes("LpNormalization")
def lp(g: Builder, op: str) -> Value | None:
    x = g.input(g.pick(("float32", "float64")), g.dims(g.integer(1, 4)), "positive")
    return g.node(op, [x], axis=g.integer(-x.rank, x.rank - 1), p=g.pick([1, 2])) if x.size else None
