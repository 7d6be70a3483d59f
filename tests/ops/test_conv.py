"""Conv, ConvInteger and ConvTranspose: what onnxruntime gives, at every opset at which one of them changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from mccompile.base import dims
from mccompile.base.dtypes import DType, f16, f32, u8
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site, Unsupported
from mccompile.ops.conv import Conv, ConvTranspose

from .bundle import One, comparison

OPSETS = (7, 10, 11, 22)


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def bytes_(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(info.min, info.max + 1, shape).astype(dtype)


def convolutions() -> Iterator[One]:
    weights = frozenset({1, 2})
    x, w, b = floats(2, 4, 9, 11), floats(6, 4, 3, 3), floats(6)
    yield One("plain", "Conv", [x, w, b], constant=weights)
    yield One("weights_computed", "Conv", [x, w, b])
    yield One("padded", "Conv", [x, w], {"pads": (1, 0, 2, 1), "strides": (2, 1)}, weights)
    yield One("dilated", "Conv", [x, w], {"dilations": (2, 3), "pads": (2, 2, 2, 2)}, weights)
    yield One("groups", "Conv", [x, floats(6, 2, 3, 3), b], {"group": 2, "pads": (1, 1, 1, 1)}, weights)
    yield One("depthwise", "Conv", [x, floats(4, 1, 3, 3), floats(4)], {"group": 4}, weights)
    for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        yield One(f"conv_{mode}", "Conv", [x, floats(2, 4, 2, 4)], {"auto_pad": mode, "strides": (2, 3)}, weights)
    yield One("one_dimension", "Conv", [floats(1, 3, 20), floats(5, 3, 4)], {"strides": (3,), "kernel_shape": (4,)})
    yield One("three_dimensions", "Conv", [floats(1, 2, 5, 6, 4), floats(3, 2, 2, 3, 1), floats(3)])
    yield One("f64", "Conv", [floats(1, 2, 5, 5, dtype=np.float64), floats(3, 2, 2, 2, dtype=np.float64)])


def integer_convolutions() -> Iterator[One]:
    x, w = bytes_(1, 3, 7, 8), bytes_(4, 3, 3, 3)
    yield One("integer", "ConvInteger", [x, w], {"pads": (1, 1, 1, 1)})
    zero = np.array(77, np.uint8)
    yield One("integer_x_zero", "ConvInteger", [x, w, zero], {"pads": (1, 0, 1, 2), "strides": (2, 1)})
    yield One("integer_zeros", "ConvInteger", [x, w, zero, np.array(9, np.uint8)], {"pads": (1, 1, 1, 1)})
    per_channel = np.array([1, 2, 250, 4], np.uint8)
    yield One("integer_w_zeros", "ConvInteger", [x, w, None, per_channel], {"group": 1}, frozenset({1, 3}))


def transposed() -> Iterator[One]:
    weights = frozenset({1, 2})
    x, w = floats(2, 4, 5, 6), floats(4, 3, 3, 3)
    yield One("transposed", "ConvTranspose", [x, w, floats(3)], {}, weights)
    yield One("transposed_computed", "ConvTranspose", [x, w], {"strides": (2, 2)})
    more = {"strides": (2, 3), "pads": (1, 0, 1, 2), "output_padding": (1, 2)}
    yield One("transposed_padded", "ConvTranspose", [x, w], more, weights)
    yield One("transposed_dilated", "ConvTranspose", [x, w], {"strides": (2, 2), "dilations": (2, 3)}, weights)
    yield One("transposed_groups", "ConvTranspose", [x, floats(4, 2, 2, 2), floats(4)], {"group": 2, "strides": (2, 2)})
    for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        yield One(f"transposed_{mode}", "ConvTranspose", [x, w], {"strides": (2, 3), "auto_pad": mode}, weights)
    for mode in ("SAME_UPPER", "SAME_LOWER"):  # a stride passes by what the kernel reaches
        form = {"strides": (3, 4), "auto_pad": mode}
        yield One(f"transposed_short_{mode}", "ConvTranspose", [x, floats(4, 3, 2, 3)], form, weights)
    for size in (10, 11, 12):
        attributes = {"strides": (2, 2), "output_shape": (size, size + 2)}
        yield One(f"transposed_to_{size}", "ConvTranspose", [x, w], attributes, weights)
    yield One("transposed_line", "ConvTranspose", [floats(1, 3, 7), floats(3, 2, 5)], {"strides": (4,)})
    yield One(
        "transposed_space", "ConvTranspose", [floats(1, 2, 3, 2, 4), floats(2, 3, 2, 3, 2)], {"strides": (1, 2, 3)}
    )


def wanted(opset: int) -> list[One]:
    return list(integer_convolutions()) if opset == 10 else [*convolutions(), *transposed()]


test_same_as_onnxruntime = comparison(OPSETS, wanted)


def site(*types: TensorType) -> Site:
    return Site(tuple(Fact(type) for type in types), 1)


def typed(dtype: DType, *shape: dims.Dim) -> TensorType:
    return TensorType(dtype, tuple(shape))


def test_free_batch_stays_free() -> None:
    n = dims.symbol("n", 1, 8)
    [fact] = Conv(pads=(1, 1, 1, 1)).infer(site(typed(f32, n, 3, 8, 8), typed(f32, 4, 3, 3, 3)))
    assert fact.type.shape == (n, 4, 8, 8)


def test_free_size_follows_the_window() -> None:
    w = dims.symbol("w", 8, 64)
    [fact] = Conv(strides=(2, 2)).infer(site(typed(f32, 1, 3, 9, w), typed(f32, 4, 3, 3, 3)))
    assert fact.type.shape[2:] == (4, (w - 3) // 2 + 1)


def test_free_size_doubles_in_a_transposed_convolution() -> None:
    h = dims.symbol("h", 2, 64)
    [fact] = ConvTranspose(strides=(2, 2)).infer(site(typed(f32, 1, 3, h, 4), typed(f32, 3, 2, 2, 2)))
    assert fact.type.shape[2:] == (2 * h, 8)


@pytest.mark.parametrize(
    ("op", "types"),
    [
        (Conv(), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 2, 3, 3))),
        (Conv(group=2), (typed(f32, 1, 4, 8, 8), typed(f32, 3, 2, 3, 3))),
        (Conv(), (typed(f32, 1, 3, 2, 8), typed(f32, 4, 3, 3, 3))),
        (Conv(kernel_shape=(2, 2)), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 3, 3, 3))),
        (Conv(strides=(2,)), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 3, 3, 3))),
        (Conv(pads=(-1, 0, 0, 0)), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 3, 3, 3))),
        (Conv(auto_pad="SAME"), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 3, 3, 3))),
        (Conv(), (typed(f32, 1, 3, 8, 8), typed(f16, 4, 3, 3, 3))),
        (Conv(), (typed(u8, 1, 3, 8, 8), typed(u8, 4, 3, 3, 3))),
        (Conv(), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 3, 3, 3), typed(f32, 3))),
        (Conv(), (typed(f32, 3, 8), typed(f32, 4, 3))),
        (ConvTranspose(), (typed(f32, 1, 3, 8, 8), typed(f32, 4, 3, 3, 3))),
        (ConvTranspose(pads=(9, 9, 9, 9)), (typed(f32, 1, 3, 8, 8), typed(f32, 3, 3, 3, 3))),
        (ConvTranspose(output_shape=(9,)), (typed(f32, 1, 3, 8, 8), typed(f32, 3, 3, 3, 3))),
    ],
)
def test_contradiction_is_named(op: Conv | ConvTranspose, types: tuple[TensorType, ...]) -> None:
    with pytest.raises(Invalid):
        op.infer(site(*types))


def test_free_channels_are_refused() -> None:
    c = dims.symbol("c", 1, 8)
    with pytest.raises(Unsupported, match="channels"):
        Conv().infer(site(typed(f32, 1, c, 8, 8), typed(f32, 4, 3, 3, 3)))
