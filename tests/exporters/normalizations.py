"""Normalizations as exporters take them apart, next to the operator they mean."""

from __future__ import annotations

import numpy as np

from .net import Net, f, ints

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


LAYER_NORMS = [layer_norm, layer_norm_of_torch, layer_norm_of_keras, layer_norm_by_products, layer_norm_twice_off]
RMS_NORM = [rms_norm, rms_norm_of_llama, rms_norm_by_a_root]
SOFTMAX = [softmax, softmax_by_exp, softmax_turned]
BATCH_NORM = [batch_norm, batch_norm_by_products, batch_norm_by_steps]
INSTANCE_NORM = [instance_norm, instance_norm_by_steps]
GROUP_NORM = [group_norm, group_norm_of_torch]
