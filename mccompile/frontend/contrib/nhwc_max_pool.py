"""NhwcMaxPool: MaxPool over tensors whose channels are the last axis."""

from __future__ import annotations

from ..composed_body import Body
from ..contributed import writes


@writes(
    "NhwcMaxPool",
    "g (uint8[1, 6, 5, 3] x) => (uint8[1, 3, 2, 3] y)"
    " { y = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }",
)
def nhwc_max_pool(body: Body) -> None:
    rank = body.type(0).rank
    window = body.picked("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
    made = body.op("MaxPool", body.channels_last("in0", rank), **window)
    body.give(0, body.channels_last(made, rank, back=True), False)
