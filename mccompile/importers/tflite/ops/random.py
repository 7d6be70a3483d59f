"""Random numbers, drawn anew in every run. Those of a seed are what TensorFlow's generator makes of it, which ONNX's
operators do not."""

from __future__ import annotations

from ....graph.ir import Unsupported
from ..site import Site, converts, onnx_type


@converts("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def _random(site: Site) -> None:
    _unseeded(site)
    name = "RandomUniform" if site.name == "RANDOM_UNIFORM" else "RandomNormal"
    site.store(site.op(name, shape=site.numbers(0), dtype=onnx_type(site.out().type)))


@converts("MULTINOMIAL")
def _multinomial(site: Site) -> None:
    _unseeded(site)
    (count,) = site.numbers(1)
    site.store(site.op("Multinomial", site.real(0), sample_size=count, dtype=onnx_type(site.out().type)))


def _unseeded(site: Site) -> None:
    options = site.options("RandomOptions")
    if options["Seed"] or options["Seed2"]:
        why = "its seed stands for numbers of TensorFlow's generator, which is not among ONNX's operators"
        raise Unsupported(why, "convert the model without a seed, or make the numbers an input")
