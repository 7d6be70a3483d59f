"""Softmax and its logarithm, over the last axis."""

from __future__ import annotations

from ..site import Site, converts


@converts("SOFTMAX")
def _softmax(site: Site) -> None:
    beta, x = site.options("SoftmaxOptions").real("Beta"), site.real(0)
    if beta != 1.0:
        x = site.op("Mul", x, site.number(beta))
    site.give(site.op("Softmax", x, axis=-1))


@converts("LOG_SOFTMAX")
def _log_softmax(site: Site) -> None:
    site.give(site.op("LogSoftmax", site.real(0), axis=-1))
