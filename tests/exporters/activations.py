"""Activations as exporters take them apart, next to the operator they mean."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from .net import Net, f

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


GELUS = [gelu, gelu_times_half, gelu_half_first, gelu_half_of_the_sum, gelu_with_halves, gelu_by_a_root]
HARD_SWISHES = [
    hard_swish, hard_swish_by_clip, hard_swish_by_sixths, hard_swish_by_divided_clip, hard_swish_by_hard_sigmoid,
    hard_swish_by_min_and_relu,
]  # fmt: skip
TANH_GELU = [tanh_gelu, tanh_gelu_by_a_power, tanh_gelu_by_products, tanh_gelu_fused]
SILU = [silu_by_its_name, silu, silu_turned, silu_by_exp, silu_quick]
MISH = [mish, mish_by_softplus, mish_by_log]
RELU6 = [relu6, relu6_by_min, relu6_by_max_and_min, relu6_by_two_clips]
PRELU = [prelu, prelu_by_parts, prelu_by_where]
LEAKY = [leaky, leaky_by_max, leaky_by_prelu]
