"""UnfoldTensor: all windows along an axis, as PyTorch's unfold makes them."""

from __future__ import annotations

import numpy as np

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..contributed import writes


@writes(
    "UnfoldTensor",
    "g (float[2, 7, 3] x) => (float[2, 3, 3, 3] y)"
    " { y = com.microsoft.UnfoldTensor <dim = 1, size = 3, step = 2> (x) }",
)
def unfold_tensor(body: Body) -> None:
    body.only("dim", "size", "step")
    type, size, step = body.type(0), int(body.attribute("size", 0)), int(body.attribute("step", 1))
    axis = int(body.attribute("dim", -1)) % max(type.rank, 1)
    length = type.shape[axis]
    if not isinstance(length, int):
        raise Unsupported(f"the size of axis {axis} is known only at run time", "fix it with --dim or --shape")
    if not 0 < size <= length or step < 1:
        raise Invalid(f"windows of {size} at steps of {step} do not fit into {length}")
    places = np.arange(0, length - size + 1, step)[:, None] + np.arange(size)
    cut = body.op("Gather", "in0", body.constant(places), axis=axis)
    order = [a for a in range(type.rank + 1) if a != axis + 1]
    body.give(0, body.op("Transpose", cut, perm=[*order, axis + 1]), False)
