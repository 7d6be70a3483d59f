"""Comparisons, and what is done with truth values."""

from __future__ import annotations

from ..site import Site, converts

_COMPARED = {
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
}
_LOGIC = {"LOGICAL_AND": "And", "LOGICAL_OR": "Or"}


@converts(*_COMPARED)
def _compare(site: Site) -> None:
    site.store(site.op(_COMPARED[site.name], *_alike(site)))


@converts("NOT_EQUAL")
def _not_equal(site: Site) -> None:
    site.store(site.op("Not", site.op("Equal", *_alike(site))))


@converts(*_LOGIC)
def _logic(site: Site) -> None:
    site.store(site.op(_LOGIC[site.name], site.stored(0), site.stored(1)))


def _alike(site: Site) -> tuple[str, str]:
    """Both operands: as they are stored, where they are quantized alike."""
    if site.tensor(0).quantization == site.tensor(1).quantization:
        return site.stored(0), site.stored(1)
    return site.real(0), site.real(1)
