"""pack_low_bit_weights: int8 weights that fit into 4 bits are stored as int4 where flash comes first, or where the
target has a kernel with SIMD that unpacks them. Weights of at most 16 different values become indices into a table,
where a kernel can read one. The integers themselves do not change.

Both are facts about values, and recorded; so it makes no difference whether the model stores weights as int4 or int8,
or in a table of its own. Weights that anything else reads stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import i4, i8, i32
from ...base.names import Names
from ...codegen.int8.dot import PALETTE
from ...kernels.registry import PORTABLE
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Call, Program, reads, walk
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context

WEIGHTS = 1  # the operand
FEWEST = 4 * PALETTE  # weights that save more bytes than their values take


def pack_low_bit_weights(program: Program, context: Context) -> None:
    if context.target.prefer != Prefer.FLASH or context.training.updatable:
        return
    names, readers = taken_names(program), dict[Buffer, int]()
    for item in walk(program.body):
        for view in reads(item):
            readers[view.buffer] = readers.get(view.buffer, 0) + 1
    for call in program.calls():
        buffer = call.ins[WEIGHTS].buffer if len(call.ins) > WEIGHTS else None
        if buffer is None or buffer.role != CONSTANT or buffer.dtype is not i8 or readers[buffer] != 1:
            continue
        if isinstance(call.kind, Conv | Gemm) and call.kind.accumulator is i32 and buffer.constant is not None:
            weights = np.asarray(buffer.constant.array)
            if not _narrow(call, weights, names, program, context):
                _index(call, weights, program, context)


def _narrow(call: Call, weights: np.ndarray, names: Names, program: Program, context: Context) -> bool:
    view = call.ins[WEIGHTS]
    buffer, fact = view.buffer, f"every element of {view.buffer.name} fits 4 bits"
    if not weights.size or weights.min() < i4.low or weights.max() > i4.high or not context.training.may_use(fact):
        return False
    contents = Constant.of(weights.astype(i4.numpy))
    few = Buffer(names.take(f"{buffer.name}_i4"), i4, buffer.shape, CONSTANT, contents, buffer.provenance)
    narrow = replace(call, ins=(call.ins[0], replace(view, buffer=few), *call.ins[WEIGHTS + 1 :]))
    candidates = context.registry.choose(narrow, context.target).candidates
    if not candidates or candidates[0].kernel.isa == PORTABLE:
        return False
    program.assumptions[fact] = None
    call.ins = narrow.ins
    return True


def _index(call: Call, weights: np.ndarray, program: Program, context: Context) -> None:
    assert isinstance(call.kind, Conv | Gemm)
    values = set(np.unique(weights).tolist())
    fact = f"elements of {call.ins[WEIGHTS].buffer.name} take at most {PALETTE} values"
    if weights.size < FEWEST or len(values) > PALETTE or not context.training.may_use(fact):
        return
    found = replace(call, kind=replace(call.kind, palette=True))
    best = next(iter(context.registry.choose(found, context.target).candidates), None)
    added = best.kernel.indexed(replace(found, blocks=best.needs.blocks)) if best is not None else None
    if added is None or len(values | added) > PALETTE:
        return
    program.assumptions[fact] = None
    call.kind = found.kind
