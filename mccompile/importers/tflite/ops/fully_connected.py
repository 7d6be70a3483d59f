"""Products with a matrix of weights."""

from __future__ import annotations

import math

from ....graph.ir import Invalid, Unsupported
from ..site import Site, converts
from .conv import bias


@converts("FULLY_CONNECTED")
def _fully_connected(site: Site) -> None:
    options = site.options("FullyConnectedOptions")
    if options["WeightsFormat"]:
        raise Unsupported("its weights are shuffled")
    w, x, sizes = site.shape(1), site.stored(0), site.dims(0)
    is_known = None not in sizes
    if len(w) != 2 or not w[1] or (is_known and math.prod(site.shape(0)) % w[1]):
        raise Invalid(f"weights {list(w)} do not fit the input {list(sizes)}")
    if len(sizes) != 2 or sizes[-1] != w[1]:
        x = site.reshape(x, -1, w[1])
    made = site.op("Gemm", site.dequantized(x, site.tensor(0)), site.real(1), bias(site), transB=1)
    made = site.quantized(site.activated(made, options["FusedActivationFunction"]), site.out())
    if options["KeepNumDims"] and len(sizes) != 2:
        made = site.reshaped(made, (*sizes[:-1], w[0]))
    site.store(made)
