"""Pieces of graphs as exporters leave them: shapes computed from shapes, layouts turned back and forth, wrappers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .net import Net, f, ints
from .spelling import add_spelling

Form = Callable[[Net, str], str]


def conv(net: Net, x: str, out: int = 8, channels: int = 4) -> str:
    return net.op("Conv", x, net.floats(out, channels, 3, 3), net.floats(out), pads=[1] * 4)


# -- flattening before a product


def flat(net: Net, x: str) -> str:
    return net.op("Flatten", x, axis=1)


def flat_by_reshape(net: Net, x: str) -> str:
    return net.op("Reshape", x, ints(1, -1))


def flat_by_zero(net: Net, x: str) -> str:
    return net.op("Reshape", x, ints(0, -1))


def flat_by_shape(net: Net, x: str) -> str:
    batch = net.op("Gather", net.op("Shape", x), np.array(0))
    return net.op("Reshape", x, net.op("Concat", net.op("Unsqueeze", batch, ints(0)), ints(-1), axis=0))


def flat_by_slice(net: Net, x: str) -> str:
    batch = net.op("Slice", net.op("Shape", x), ints(0), ints(1))
    return net.op("Reshape", x, net.op("Concat", batch, ints(-1), axis=0))


def flat_by_product(net: Net, x: str) -> str:
    shape = net.op("Shape", x)
    rest = net.op("ReduceProd", net.op("Slice", shape, ints(1), ints(9)), axes=[0], keepdims=1)
    return net.op("Reshape", x, net.op("Concat", net.op("Slice", shape, ints(0), ints(1)), rest, axis=0))


def flat_by_squeeze(net: Net, x: str) -> str:
    return net.op("Reshape", net.op("Unsqueeze", net.op("Squeeze", x, ints(0)), ints(0)), ints(1, 512))


def flat_by_casts(net: Net, x: str) -> str:
    shape = net.op("Cast", net.op("Shape", x), to=6)
    batch = net.op("Squeeze", net.op("Slice", shape, ints(0), ints(1), ints(0)), ints(0))
    both = net.op("Concat", net.op("Unsqueeze", batch, ints(0)), np.array([-1], np.int32), axis=0)
    return net.op("Reshape", x, net.op("Cast", both, to=7))


FREE_FLATS = [flat, flat_by_zero, flat_by_shape, flat_by_slice, flat_by_product, flat_by_casts]
FLATS = [*FREE_FLATS, flat_by_reshape, flat_by_squeeze]


def classified(net: Net, form: Form, free: bool = False) -> str:
    data = net.floats(1, 4, 8, 8)
    x = net.input(data, "x", ("batch", 4, 8, 8) if free else data.shape)
    if free:
        net.dims = {"batch": (1, 3)}
    return net.op("MatMul", form(net, net.op("Relu", conv(net, x))), net.floats(512, 5))


# -- upsampling to the size of something else


def _nearest(net: Net, x: str, scales: str | np.ndarray, sizes: str | np.ndarray = "") -> str:
    mode = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.op("Resize", x, "", scales, *([sizes] if not isinstance(sizes, str) or sizes else []), **mode)


def up(net: Net, x: str, like: str) -> str:
    return _nearest(net, x, np.array([1, 1, 2, 2], np.float32))


def up_by_shape(net: Net, x: str, like: str) -> str:
    ends = net.op("Slice", net.op("Shape", like), ints(2), ints(4))
    whole = net.op("Concat", net.op("Slice", net.op("Shape", x), ints(0), ints(2)), ends, axis=0)
    return _nearest(net, x, "", whole)


def up_by_gathers(net: Net, x: str, like: str) -> str:
    sizes = [net.op("Unsqueeze", net.op("Gather", net.op("Shape", like), np.array(n)), ints(0)) for n in (2, 3)]
    whole = net.op("Concat", net.op("Slice", net.op("Shape", x), ints(0), ints(2)), *sizes, axis=0)
    return _nearest(net, x, "", whole)


def up_by_floor(net: Net, x: str, like: str) -> str:
    """As torch's interpolate with a factor: floor(size * 2)."""
    sizes = []
    for axis in (2, 3):
        size = net.op("Cast", net.op("Gather", net.op("Shape", x), np.array(axis)), to=1)
        sizes.append(net.op("Unsqueeze", net.op("Cast", net.op("Floor", net.op("Mul", size, f(2))), to=7), ints(0)))
    whole = net.op("Concat", net.op("Slice", net.op("Shape", x), ints(0), ints(2)), *sizes, axis=0)
    return _nearest(net, x, "", whole)


