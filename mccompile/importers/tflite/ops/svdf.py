"""SVDF: features of every step, remembered for as many steps as there are weights in time."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..site import Site, converts


@converts("SVDF")
def _svdf(site: Site) -> None:
    options = site.options("SVDFOptions")
    rank, (batch, _), (filters, _) = options["Rank"], site.shape(0), site.shape(1)
    memory = site.shape(2)[1]
    if rank < 1 or filters % rank or site.shape(2)[0] != filters:
        raise Invalid(f"rank {rank} with weights {list(site.shape(1))} and {list(site.shape(2))}")
    units, state = filters // rank, site.variable(4)
    features = site.op("MatMul", site.real(0), site.real(1, (1, 0)))
    features = site.reshape(site.quantized(features, site.tensor(4)), batch, filters, 1)
    past = site.reshape(state.now, batch, filters, memory)
    past = site.op("Slice", past, site.ints(1), site.ints(memory), site.ints(2))
    now = site.op("Concat", past, features, axis=2)
    site.assign(state, site.reshape(now, *site.shape(4)))
    weights = site.reshape(site.stored(2), units, rank, memory)
    made = site.op(
        "Conv",
        site.dequantized(now, site.tensor(4)),
        site.dequantized(weights, site.tensor(2)),
        site.real(3) if site.has(3) else "",
        group=units,
    )
    made = site.reshape(made, batch, units)
    if site.out().quantization is None:  # the integers of TFLite saturate, and nothing else
        made = site.activated(made, options["FusedActivationFunction"])
    site.give(made)
