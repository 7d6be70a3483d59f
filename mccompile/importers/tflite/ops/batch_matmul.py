"""Products of matrices that are both computed, or one of them."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..site import Site, converts


@converts("BATCH_MATMUL")
def _batch_matmul(site: Site) -> None:
    options = site.options("BatchMatMulOptions")
    orders = []
    for index, name in enumerate(("AdjX", "AdjY")):
        rank = site.rank(index)
        if rank < 2:
            raise Invalid(f"operand {index} has the shape {list(site.shape(index))}")
        orders.append((*range(rank - 2), rank - 1, rank - 2) if options[name] else ())
    site.give(site.op("MatMul", site.real(0, orders[0]), site.real(1, orders[1])))
