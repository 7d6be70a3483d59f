"""ConvTransposeWithDynamicPads: ConvTranspose whose pads are an operand, which a run may compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.ir import Unsupported
from ..composed_body import Body
from ..contributed import writes


@writes(
    "ConvTransposeWithDynamicPads",
    "g (float[1, 2, 4, 4] x, float[2, 3, 3, 3] w) => (float[1, 3, 7, 8] y) <int64[4] p = {1, 1, 1, 0}>"
    " { y = com.microsoft.ConvTransposeWithDynamicPads <strides = [2, 2]> (x, w, p) }",
)
def conv_transpose_with_dynamic_pads(body: Body) -> None:
    window = body.picked("auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides")
    pads = body.operands[2].fact.value if body.has(2) else None  # type: ignore[union-attr]
    if pads is not None and all(isinstance(pad, int | np.integer) for pad in pads.reshape(-1)):
        window["pads"] = [int(pad) for pad in pads.reshape(-1)]
    elif body.has(2):
        body.give(0, _trimmed(body, window))
        return
    body.give(0, body.op("ConvTranspose", body.operand(0), body.operand(1), body.operand(3), **window))


def _trimmed(body: Body, window: dict[str, Any]) -> str:
    """What lies within pads that a run computes, of the result without pads."""
    if window.get("auto_pad", "NOTSET") not in ("NOTSET", b"NOTSET"):
        raise Unsupported("pads (operand 2) beside auto_pad", "leave out auto_pad")
    whole = body.op("ConvTranspose", body.operand(0), body.operand(1), body.operand(3), **window)
    axes = body.type(0).rank - 2
    begins = body.op("Split", body.operand(2), outs=2, num_outputs=2)
    ends = body.op("Max", body.op("Sub", body.op("Shape", whole, start=2), f"{begins}_1"), body.ints(0))
    return body.op("Slice", whole, begins, ends, body.ints(*range(2, 2 + axes)))
