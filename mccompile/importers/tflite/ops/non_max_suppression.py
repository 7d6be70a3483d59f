"""NON_MAX_SUPPRESSION: indices of the boxes that are kept, by descending score, with zeros behind them."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Invalid, Unsupported
from ..site import Site, converts

_LEAST = float(np.finfo(np.float32).min)


@converts("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def _non_max_suppression(site: Site) -> None:
    is_soft = site.name == "NON_MAX_SUPPRESSION_V5"
    if is_soft and (site.array(5) != 0).any():
        raise Unsupported("scores of boxes that overlap are lowered", "set soft_nms_sigma to 0")
    (count,), (most,) = site.shape(1), site.numbers(2)
    if site.shape(0) != (count, 4) or not most > 0:
        raise Invalid(f"{most} of the boxes {list(site.shape(0))} with scores {list(site.shape(1))}")
    boxes, scores = site.reshape(site.real(0), 1, count, 4), site.reshape(site.real(1), 1, 1, count)
    limits = [site.reshape(site.real(index), 1) for index in (3, 4)]
    chosen = site.op("NonMaxSuppression", boxes, scores, site.ints(min(most, count)), *limits)
    ones = site.op("Expand", site.number(1.0), site.op("Shape", chosen, start=0, end=1))
    marks = site.op("Expand", site.number(0.0), site.ints(1, 1, count))
    marks = site.op("Greater", site.op("ScatterND", marks, chosen, ones), site.number(0.5))
    flat = site.reshape(site.op("Where", marks, scores, site.number(_LEAST)), count)
    kept = min(most, count)
    best, places = site.ops("TopK", flat, site.ints(kept), outs=2, axis=0)
    there = site.op("Greater", best, site.number(_LEAST))

    def padded(value: str) -> str:
        return value if kept == most else site.op("Pad", value, site.ints(0, most - kept))

    numbers = site.cast(places, "INT32")
    site.store(padded(site.op("Where", there, numbers, site.number(0, np.int32))), 0)
    if is_soft:
        site.store(padded(site.op("Where", there, best, site.number(0.0))), 1)
    total = site.op("ReduceSum", site.cast(there, "INT32"), site.ints(0), keepdims=0)
    site.store(total, 2 if is_soft else 1)
