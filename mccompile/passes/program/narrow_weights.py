"""narrow_weights: weights of convolutions and matrix products are stored as 16-bit floats, and computed with as f32.

Invariant: nothing is stored narrow that its type cannot hold: constants with elements beyond its largest stay as they
are, and so do those that anything but products reads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import DTYPES, DType, f32
from ...base.names import Names
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Program, reads, walk
from ...program.taken_names import taken_names
from ..api import Context

WEIGHTS = 1  # the operand


def narrow_weights(program: Program, context: Context) -> None:
    if not context.weights_dtype:
        return
    dtype, names = DTYPES[context.weights_dtype], taken_names(program)
    products = [call for call in program.calls() if isinstance(call.kind, Conv | Gemm)]
    counted: dict[Buffer, int] = {}
    for item in walk(program.body):
        for view in reads(item):
            counted[view.buffer] = counted.get(view.buffer, 0) + 1
    for call in products:
        counted[call.ins[WEIGHTS].buffer] -= 1
    done: dict[Buffer, Buffer | None] = {}
    for call in products:
        view = call.ins[WEIGHTS]
        if view.buffer.role != CONSTANT or view.buffer.dtype is not f32 or counted[view.buffer]:
            continue
        if view.buffer not in done:
            done[view.buffer] = _narrow(view.buffer, dtype, names)
        narrow = done[view.buffer]
        if narrow is not None:
            call.ins = (*call.ins[:WEIGHTS], replace(view, buffer=narrow), *call.ins[WEIGHTS + 1 :])


def _narrow(buffer: Buffer, dtype: DType, names: Names) -> Buffer | None:
    assert buffer.constant is not None
    with np.errstate(over="ignore"):
        array = np.asarray(buffer.constant.array).astype(dtype.numpy)
    if not np.isfinite(array.astype(np.float32)).all():
        return None
    name = names.take(f"{buffer.name}_{dtype}")
    return Buffer(name, dtype, buffer.shape, CONSTANT, Constant.of(array), buffer.provenance)
