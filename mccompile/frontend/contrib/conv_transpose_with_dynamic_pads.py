"""ConvTransposeWithDynamicPads: ConvTranspose whose pads are an operand."""

from __future__ import annotations

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
        raise Unsupported("pads (operand 2) are computed at run time", "make them a constant of the model")
    body.give(0, body.op("ConvTranspose", body.operand(0), body.operand(1), body.operand(3), **window))
