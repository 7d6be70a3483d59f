"""Elements of other types."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Unsupported
from ..site import Site, converts


@converts("CAST")
def _cast(site: Site) -> None:
    """Of a complex number the real part is taken; the parts lie along one more axis."""
    x, is_complex = site.stored(0), site.tensor(0).type == "COMPLEX64"
    if is_complex and site.out().type == "COMPLEX64":
        site.store(x)
    elif site.out().type == "COMPLEX64":
        raise Unsupported("a cast to complex numbers")
    else:
        site.store(site.cast(site.op("Gather", x, site.scalar(0), axis=-1) if is_complex else x, site.out().type))


@converts("QUANTIZE")
def _quantize(site: Site) -> None:
    site.store(site.requantized(site.stored(0)))


@converts("DEQUANTIZE")
def _dequantize(site: Site) -> None:
    if site.tensor(0).type == "FLOAT16":
        site.store(site.cast(site.stored(0), site.out().type))
    else:
        site.store(site.real(0))


@converts("DENSIFY")
def _densify(site: Site) -> None:
    """The constant was made dense when it was read."""
    site.store(site.stored(0))


@converts("FAKE_QUANT")
def _fake_quant(site: Site) -> None:
    options = site.options("FakeQuantOptions")
    low, high, bits = options.real("Min"), options.real("Max"), options["NumBits"]
    first, last = 1 if options["NarrowRange"] else 0, (1 << bits) - 1
    if not (2 <= bits <= 16 and low < high):
        raise Unsupported(f"{bits} bits from {low} to {high}")
    scale = np.float32((high - low) / (last - first))
    zero = float(np.clip(np.round(first - low / scale), first, last))
    bottom, top = float((first - zero) * scale), float((last - zero) * scale)
    inside = site.op("Sub", site.clip(site.real(0), bottom, top), site.number(bottom))
    whole = site.op("Floor", site.op("Add", site.op("Div", inside, site.number(float(scale))), site.number(0.5)))
    site.give(site.op("Add", site.op("Mul", whole, site.number(float(scale))), site.number(bottom)))
