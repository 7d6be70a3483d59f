"""Normalizations, activations and rearrangements as exporters take them apart, next to the operator they mean."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from .net import Net, f, ints
from .spelling import spelled

Form = Callable[[Net, str], str]


def between(net: Net, form: Form) -> str:
    """The form between two convolutions, so that it has something to be fused into."""
    x = net.input(net.floats(1, 4, 12, 12))
    first = net.op("Conv", x, net.floats(8, 4, 3, 3), net.floats(8), pads=[1] * 4)
    return net.op("Conv", form(net, first), net.floats(4, 8, 3, 3), net.floats(4), pads=[1] * 4)


def behind(net: Net, form: Form) -> str:
    """The form behind a product."""
    x = net.input(net.floats(2, 6, 16))
    return net.op("MatMul", form(net, net.op("MatMul", x, net.floats(16, 24))), net.floats(24, 16))


# -- GELU


def gelu(net: Net, x: str) -> str:
    return net.op("Gelu", x)


def gelu_times_half(net: Net, x: str) -> str:
    inner = net.op("Add", net.op("Erf", net.op("Div", x, f(sqrt(2)))), f(1))
    return net.op("Mul", net.op("Mul", x, inner), f(0.5))


def gelu_half_first(net: Net, x: str) -> str:
    inner = net.op("Add", net.op("Erf", net.op("Mul", x, f(sqrt(0.5)))), f(1))
    return net.op("Mul", net.op("Mul", f(0.5), x), inner)


def gelu_half_of_the_sum(net: Net, x: str) -> str:
    inner = net.op("Add", f(1), net.op("Erf", net.op("Div", x, f(sqrt(2)))))
    return net.op("Mul", x, net.op("Mul", f(0.5), inner))


def gelu_with_halves(net: Net, x: str) -> str:
    inner = net.op("Add", net.op("Mul", net.op("Erf", net.op("Div", x, f(sqrt(2)))), f(0.5)), f(0.5))
    return net.op("Mul", inner, x)


def gelu_by_a_root(net: Net, x: str) -> str:
    root = net.op("Sqrt", f(2))
    inner = net.op("Add", net.op("Erf", net.op("Div", x, root)), f(1))
    return net.op("Div", net.op("Mul", x, inner), f(2))


def tanh_gelu(net: Net, x: str) -> str:
    return net.op("Gelu", x, approximate="tanh")


def tanh_gelu_by_a_power(net: Net, x: str) -> str:
    cubed = net.op("Mul", net.op("Pow", x, f(3)), f(0.044715))
    inner = net.op("Tanh", net.op("Mul", net.op("Add", x, cubed), f(sqrt(2 / pi))))
    return net.op("Mul", net.op("Mul", x, f(0.5)), net.op("Add", inner, f(1)))


def tanh_gelu_by_products(net: Net, x: str) -> str:
    square = net.op("Mul", x, x)
    inner = net.op("Mul", net.op("Mul", f(sqrt(2 / pi)), x), net.op("Add", f(1), net.op("Mul", f(0.044715), square)))
    return net.op("Mul", net.op("Mul", f(0.5), x), net.op("Add", f(1), net.op("Tanh", inner)))


def tanh_gelu_fused(net: Net, x: str) -> str:
    return net.ms("FastGelu", x)


# -- other activations


def silu(net: Net, x: str) -> str:
    return net.op("Mul", x, net.op("Sigmoid", x))


def silu_turned(net: Net, x: str) -> str:
    return net.op("Mul", net.op("Sigmoid", x), x)


def silu_by_exp(net: Net, x: str) -> str:
    return net.op("Div", x, net.op("Add", f(1), net.op("Exp", net.op("Neg", x))))


def silu_by_its_name(net: Net, x: str) -> str:
    return net.op("Swish", x)


def silu_quick(net: Net, x: str) -> str:
    return net.ms("QuickGelu", x, alpha=1.0)


def hard_swish(net: Net, x: str) -> str:
    return net.op("HardSwish", x)


def hard_swish_by_clip(net: Net, x: str) -> str:
    inner = net.op("Clip", net.op("Add", x, f(3)), f(0), f(6))
    return net.op("Div", net.op("Mul", x, inner), f(6))


def hard_swish_by_sixths(net: Net, x: str) -> str:
    inner = net.op("Clip", net.op("Add", x, f(3)), f(0), f(6))
    return net.op("Mul", x, net.op("Mul", inner, f(1 / 6)))


def hard_swish_by_divided_clip(net: Net, x: str) -> str:
    inner = net.op("Clip", net.op("Add", x, f(3)), f(0), f(6))
    return net.op("Mul", x, net.op("Div", inner, f(6)))


def hard_swish_by_hard_sigmoid(net: Net, x: str) -> str:
    return net.op("Mul", x, net.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def hard_swish_by_min_and_relu(net: Net, x: str) -> str:
    inner = net.op("Min", net.op("Relu", net.op("Add", x, f(3))), f(6))
    return net.op("Mul", net.op("Mul", x, inner), f(1 / 6))


def mish(net: Net, x: str) -> str:
    return net.op("Mish", x)


def mish_by_softplus(net: Net, x: str) -> str:
    return net.op("Mul", x, net.op("Tanh", net.op("Softplus", x)))


def mish_by_log(net: Net, x: str) -> str:
    return net.op("Mul", x, net.op("Tanh", net.op("Log", net.op("Add", net.op("Exp", x), f(1)))))


def relu6(net: Net, x: str) -> str:
    return net.op("Clip", x, f(0), f(6))


def relu6_by_min(net: Net, x: str) -> str:
    return net.op("Min", net.op("Relu", x), f(6))


def relu6_by_max_and_min(net: Net, x: str) -> str:
    return net.op("Max", net.op("Min", x, f(6)), f(0))


def relu6_by_two_clips(net: Net, x: str) -> str:
    return net.op("Clip", net.op("Relu", x), "", f(6))


def prelu(net: Net, x: str) -> str:
    return net.op("PRelu", x, np.arange(1, 9, dtype=np.float32).reshape(8, 1, 1) / 10)


def prelu_by_parts(net: Net, x: str) -> str:
    """As Keras and MXNet write it: relu(x) - slope * relu(-x)."""
    slope = np.arange(1, 9, dtype=np.float32).reshape(8, 1, 1) / 10
    low = net.op("Mul", net.op("Relu", net.op("Neg", x)), -slope)
    return net.op("Add", net.op("Relu", x), low)


def prelu_by_where(net: Net, x: str) -> str:
    slope = np.arange(1, 9, dtype=np.float32).reshape(8, 1, 1) / 10
    return net.op("Where", net.op("Greater", x, f(0)), x, net.op("Mul", x, slope))


def leaky(net: Net, x: str) -> str:
    return net.op("LeakyRelu", x, alpha=0.1)


def leaky_by_max(net: Net, x: str) -> str:
    return net.op("Max", x, net.op("Mul", x, f(0.1)))


def leaky_by_prelu(net: Net, x: str) -> str:
    return net.op("PRelu", x, np.full((1,), 0.1, np.float32))


# -- normalizations over the last axis


def layer_norm(net: Net, x: str) -> str:
    scale, shift = net.floats(24, low=0.5), net.floats(24)
    return net.op("LayerNormalization", x, scale, shift, epsilon=1e-5)


def layer_norm_of_torch(net: Net, x: str) -> str:
    scale, shift = net.floats(24, low=0.5), net.floats(24)
    off = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1]))
    variance = net.op("ReduceMean", net.op("Pow", off, f(2)), axes=[-1])
    made = net.op("Div", off, net.op("Sqrt", net.op("Add", variance, f(1e-5))))
    return net.op("Add", net.op("Mul", made, scale), shift)


def layer_norm_of_keras(net: Net, x: str) -> str:
    """As tf2onnx writes it: scale / root is multiplied with x, and with the mean."""
    scale, shift = net.floats(24, low=0.5), net.floats(24)
    mean = net.op("ReduceMean", x, axes=[2])
    off = net.op("Sub", x, mean)
    variance = net.op("ReduceMean", net.op("Mul", off, off), axes=[2])
    factor = net.op("Mul", net.op("Reciprocal", net.op("Sqrt", net.op("Add", variance, f(1e-5)))), scale)
    return net.op("Add", net.op("Mul", x, factor), net.op("Sub", shift, net.op("Mul", mean, factor)))


def layer_norm_by_products(net: Net, x: str) -> str:
    scale, shift = net.floats(24, low=0.5), net.floats(24)
    off = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1]))
    variance = net.op("ReduceMean", net.op("Mul", off, off), axes=[-1])
    root = net.op("Pow", net.op("Add", variance, f(1e-5)), f(-0.5))
    return net.op("Add", net.op("Mul", net.op("Mul", off, root), scale), shift)


def layer_norm_twice_off(net: Net, x: str) -> str:
    """As old exporters do where two casts were in between: the difference is taken twice."""
    scale, shift = net.floats(24, low=0.5), net.floats(24)
    mean = net.op("ReduceMean", x, axes=[-1])
    off, again = net.op("Sub", x, mean), net.op("Sub", x, mean)
    variance = net.op("ReduceMean", net.op("Pow", again, f(2)), axes=[-1])
    made = net.op("Div", off, net.op("Sqrt", net.op("Add", variance, f(1e-5))))
    return net.op("Add", net.op("Mul", made, scale), shift)


def rms_norm(net: Net, x: str) -> str:
    return net.op("SimplifiedLayerNormalization", x, net.floats(24, low=0.5), epsilon=1e-5, axis=-1)


def rms_norm_of_llama(net: Net, x: str) -> str:
    scale = net.floats(24, low=0.5)
    variance = net.op("ReduceMean", net.op("Pow", x, f(2)), axes=[-1])
    root = net.op("Sqrt", net.op("Add", variance, f(1e-5)))
    return net.op("Mul", scale, net.op("Mul", x, net.op("Div", f(1), root)))


def rms_norm_by_a_root(net: Net, x: str) -> str:
    scale = net.floats(24, low=0.5)
    variance = net.op("ReduceMean", net.op("Mul", x, x), axes=[-1])
    root = net.op("Sqrt", net.op("Add", variance, f(1e-5)))
    return net.op("Mul", net.op("Div", x, root), scale)


def softmax(net: Net, x: str) -> str:
    return net.op("Softmax", x, axis=-1)


def softmax_by_exp(net: Net, x: str) -> str:
    high = net.op("ReduceMax", x, axes=[-1])
    powers = net.op("Exp", net.op("Sub", x, high))
    return net.op("Div", powers, net.op("ReduceSum", powers, ints(-1)))


def softmax_turned(net: Net, x: str) -> str:
    """As opset 12 exporters do for axes that are not the last one."""
    turned = net.op("Transpose", x, perm=[0, 2, 1])
    return net.op("Transpose", net.op("Softmax", turned, axis=1), perm=[0, 2, 1])


# -- normalizations of pictures


def batch_norm(net: Net, x: str) -> str:
    return net.op("BatchNormalization", x, *(net.floats(8, low=0.5) for _ in range(4)), epsilon=1e-5)


def batch_norm_by_products(net: Net, x: str) -> str:
    scale, shift, mean, variance = (net.floats(8, low=0.5).reshape(8, 1, 1) for _ in range(4))
    factor = (scale / np.sqrt(variance + np.float32(1e-5))).astype(np.float32)
    return net.op("Add", net.op("Mul", x, factor), (shift - mean * factor).astype(np.float32))


def batch_norm_by_steps(net: Net, x: str) -> str:
    scale, shift, mean, variance = (net.floats(8, low=0.5).reshape(1, 8, 1, 1) for _ in range(4))
    root = np.sqrt(variance + np.float32(1e-5)).astype(np.float32)
    return net.op("Add", net.op("Mul", net.op("Div", net.op("Sub", x, mean), root), scale), shift)


def instance_norm(net: Net, x: str) -> str:
    return net.op("InstanceNormalization", x, net.floats(8, low=0.5), net.floats(8), epsilon=1e-5)


def instance_norm_by_steps(net: Net, x: str) -> str:
    scale, shift = net.floats(8, low=0.5).reshape(8, 1, 1), net.floats(8).reshape(8, 1, 1)
    off = net.op("Sub", x, net.op("ReduceMean", x, axes=[2, 3]))
    variance = net.op("ReduceMean", net.op("Mul", off, off), axes=[2, 3])
    made = net.op("Div", off, net.op("Sqrt", net.op("Add", variance, f(1e-5))))
    return net.op("Add", net.op("Mul", made, scale), shift)


def group_norm(net: Net, x: str) -> str:
    return net.op("GroupNormalization", x, net.floats(8, low=0.5), net.floats(8), num_groups=4, epsilon=1e-5)


def group_norm_of_torch(net: Net, x: str) -> str:
    """As its exporter writes it: an instance normalization of groups."""
    scale, shift = net.floats(8, low=0.5), net.floats(8)
    groups = net.op("Reshape", x, ints(0, 4, -1))
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    made = net.op("InstanceNormalization", groups, ones, zeros, epsilon=1e-5)
    back = net.op("Reshape", made, net.op("Shape", x))
    return net.op("Add", net.op("Mul", back, scale.reshape(8, 1, 1)), shift.reshape(8, 1, 1))


# -- rearrangements


def shuffle(net: Net, x: str) -> str:
    return net.op("DepthToSpace", net.op("Conv", x, net.floats(16, 8, 1, 1)), blocksize=2, mode="CRD")


def shuffle_by_transpose(net: Net, x: str) -> str:
    cut = net.op("Reshape", net.op("Conv", x, net.floats(16, 8, 1, 1)), ints(1, 4, 2, 2, 12, 12))
    return net.op("Reshape", net.op("Transpose", cut, perm=[0, 1, 4, 2, 5, 3]), ints(1, 4, 24, 24))


def focus(net: Net, x: str) -> str:
    return net.op("SpaceToDepth", x, blocksize=2)


def focus_by_slices(net: Net, x: str) -> str:
    """As YOLOv5 takes every other row and column; the channels in the order of SpaceToDepth."""
    parts = []
    for row in (0, 1):
        rows = net.op("Slice", x, ints(row), ints(2**62), ints(2), ints(2))
        parts += [net.op("Slice", rows, ints(column), ints(2**62), ints(3), ints(2)) for column in (0, 1)]
    return net.op("Concat", *parts, axis=1)


def focus_by_reshape(net: Net, x: str) -> str:
    cut = net.op("Reshape", x, ints(1, 8, 6, 2, 6, 2))
    return net.op("Reshape", net.op("Transpose", cut, perm=[0, 3, 5, 1, 2, 4]), ints(1, 32, 6, 6))


def channel_shuffle(net: Net, x: str) -> str:
    cut = net.op("Reshape", x, ints(1, 2, 4, 12, 12))
    return net.op("Reshape", net.op("Transpose", cut, perm=[0, 2, 1, 3, 4]), ints(1, 8, 12, 12))


def channel_shuffle_of_flat_pictures(net: Net, x: str) -> str:
    cut = net.op("Reshape", x, ints(1, 2, 4, 144))
    return net.op("Reshape", net.op("Transpose", cut, perm=[0, 2, 1, 3]), ints(1, 8, 12, 12))


def double(net: Net, x: str) -> str:
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.op("Resize", x, "", np.array([1, 1, 2, 2], np.float32), **nearest)


def double_by_expand(net: Net, x: str) -> str:
    wide = net.op("Expand", net.op("Reshape", x, ints(1, 8, 12, 1, 12, 1)), ints(1, 8, 12, 2, 12, 2))
    return net.op("Reshape", wide, ints(1, 8, 24, 24))


def double_by_tile(net: Net, x: str) -> str:
    wide = net.op("Tile", net.op("Reshape", x, ints(1, 8, 12, 1, 12, 1)), ints(1, 1, 1, 2, 1, 2))
    return net.op("Reshape", wide, ints(1, 8, 24, 24))


def double_of_sizes(net: Net, x: str) -> str:
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    ends = net.op("Slice", net.op("Shape", x), ints(0), ints(2))
    return net.op("Resize", x, "", "", net.op("Concat", ends, ints(24, 24), axis=0), **nearest)


def mean_of_pictures(net: Net, x: str) -> str:
    return net.op("GlobalAveragePool", x)


def mean_by_reduce(net: Net, x: str) -> str:
    return net.op("ReduceMean", x, axes=[2, 3])


def mean_by_pool(net: Net, x: str) -> str:
    return net.op("AveragePool", x, kernel_shape=[12, 12])


def mean_by_two(net: Net, x: str) -> str:
    return net.op("ReduceMean", net.op("ReduceMean", x, axes=[2]), axes=[3])


def mean_channels_last(net: Net, x: str) -> str:
    turned = net.op("Transpose", x, perm=[0, 2, 3, 1])
    return net.op("Reshape", net.op("ReduceMean", turned, axes=[1, 2], keepdims=0), ints(1, 8, 1, 1))


def mean_of_flat(net: Net, x: str) -> str:
    flat = net.op("ReduceMean", net.op("Reshape", x, ints(1, 8, -1)), axes=[2], keepdims=0)
    return net.op("Reshape", flat, ints(1, 8, 1, 1))


def padded(net: Net, x: str) -> str:
    return net.op("Conv", x, net.floats(8, 8, 3, 3), pads=[1, 1, 2, 2])


def pad_before(net: Net, x: str) -> str:
    weights = net.floats(8, 8, 3, 3)
    return net.op("Conv", net.op("Pad", x, ints(0, 0, 1, 1, 0, 0, 2, 2)), weights)


def pad_twice(net: Net, x: str) -> str:
    weights = net.floats(8, 8, 3, 3)
    once = net.op("Pad", x, ints(0, 0, 0, 0, 0, 0, 1, 1), f(0))
    return net.op("Conv", once, weights, pads=[1, 1, 1, 1])


def on_picture(net: Net, form: Form) -> str:
    return net.op("Relu", form(net, net.input(net.floats(1, 8, 12, 12))))


def before_convolution(net: Net, form: Form) -> str:
    return net.op("Conv", form(net, net.input(net.floats(1, 8, 12, 12))), net.floats(4, 32, 3, 3))


GELUS = [gelu, gelu_times_half, gelu_half_first, gelu_half_of_the_sum, gelu_with_halves, gelu_by_a_root]
HARD_SWISHES = [
    hard_swish, hard_swish_by_clip, hard_swish_by_sixths, hard_swish_by_divided_clip, hard_swish_by_hard_sigmoid,
    hard_swish_by_min_and_relu,
]  # fmt: skip
LAYER_NORMS = [layer_norm, layer_norm_of_torch, layer_norm_of_keras, layer_norm_by_products, layer_norm_twice_off]
MEANS = [mean_of_pictures, mean_by_reduce, mean_by_pool, mean_by_two, mean_of_flat, mean_channels_last]
_FAMILIES: dict[str, tuple[Callable[[Net, Form], str], int, list[Form]]] = {
    "gelu": (behind, 20, GELUS),
    "gelu_of_pictures": (between, 20, GELUS),
    "tanh_gelu": (behind, 20, [tanh_gelu, tanh_gelu_by_a_power, tanh_gelu_by_products, tanh_gelu_fused]),
    "silu": (between, 24, [silu_by_its_name, silu, silu_turned, silu_by_exp, silu_quick]),
    "hard_swish": (between, 17, HARD_SWISHES),
    "mish": (between, 18, [mish, mish_by_softplus, mish_by_log]),
    "relu6": (between, 17, [relu6, relu6_by_min, relu6_by_max_and_min, relu6_by_two_clips]),
    "prelu": (between, 17, [prelu, prelu_by_parts, prelu_by_where]),
    "leaky": (between, 17, [leaky, leaky_by_max, leaky_by_prelu]),
    "layer_norm": (behind, 17, LAYER_NORMS),
    "rms_norm": (behind, 17, [rms_norm, rms_norm_of_llama, rms_norm_by_a_root]),
    "softmax": (behind, 17, [softmax, softmax_by_exp, softmax_turned]),
    "batch_norm": (between, 17, [batch_norm, batch_norm_by_products, batch_norm_by_steps]),
    "instance_norm": (between, 17, [instance_norm, instance_norm_by_steps]),
    "group_norm": (between, 21, [group_norm, group_norm_of_torch]),
    "shuffle": (on_picture, 17, [shuffle, shuffle_by_transpose]),
    "focus": (before_convolution, 17, [focus, focus_by_slices, focus_by_reshape]),
    "channel_shuffle": (between, 17, [channel_shuffle, channel_shuffle_of_flat_pictures]),
    "double": (between, 17, [double, double_by_expand, double_by_tile, double_of_sizes]),
    "mean": (between, 17, MEANS),
    "pad": (between, 17, [padded, pad_before, pad_twice]),
}


def _add() -> None:
    for family, (around, opset, forms) in _FAMILIES.items():
        for form in forms:

            def write(net: Net, around: Callable[[Net, Form], str] = around, form: Form = form) -> str:
                return around(net, form)

            write.__name__ = form.__name__
            spelled(f"canonical/{family}", opset=opset)(write)


_add()
