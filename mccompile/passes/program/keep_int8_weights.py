"""keep_int8_weights: weights that the model stores as int8 with a scale per channel stay int8 in the blob, where time
does not come first; sums are multiplied by the scales, in the epilogue of a product or by the recurrent layer itself.

Invariant: what anything but products and recurrent layers reads stays floats. Before `narrow_weights`, which takes what
is left; after `fuse_recurrent_inputs`, so that a layer's weights are found where they are used.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...base.dtypes import f32
from ...expr.ir import apply, operand, substitute
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...kinds.recurrent import Recurrent
from ...program.ir import CONSTANT, Buffer, Call, Program, View, reads, walk
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context

WEIGHTS = 1  # the operand


def keep_int8_weights(program: Program, context: Context) -> None:
    if context.target.prefer == Prefer.TIME:
        return
    names = taken_names(program)
    found = [(call, place, strides) for call in program.calls() for place, strides in _weights(call)]
    readers: dict[Buffer, int] = {}
    for item in walk(program.body):
        for view in reads(item):
            readers[view.buffer] = readers.get(view.buffer, 0) + 1
    for call, place, _ in found:
        readers[call.ins[place].buffer] -= 1
    made: dict[Buffer, list[Buffer]] = {}
    for call, place, strides in found:
        floats = call.ins[place].buffer
        if readers[floats] or floats.constant is None or floats.constant.origin is None:
            continue
        if floats not in made:
            parts = zip(("bytes", "scales"), floats.constant.origin, strict=True)
            made[floats] = [
                Buffer(names.take(f"{floats.name}_{what}"), c.type.dtype, c.type.shape, CONSTANT, c, floats.provenance)
                for what, c in parts
            ]
        narrow, scales = made[floats]
        _multiply(call, place, narrow, scales, strides)


def _weights(call: Call) -> list[tuple[int, tuple[int, ...]]]:
    """The operands that may be such weights, and how their scales lie along what they multiply."""
    kind = call.kind
    if isinstance(kind, Conv | Gemm) and kind.accumulator is f32 and kind.fixed == 2:  # zero points are not floats'
        places = [WEIGHTS]
    elif isinstance(kind, Recurrent) and kind.accumulator is f32:
        places = [kind.names.index(name) for name in ("r", "w") if name in kind.names]
    else:
        return []
    found = [(place, _strides(call, place)) for place in places]
    return [(place, strides) for place, strides in found if strides is not None]


def _strides(call: Call, place: int) -> tuple[int, ...] | None:
    view = call.ins[place]
    buffer = view.buffer
    if buffer.role != CONSTANT or buffer.constant is None or buffer.constant.origin is None or view.offset != 0:
        return None
    sizes = buffer.constant.origin[1].type.static_shape
    of_result = (0, 0) if isinstance(call.kind, Recurrent) else (0,) * len(call.outs[0].shape)
    if math.prod(sizes) == 1:
        return of_result
    axis = next(number for number, size in enumerate(sizes) if size > 1)
    step = math.prod(buffer.constant.type.static_shape[axis + 1 :])
    # For each kind of call: axes of the weights that may have scales, and the axis of the result that is theirs.
    if isinstance(call.kind, Recurrent):
        axes = {0: 0, 1: 1}
    elif isinstance(call.kind, Conv):
        axes = {0: 1}
    else:
        axes = {len(view.shape) - 1: len(of_result) - 1} | ({0: 0} if len(view.shape) == 3 else {})
    for of_weights, of_sums in axes.items():
        if (view.shape[of_weights], view.strides[of_weights]) == (sizes[axis], step):
            return tuple(int(number == of_sums) for number in range(len(of_result)))
    return None


def _multiply(call: Call, place: int, narrow: Buffer, scales: Buffer, strides: tuple[int, ...]) -> None:
    kind, weights = call.kind, replace(call.ins[place], buffer=narrow)
    ins = (*call.ins[:place], weights, *call.ins[place + 1 :])
    if isinstance(kind, Recurrent):
        call.kind = replace(kind, uses=(*kind.uses, f"{kind.names[place]}_scale"))
        call.ins = (*ins, View(scales, weights.shape[:2], strides))
        return
    assert isinstance(kind, Conv | Gemm)  # `_weights`
    extras = call.ins[kind.fixed :]
    total = apply("mul", operand(0, f32), operand(len(extras) + 1, f32))
    others = [operand(number, view.buffer.dtype) for number, view in enumerate(extras, 1)]
    epilogue = total if kind.epilogue is None else substitute(kind.epilogue, [total, *others])
    call.kind = replace(kind, epilogue=epilogue)
    call.ins = (*ins, View(scales, call.outs[0].shape, strides))
