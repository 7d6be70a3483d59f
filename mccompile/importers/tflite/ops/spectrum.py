"""Fourier transforms. A complex number is two floats, along one more axis."""

from __future__ import annotations

from ....graph.ir import Invalid, Unsupported
from ..site import Site, converts


@converts("RFFT2D")
def _rfft2d(site: Site) -> None:
    shape, lengths = site.shape(0), site.numbers(1)
    if len(shape) < 2 or len(lengths) != 2 or min(lengths) < 1:
        raise Invalid(f"an input {list(shape)} is transformed over {list(lengths)}")
    rank = len(shape)
    x = site.real(0)
    cut = [min(size, length) for size, length in zip(shape[-2:], lengths, strict=True)]
    x = site.op("Slice", x, site.ints(0, 0), site.ints(*cut), site.ints(rank - 2, rank - 1))
    room = [length - size for size, length in zip(cut, lengths, strict=True)]
    if any(room):
        x = site.op("Pad", x, site.ints(*[0] * rank, *[0] * (rank - 2), *room))
    x = site.op("Unsqueeze", x, site.ints(rank))
    made = site.op("DFT", x, "", site.scalar(rank - 1), onesided=1)
    if lengths[0] > 1:
        made = site.op("DFT", made, "", site.scalar(rank - 2))
    site.store(made)


@converts("COMPLEX_ABS")
def _complex_abs(site: Site) -> None:
    site.store(site.op("ReduceL2", _pairs(site), site.ints(-1), keepdims=0))


@converts("REAL", "IMAG")
def _part(site: Site) -> None:
    site.store(site.op("Gather", _pairs(site), site.scalar(int(site.name == "IMAG")), axis=-1))


def _pairs(site: Site) -> str:
    if site.tensor(0).type != "COMPLEX64":
        raise Unsupported(f"numbers of the type {site.tensor(0).type}")
    return site.stored(0)
