"""Normalizations over channels."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..onnx_nodes import last_order
from ..site import Site, converts


@converts("L2_NORMALIZATION")
def _l2(site: Site) -> None:
    x = site.real(0)
    length = site.op("ReduceL2", x, site.ints(-1), keepdims=1)
    made = site.op("Div", x, site.op("Max", length, site.number(1e-6)))
    site.give(site.activated(made, site.options("L2NormOptions")["FusedActivationFunction"]))


@converts("LOCAL_RESPONSE_NORMALIZATION")
def _lrn(site: Site) -> None:
    options = site.options("LocalResponseNormalizationOptions")
    size = 2 * options["Radius"] + 1
    if site.rank(0) != 4 or size < 1:
        raise Invalid(f"an input {list(site.shape(0))} with the radius {options['Radius']}")
    how = {"alpha": options.real("Alpha") * size, "beta": options.real("Beta"), "bias": options.real("Bias")}
    made = site.op("LRN", site.first(0), size=size, **how)
    site.give(site.transposed(made, last_order(4)))