def up_by_quotient(net: Net, x: str, like: str) -> str:
    """Scales computed from sizes."""
    target = net.op("Cast", net.op("Slice", net.op("Shape", like), ints(2), ints(4)), to=1)
    own = net.op("Cast", net.op("Slice", net.op("Shape", x), ints(2), ints(4)), to=1)
    return _nearest(net, x, net.op("Concat", np.ones(2, np.float32), net.op("Div", target, own), axis=0))


UPS = [up, up_by_shape, up_by_gathers, up_by_floor, up_by_quotient]


def pyramid(net: Net, form: Callable[[Net, str, str], str], free: bool = False) -> str:
    data = net.floats(1, 4, 8, 8)
    x = net.input(data, "x", ("batch", 4, 8, 8) if free else data.shape)
    if free:
        net.dims = {"batch": (1, 3)}
    fine = net.op("Relu", conv(net, x))
    coarse = net.op("MaxPool", conv(net, fine, 8, 8), kernel_shape=[2, 2], strides=[2, 2])
    return conv(net, net.op("Concat", form(net, coarse, fine), fine, axis=1), 4, 16)


# -- squeeze and excitation


def gate(net: Net, x: str) -> str:
    mean = net.op("GlobalAveragePool", x)
    small = net.op("Relu", net.op("Conv", mean, net.floats(2, 8, 1, 1), net.floats(2)))
    return net.op("Mul", x, net.op("Sigmoid", net.op("Conv", small, net.floats(8, 2, 1, 1), net.floats(8))))


def gate_by_products(net: Net, x: str) -> str:
    """As a torch model with Linear layers: flattened, multiplied, given its axes back."""
    mean = net.op("Flatten", net.op("GlobalAveragePool", x))
    w, b = net.floats(2, 8, 1, 1).reshape(2, 8), net.floats(2)
    small = net.op("Relu", net.op("Gemm", mean, w, b, transB=1))
    w, b = net.floats(8, 2, 1, 1).reshape(8, 2), net.floats(8)
    gates = net.op("Sigmoid", net.op("Gemm", small, w, b, transB=1))
    return net.op("Mul", x, net.op("Reshape", gates, ints(1, 8, 1, 1)))


def gate_by_expand(net: Net, x: str) -> str:
    mean = net.op("ReduceMean", x, axes=[2, 3], keepdims=1)
    small = net.op("Relu", net.op("Conv", mean, net.floats(2, 8, 1, 1), net.floats(2)))
    gates = net.op("Sigmoid", net.op("Conv", small, net.floats(8, 2, 1, 1), net.floats(8)))
    return net.op("Mul", x, net.op("Expand", gates, net.op("Shape", x)))


# -- channels last


def turned(net: Net, x: str) -> str:
    return net.op("Add", x, np.arange(8, dtype=np.float32).reshape(8, 1, 1))


def turned_there_and_back(net: Net, x: str) -> str:
    last = net.op("Transpose", x, perm=[0, 2, 3, 1])
    return net.op("Transpose", net.op("Add", last, np.arange(8, dtype=np.float32)), perm=[0, 3, 1, 2])


