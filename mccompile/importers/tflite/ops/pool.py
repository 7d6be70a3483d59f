"""Means and maxima over windows."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..site import Site, converts
from ..windows import padded


@converts("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def _pool(site: Site) -> None:
    options = site.options("Pool2DOptions")
    if site.rank(0) != 4:
        raise Invalid(f"its input has the shape {list(site.dims(0))}")
    kernel = (options["FilterHeight"], options["FilterWidth"])
    strides = (options["StrideH"], options["StrideW"])
    pads = padded(options["Padding"], site.dims(0)[1:3], kernel, strides, (1, 1))
    window = {"kernel_shape": kernel, "strides": strides, **pads}
    x = site.first(0)
    if site.name == "L2_POOL_2D":
        made = site.op("Sqrt", site.op("AveragePool", site.op("Mul", x, x), **window))
    else:
        made = site.op("MaxPool" if site.name == "MAX_POOL_2D" else "AveragePool", x, **window)
    site.give(site.activated(made, options["FusedActivationFunction"]), channels_first=True)
