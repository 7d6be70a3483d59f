"""What moves elements, pads pictures or takes means of them, as exporters write it, next to the operator they mean."""

from __future__ import annotations

import numpy as np

from .net import Net, f, ints


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


MEANS = [mean_of_pictures, mean_by_reduce, mean_by_pool, mean_by_two, mean_of_flat, mean_channels_last]
SHUFFLE = [shuffle, shuffle_by_transpose]
FOCUS = [focus, focus_by_slices, focus_by_reshape]
CHANNEL_SHUFFLE = [channel_shuffle, channel_shuffle_of_flat_pictures]
DOUBLE = [double, double_by_expand, double_by_tile, double_of_sizes]
PAD = [padded, pad_before, pad_twice]