def turned_by_reshape(net: Net, x: str) -> str:
    cut = net.op("Reshape", x, ints(1, 8, 64))
    return net.op("Reshape", net.op("Add", cut, np.arange(8, dtype=np.float32).reshape(8, 1)), ints(1, 8, 8, 8))


def turned_for_identity(net: Net, x: str) -> str:
    made = net.op("Identity", net.op("Dropout", net.op("Identity", x)))
    return net.op("Add", made, np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1))


# -- convolutions of one dimension


def line(net: Net) -> str:
    x = net.input(net.floats(1, 4, 16))
    return net.op("Relu", net.op("Conv", x, net.floats(8, 4, 3), net.floats(8), pads=[1, 1]))


def line_as_picture(net: Net) -> str:
    x = net.op("Unsqueeze", net.input(net.floats(1, 4, 16)), ints(2))
    w, b = net.floats(8, 4, 3).reshape(8, 4, 1, 3), net.floats(8)
    return net.op("Relu", net.op("Squeeze", net.op("Conv", x, w, b, pads=[0, 1, 0, 1]), ints(2)))


# -- products


def product(net: Net, x: str) -> str:
    return net.op("Add", net.op("MatMul", x, net.floats(16, 8)), net.floats(8))


def product_by_gemm(net: Net, x: str) -> str:
    flat = net.op("Reshape", x, ints(-1, 16))
    return net.op("Reshape", net.op("Gemm", flat, net.floats(16, 8), net.floats(8)), ints(2, 6, 8))


def product_by_turned_gemm(net: Net, x: str) -> str:
    w = np.ascontiguousarray(net.floats(16, 8).T)
    flat = net.op("Reshape", x, ints(-1, 16))
    return net.op("Reshape", net.op("Gemm", flat, w, net.floats(8), transB=1), ints(2, 6, 8))


def product_by_transpose(net: Net, x: str) -> str:
    w = np.ascontiguousarray(net.floats(16, 8).T)
    return net.op("Add", net.op("MatMul", x, net.op("Transpose", w, perm=[1, 0])), net.floats(8))


def product_by_einsum(net: Net, x: str) -> str:
    return net.op("Add", net.op("Einsum", x, net.floats(16, 8), equation="btc,cd->btd"), net.floats(8))


def product_by_conv(net: Net, x: str) -> str:
    """GPT-2's Conv1D the other way round: a convolution of width 1 over turned tokens."""
    w = np.ascontiguousarray(net.floats(16, 8).T)[:, :, None]
    made = net.op("Conv", net.op("Transpose", x, perm=[0, 2, 1]), w, net.floats(8))
    return net.op("Transpose", made, perm=[0, 2, 1])


PRODUCTS = [product, product_by_gemm, product_by_turned_gemm, product_by_transpose, product_by_einsum, product_by_conv]


def _between(net: Net, form: Form) -> str:
    return conv(net, form(net, conv(net, net.input(net.floats(1, 4, 8, 8)))), 4, 8)


def _tokens(net: Net, form: Form) -> str:
    return net.op("Tanh", form(net, net.input(net.floats(2, 6, 16))))


def _alone(net: Net, form: Callable[[Net], str]) -> str:
    return form(net)


def _add() -> None:
    around = {
        "flat": (classified, FLATS),
        "flat_free": (lambda net, form: classified(net, form, True), FREE_FLATS),
        "up": (pyramid, UPS),
        "up_free": (lambda net, form: pyramid(net, form, True), UPS),
        "gate": (_between, [gate, gate_by_products, gate_by_expand]),
        "turned": (_between, [turned, turned_there_and_back, turned_by_reshape, turned_for_identity]),
        "line": (_alone, [line, line_as_picture]),
        "product": (_tokens, PRODUCTS),
    }  # fmt: skip
    for family, (outside, forms) in around.items():
        for form in forms:
            add_spelling(f"graph/{family}", form.__name__.strip("_"), outside, {"form": form})


_add()
