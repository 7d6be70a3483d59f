"""Transposed convolutions, over volumes too."""

from __future__ import annotations

from collections.abc import Sequence

from ....graph.ir import Invalid
from ..file import SizeOpen
from ..site import Site, converts
from ..windows import SAME
from .conv import bias, volume


@converts("TRANSPOSE_CONV")
def _transpose_conv(site: Site) -> None:
    options = site.options("TransposeConvOptions")
    x, w = site.shape(2), site.shape(1)
    if site.is_resized and not site.is_known(0):
        raise SizeOpen("the size of its result is computed")
    out = site.numbers(0) if site.is_known(0) else site.out().shape
    strides = (options["StrideH"], options["StrideW"])
    if len(x) != 4 or len(w) != 4 or len(out) != 4 or w[3] != x[3]:
        raise Invalid(f"weights {list(w)} do not fit the input {list(x)} and the result {list(out)}")
    made = site.op(
        "ConvTranspose",
        site.first(2),
        site.real(1, (3, 0, 1, 2)),
        bias(site, 3),
        strides=strides,
        **_window(options["Padding"], x[1:3], w[1:3], strides, out[1:3]),
    )
    site.give(site.activated(made, options["FusedActivationFunction"]), channels_first=True)


@converts("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(site: Site) -> None:
    options, x, w = volume(site, 2)
    strides = tuple(options[f"Stride{axis}"] for axis in "DHW")
    made = site.op(
        "ConvTranspose",
        site.first(2),
        site.real(1, (4, 3, 0, 1, 2)),
        bias(site, 3),
        strides=strides,
        **_window(options["Padding"], x[1:4], w[:3], strides, site.numbers(0)[1:4]),
    )
    site.give(site.activated(made, options["FusedActivationFunction"]), channels_first=True)


def _window(
    padding: int, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], out: Sequence[int]
) -> dict[str, list[int]]:
    """Pads that lead to the size that is asked for; with VALID nothing is cut off before."""
    if min(*strides, *kernel, *out) < 1:
        raise Invalid(f"a window of {list(kernel)} with strides {list(strides)}")
    reach = [(size - 1) * stride + k for size, k, stride in zip(sizes, kernel, strides, strict=True)]
    totals = [max(0, most - size) for most, size in zip(reach, out, strict=True)]
    before = [total // 2 if padding == SAME else 0 for total in totals]
    return {
        "pads": before + [total - first for total, first in zip(totals, before, strict=True)],
        "output_padding": [max(0, size - most) for most, size in zip(reach, out, strict=True)],
    }
