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


def bias(site: Site, index: int = 2) -> str:
    return site.real(index) if site.has(index) else ""
