"""narrow_weights: weights of convolutions and matrix products are stored as 16-bit floats, and computed with as f32.

Where nobody asks for it, this is done with large matrices that a single row is multiplied with, which takes as long as
reading them, if all elements are those of a 16-bit type: models that were trained or stored in it.

Invariant: nothing is stored narrow that its type cannot hold: constants with elements beyond its largest stay as they
are, and so do those that anything but products reads, unless kernels for vectors have a copy of their own anyhow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import bounds
from ...base.dtypes import DTYPES, DType, bf16, f16, f32
from ...base.names import Names
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Program, reads, walk
from ...program.taken_names import taken_names
from ..api import Context

WEIGHTS = 1  # the operand
LARGE = 1 << 18  # bytes of a matrix that does not stay in a near cache
_EXACT = {bf16: {"vec"}, f16: {"avx2", "neon"}}  # kinds of kernels that widen it in a few instructions


def narrow_weights(program: Program, context: Context) -> None:
    if not context.weights_dtype:
        _narrow_exactly(program, context)
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


def _narrow_exactly(program: Program, context: Context) -> None:
    names = taken_names(program)
    done: dict[Buffer, Buffer | None] = {}
    for call in program.calls():
        if not isinstance(call.kind, Gemm) or call.kind.accumulator is not f32 or call.kind.fixed != 2:
            continue
        view = call.ins[WEIGHTS]
        if view.buffer.role != CONSTANT or view.buffer.dtype is not f32 or view.buffer.max_bytes < LARGE:
            continue
        if bounds(call.ins[0].shape[-2])[0] > 1:
            continue
        if view.buffer not in done:
            done[view.buffer] = _same(view.buffer, program, context, names)
        same = done[view.buffer]
        if same is not None:
            call.ins = (*call.ins[:WEIGHTS], replace(view, buffer=same), *call.ins[WEIGHTS + 1 :])


def _same(buffer: Buffer, program: Program, context: Context, names: Names) -> Buffer | None:
    """The same numbers in a type of 16 bits, if there is one."""
    if context.training.updatable or buffer.constant is None:
        return None
    bits = np.ascontiguousarray(buffer.constant.array).view(np.uint32)
    for dtype, isas in _EXACT.items():
        fact = f"{buffer.name} is of {dtype}"
        if isas.isdisjoint(context.target.isas) or not context.training.may_use(fact):
            continue
        narrow = _narrow(buffer, dtype, names)
        if narrow is None or narrow.constant is None:
            continue
        if np.array_equal(narrow.constant.array.astype(np.float32).view(np.uint32), bits):
            program.assumptions[fact] = None
            return narrow
    return None


def _narrow(buffer: Buffer, dtype: DType, names: Names) -> Buffer | None:
    assert buffer.constant is not None
    with np.errstate(over="ignore"):
        array = np.asarray(buffer.constant.array).astype(dtype.numpy)
    if not np.isfinite(array.astype(np.float32)).all():
        return None
    name = names.take(f"{buffer.name}_{dtype}")
    return Buffer(name, dtype, buffer.shape, CONSTANT, Constant.of(array), buffer.provenance)
