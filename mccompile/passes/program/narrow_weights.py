"""narrow_weights: weights of convolutions and matrix products are stored as 16-bit floats, and converted to f32 for
computing.

Where nobody asks for it, this is done with large matrices that a single row is multiplied with, which takes as long as
reading them, if all elements are those of a 16-bit type: models that were trained or stored in it. So it is with scales
of weights of few bits that f16 holds, unless time comes first and the target has no instruction for it.

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
from ...base.records import dataclass
from ...kinds.block_gemm import BlockGemm
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Call, Program, reads, walk
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context

WEIGHTS, SCALES = 1, 2  # operands
LARGE = 1 << 18  # bytes of a matrix that does not stay in a near cache
SOME = 1 << 8  # bytes of scales that are more than what converts them
_EXACT = {bf16: {"vec"}, f16: {"avx2", "neon"}}  # kinds of kernels that widen it in a few instructions


def narrow_weights(program: Program, context: Context) -> None:
    _narrow_exactly(program, context)
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


def _narrow_exactly(program: Program, context: Context) -> None:
    names = taken_names(program)
    done: dict[tuple[Buffer, _Wanted], Buffer | None] = {}
    for call in program.calls():
        wanted = _wanted(call, context)
        if wanted is None:
            continue
        view = call.ins[wanted.place]
        if view.buffer.role != CONSTANT or view.buffer.dtype is not f32 or view.buffer.max_bytes < wanted.least:
            continue
        key = view.buffer, wanted
        if key not in done:
            done[key] = _same(view.buffer, wanted, program, context, names)
        same = done[key]
        if same is not None:
            call.ins = (*call.ins[: wanted.place], replace(view, buffer=same), *call.ins[wanted.place + 1 :])


@dataclass(frozen=True)
class _Wanted:
    """An operand, the bytes from which on it is worth it, and types that are as fast as f32."""

    place: int
    least: int
    dtypes: tuple[DType, ...]
    normal: bool = False  # only if nothing is denormal in them


def _wanted(call: Call, context: Context) -> _Wanted | None:
    fast = tuple(dtype for dtype, isas in _EXACT.items() if not isas.isdisjoint(context.target.isas))
    match call.kind:
        case Gemm(fixed=2) if call.kind.accumulator is f32 and not context.weights_dtype:
            return _Wanted(WEIGHTS, LARGE, fast) if bounds(call.ins[0].shape[-2])[0] <= 1 else None
        case BlockGemm() if f16 in fast or context.target.prefer != Prefer.TIME:
            return _Wanted(SCALES, SOME, (f16,), normal=True)
    return None


def _same(buffer: Buffer, wanted: _Wanted, program: Program, context: Context, names: Names) -> Buffer | None:
    """The same numbers in one of the types, if there is one."""
    if context.training.updatable or buffer.constant is None:
        return None
    array = np.ascontiguousarray(buffer.constant.array)
    for dtype in wanted.dtypes:
        fact = f"{buffer.name} is of {'normal ' * wanted.normal}{dtype}"
        if not context.training.may_use(fact):
            continue
        narrow = _narrow(buffer, dtype, names)
        if narrow is None or narrow.constant is None or (wanted.normal and _has_denormals(array, dtype)):
            continue
        if np.array_equal(narrow.constant.array.astype(np.float32).view(np.uint32), array.view(np.uint32)):
            program.assumptions[fact] = None
            return narrow
    return None


def _has_denormals(array: np.ndarray, dtype: DType) -> bool:
    smallest = 2.0**-14 if dtype is f16 else 2.0**-126
    return bool(((np.abs(array) < smallest) & (array != 0)).any())


def _narrow(buffer: Buffer, dtype: DType, names: Names) -> Buffer | None:
    assert buffer.constant is not None
    with np.errstate(over="ignore"):
        array = np.asarray(buffer.constant.array).astype(dtype.numpy)
    if not np.isfinite(array.astype(np.float32)).all():
        return None
    name = names.take(f"{buffer.name}_{dtype}")
    return Buffer(name, dtype, buffer.shape, CONSTANT, Constant.of(array), buffer.provenance)
