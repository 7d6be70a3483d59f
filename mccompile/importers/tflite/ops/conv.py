"""Convolutions: weights are brought to ONNX's order here, pictures by transposes that the compiler takes away."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..file import Options
from ..site import Site, converts
from ..windows import padded


@converts("CONV_2D")
def _conv(site: Site) -> None:
    options = site.options("Conv2DOptions")
    x, w = site.dims(0), site.shape(1)
    channels = x[-1] if x else None
    if len(x) != 4 or len(w) != 4 or w[3] == 0 or channels is None or channels % w[3]:
        raise Invalid(f"weights {list(w)} do not fit the input {list(x)}")
    _convolve(site, options, (0, 3, 1, 2), channels // w[3])


@converts("DEPTHWISE_CONV_2D")
def _depthwise(site: Site) -> None:
    options = site.options("DepthwiseConv2DOptions")
    x, w = site.dims(0), site.shape(1)
    channels = x[-1] if x else None
    if len(x) != 4 or len(w) != 4 or w[0] != 1 or not channels or w[3] % channels:
        raise Invalid(f"weights {list(w)} do not fit the input {list(x)}")
    _convolve(site, options, (3, 0, 1, 2), channels)


@converts("CONV_3D")
def _conv_3d(site: Site) -> None:
    options, x, w = volume(site, 0)
    strides = tuple(options[f"Stride{axis}"] for axis in "DHW")
    dilations = tuple(options[f"Dilation{axis}Factor"] for axis in "DHW")
    made = site.op(
        "Conv",
        site.first(0),
        site.real(1, (4, 3, 0, 1, 2)),
        bias(site),
        strides=strides,
        dilations=dilations,
        **padded(options["Padding"], x[1:4], w[:3], strides, dilations),
        group=x[4] // w[3],
    )
    site.give(site.activated(made, options["FusedActivationFunction"]), channels_first=True)


def _convolve(site: Site, options: Options, order: tuple[int, ...], group: int) -> None:
    """`order` brings the weights into ONNX's."""
    strides = (options["StrideH"], options["StrideW"])
    dilations = (options["DilationHFactor"], options["DilationWFactor"])
    made = site.op(
        "Conv",
        site.first(0),
        site.real(1, order),
        bias(site),
        strides=strides,
        dilations=dilations,
        **padded(options["Padding"], site.dims(0)[1:3], site.shape(1)[1:3], strides, dilations),
        group=group,
    )
    site.give(site.activated(made, options["FusedActivationFunction"]), channels_first=True)


def volume(site: Site, index: int) -> tuple[Options, tuple[int, ...], tuple[int, ...]]:
    x, w = site.shape(index), site.shape(1)
    if len(x) != 5 or len(w) != 5 or not w[3] or x[4] % w[4 if index else 3]:
        raise Invalid(f"weights {list(w)} do not fit the input {list(x)}")
    return site.options("Conv3DOptions"), x, w


def bias(site: Site, index: int = 2) -> str:
    return site.real(index) if site.has(index) else ""
