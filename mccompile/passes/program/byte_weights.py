"""byte_weights: weights that the model stores as bytes with a scale per channel stay bytes in the blob, where time does
not come first; sums are multiplied with the scales.

Invariant: what anything but products reads stays floats. Before `narrow_weights`, which takes what is left.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...base.dtypes import f32
from ...base.names import Names
from ...expr.ir import apply, operand, substitute
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Call, Program, View, reads, walk
from ..api import Context

WEIGHTS = 1  # the operand


def byte_weights(program: Program, context: Context) -> None:
    if context.target.prefer == "time":
        return
    names = Names()
    for buffer in program.buffers():
        names.take(buffer.name)
    found = [(call, strides) for call in program.calls() if (strides := _strides(call)) is not None]
    readers: dict[Buffer, int] = {}
    for item in walk(program.body):
        for view in reads(item):
            readers[view.buffer] = readers.get(view.buffer, 0) + 1
    for call, _ in found:
        readers[call.ins[WEIGHTS].buffer] -= 1
    made: dict[Buffer, list[Buffer]] = {}
    for call, strides in found:
        view = call.ins[WEIGHTS]
        floats = view.buffer
        if readers[floats] or floats.constant is None or floats.constant.origin is None:
            continue
        if floats not in made:
            parts = zip(("bytes", "scales"), floats.constant.origin, strict=True)
            made[floats] = [
                Buffer(names.take(f"{floats.name}_{what}"), c.type.dtype, c.type.shape, CONSTANT, c, floats.provenance)
                for what, c in parts
            ]
        bytes, scales = made[floats]
        _multiply(call, replace(view, buffer=bytes), View(scales, call.outs[0].shape, strides))


def _strides(call: Call) -> tuple[int, ...] | None:
    """How the scales of the call's weights lie along its result; None where it has no such weights."""
    kind, view = call.kind, call.ins[WEIGHTS] if len(call.ins) > WEIGHTS else None
    if not isinstance(kind, Conv | Gemm) or view is None or kind.accumulator is not f32:
        return None
    buffer = view.buffer
    if buffer.role != CONSTANT or buffer.constant is None or buffer.constant.origin is None or view.offset != 0:
        return None
    if kind.fixed > 2:
        return None  # zero points, which floats do not have
    sizes = buffer.constant.origin[1].type.static_shape
    strides = [0] * len(call.outs[0].shape)
    if math.prod(sizes) > 1:
        axis = next(number for number, size in enumerate(sizes) if size > 1)
        of_weights, of_result = (0, 1) if isinstance(kind, Conv) else (-1, -1)
        step = math.prod(buffer.constant.type.static_shape[axis + 1 :])
        if (view.shape[of_weights], view.strides[of_weights]) != (sizes[axis], step):
            return None
        strides[of_result] = 1
    return tuple(strides)


def _multiply(call: Call, weights: View, scales: View) -> None:
    kind = call.kind
    assert isinstance(kind, Conv | Gemm)  # `_strides`
    extras = call.ins[kind.fixed :]
    total = apply("mul", operand(0, f32), operand(len(extras) + 1, f32))
    others = [operand(number, view.buffer.dtype) for number, view in enumerate(extras, 1)]
    epilogue = total if kind.epilogue is None else substitute(kind.epilogue, [total, *others])
    call.kind = replace(kind, epilogue=epilogue)
    call.ins = (*call.ins[:WEIGHTS], weights, *call.ins[WEIGHTS + 1 :], scales)
