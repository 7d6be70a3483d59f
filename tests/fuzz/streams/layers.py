"""Layers that networks are drawn from: from the name of a value [1, C, T] or [1, C, .., ..] to another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .networks import Grow, Network, NotRun

LAYERS: list[Grow] = []
ENDS: list[Grow] = []  # what no other layer follows


def layer(times: int = 1) -> Any:
    def told(grow: Grow) -> Grow:
        LAYERS.extend([grow] * times)
        return grow

    return told


def end(grow: Grow) -> Grow:
    ENDS.append(grow)
    return grow


def window(net: Network, x: str, pool: bool = False) -> dict[str, Any]:
    """Attributes of what slides: kernel, strides, dilations, and padding of any kind."""
    rank = len(net.shape(x)) - 2
    kernel = [net.number(1, 4) if net.may(0.8) else 1 for _ in range(rank)]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if net.may(0.4):
        found["strides"] = [net.number(1, 3) for _ in range(rank)]
    if net.may(0.35):
        found["dilations"] = [net.number(1, 3) for _ in range(rank)]
    way = net.number(0, 5)
    if pool and way <= 1:  # what onnxruntime does then is not the standard's: see docs/fuzzing.md
        found.pop("dilations", None)
    if way <= 1:
        found["auto_pad"] = net.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if pool and "strides" in found:  # nor is what it does where a window is shorter than its stride
            found["strides"] = [min(each, size) for each, size in zip(found["strides"], kernel, strict=True)]
    elif way <= 3:
        most = [size - 1 if pool else size + 1 for size in kernel]
        found["pads"] = [net.number(0, each) if net.may(0.6) else 0 for each in most * 2]
    if pool and net.may(0.5):
        found["ceil_mode"] = 1
    _fits(net.shape(x)[2:], **found)
    return found


def _fits(
    space: Sequence[int],
    kernel_shape: Sequence[int],
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    auto_pad: str = "",
    **_: object,
) -> None:
    """Where a window does not fit, onnxruntime divides by zero."""
    rank = len(space)
    pads = pads or (0,) * 2 * rank
    for axis, size in enumerate(space):
        reach = (kernel_shape[axis] - 1) * (dilations[axis] if dilations else 1) + 1
        if reach > size + pads[axis] + pads[axis + rank] and not auto_pad.startswith("SAME"):
            raise NotRun


@layer(4)
def conv(net: Network, x: str) -> str:
    channels = net.shape(x)[1]
    group = net.one_of([1, 1, channels])
    results = group * net.number(1, 2) if group > 1 else net.number(1, 4)
    found = window(net, x)
    w = net.weight(net.floats(results, channels // group, *found["kernel_shape"]))
    bias = [net.weight(net.floats(results))] if net.may() else []
    return net.op("Conv", x, w, *bias, group=group, **found)


@layer(4)
def pool(net: Network, x: str) -> str:
    kind, found = net.one_of(["MaxPool", "AveragePool", "LpPool"]), window(net, x, pool=True)
    if kind == "AveragePool":
        found.pop("dilations", None)  # of opset 19
        found["count_include_pad"] = net.number(0, 1)
    if kind == "LpPool":
        found["p"] = net.number(1, 3)
    return net.op(kind, x, **found)


@layer()
def transposed(net: Network, x: str) -> str:
    channels, rank = net.shape(x)[1], len(net.shape(x)) - 2
    kernel = [net.number(1, 3) for _ in range(rank)]
    w = net.weight(net.floats(channels, net.number(1, 3), *kernel))
    found: dict[str, Any] = {"strides": [net.number(1, 3) for _ in range(rank)]} if net.may() else {}
    if net.may(0.3):
        found["dilations"] = [net.number(1, 2) for _ in range(rank)]
    if net.may(0.4):
        found["pads"] = [net.number(0, size - 1) for size in kernel * 2]
    return net.op("ConvTranspose", x, w, **found)


@layer(2)
def pad(net: Network, x: str) -> str:
    mode = net.one_of(["constant", "edge", "reflect", "wrap"])
    rank = len(net.shape(x))
    pads = [0] * (2 * rank)
    for axis in {net.axis, net.number(2, rank - 1)}:
        pads[axis], pads[rank + axis] = net.number(0, 3), net.number(0, 2)
    value = [net.weight(np.array(0.5, np.float32))] if mode == "constant" and net.may(0.3) else []
    return net.op("Pad", x, net.ints(*pads), *value, mode=mode)


@layer()
def cut(net: Network, x: str) -> str:
    axis, size = net.axis, net.shape(x)[net.axis]
    if axis >= len(net.shape(x)) or size < 3:
        raise NotRun
    first, last = net.number(0, 2), net.one_of([size, -1, -2, np.iinfo(np.int64).max])
    steps = [net.ints(net.number(1, 2))] if net.may(0.3) else []
    return net.op("Slice", x, net.ints(first), net.ints(last), net.ints(axis), *steps)


@layer(3)
def beside(net: Network, x: str) -> str:
    """Joined with an older value of the same space, or of one that is cut to it at either end."""
    shape = net.shape(x)
    others = [name for name, array in net.values.items() if array.ndim == len(shape) and name != x]
    if not others:
        raise NotRun
    other = net.one_of(others)
    size, axis = net.shape(other), net.axis
    less = min(size[axis], shape[axis])
    parts = []
    for name, have in ((x, shape[axis]), (other, size[axis])):
        first = net.one_of([0, have - less])
        parts.append(
            name if have == less else net.op("Slice", name, net.ints(first), net.ints(first + less), net.ints(axis))
        )
    if size[1] == shape[1] and net.may():
        return net.op(net.one_of(["Add", "Mul", "Sub"]), *parts)
    return net.op("Concat", *parts, axis=1)


@layer(2)
def elementwise(net: Network, x: str) -> str:
    return net.op(net.one_of(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softplus"]), x)


@layer(2)
def normalized(net: Network, x: str) -> str:
    shape = net.shape(x)
    channels = shape[1]
    ones = net.weight(np.abs(net.floats(channels)) + 1)
    rows = net.weight(net.floats(channels))
    match net.number(0, 5):
        case 0:
            return net.op("BatchNormalization", x, ones, rows, rows, ones)
        case 1:
            return net.op("InstanceNormalization", x, ones, rows)
        case 2:
            axis = net.one_of([-1, 1, 2])
            return net.op("LayerNormalization", x, net.weight(net.floats(*shape[axis:])), axis=axis)
        case 3:
            return net.op("LpNormalization", x, axis=net.number(1, len(shape) - 1), p=net.number(1, 2))
        case 4:
            return net.op("LRN", x, size=net.number(1, 3))
    return net.op("Softmax", x, axis=net.number(1, len(shape) - 1))


@layer(2)
def recurrent(net: Network, x: str) -> str:
    if len(net.shape(x)) != 3:
        raise NotRun
    kind, gates = net.one_of([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    direction = net.one_of(["forward", "forward", "reverse", "bidirectional"])
    both, hidden, channels = 2 if direction == "bidirectional" else 1, net.number(1, 3), net.shape(x)[1]
    w, r = net.floats(both, gates * hidden, channels), net.floats(both, gates * hidden, hidden)
    t = net.op("Transpose", x, perm=[2, 0, 1])
    names = net.weight(w), net.weight(r)
    said = {"activations": ["Tanh"] * both} if kind == "RNN" else {}
    net.op(kind, t, *names, results=2, hidden_size=hidden, direction=direction, **said)
    y = net.nodes[-1].output[0]
    turned = net.op("Transpose", y, perm=[2, 1, 3, 0])
    return net.op("Reshape", turned, net.ints(net.shape(x)[0], both * hidden, -1))


@layer(2)
def attention(net: Network, x: str) -> str:
    if len(net.shape(x)) != 3:
        raise NotRun
    channels = net.shape(x)[1]
    rows = net.op("Transpose", x, perm=[0, 2, 1])
    q, k, v = (net.op("MatMul", rows, net.weight(net.floats(channels, 2))) for _ in range(3))
    scores = net.op("Softmax", net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 1])), axis=-1)
    return net.op("Transpose", net.op("MatMul", scores, v), perm=[0, 2, 1])


@layer()
def scaled_up(net: Network, x: str) -> str:
    scales = [1.0] * len(net.shape(x))
    scales[net.number(2, len(scales) - 1)] = 2.0
    mode = net.one_of(["nearest", "nearest", "linear"])
    form = net.one_of(["asymmetric", "half_pixel"])
    return net.op(
        "Resize", x, "", net.weight(np.array(scales, np.float32)), mode=mode, coordinate_transformation_mode=form
    )


@layer()
def blocks(net: Network, x: str) -> str:
    """Time in blocks, of which one element is taken; or channels in another order."""
    shape = net.shape(x)
    if len(shape) != 3 or shape[2] % 2:
        raise NotRun
    apart = net.op("Reshape", x, net.ints(*shape[:2], shape[2] // 2, 2))
    return net.op("ReduceMax", apart, net.ints(3), keepdims=0)


@layer()
def gated(net: Network, x: str) -> str:
    """Squeeze and excite: a factor of the whole window."""
    return net.op("Mul", x, net.op("Sigmoid", net.op("GlobalAveragePool", x)))


@end
def mean(net: Network, x: str) -> str:
    return net.op(net.one_of(["ReduceMean", "ReduceMax", "ReduceSum"]), x, net.ints(net.axis), keepdims=0)


@end
def dense(net: Network, x: str) -> str:
    flat = net.op("Flatten", x)
    return net.op("MatMul", flat, net.weight(net.floats(net.shape(flat)[1], 3)))


@end
def newest(net: Network, x: str) -> str:
    return net.op("Gather", x, net.weight(np.array(net.one_of([-1, -1, 0, -2]))), axis=net.axis)


@end
def running_sum(net: Network, x: str) -> str:
    return net.op("CumSum", x, net.weight(np.array(net.axis)))
