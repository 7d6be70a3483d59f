"""few_bits: constant int8 weights that 4 bits hold are stored in these where flash comes first, and where a kernel
with instructions of the target unpacks them in its inner loop. Integers stay what they are.

That they fit is a fact about values, and recorded; so it makes no difference whether the model stores them as int4 or
int8. Weights that anything else reads stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import i4, i8, i32
from ...base.names import Names
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, Buffer, Call, Program, reads, walk
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context

WEIGHTS = 1  # the operand
PORTABLE = "c"


def few_bits(program: Program, context: Context) -> None:
    if context.target.prefer != Prefer.FLASH or context.training.updatable:
        return
    names, readers = taken_names(program), dict[Buffer, int]()
    for item in walk(program.body):
        for view in reads(item):
            readers[view.buffer] = readers.get(view.buffer, 0) + 1
    for call in program.calls():
        if isinstance(call.kind, Conv | Gemm) and call.kind.accumulator is i32:
            _narrow(call, readers, names, program, context)


def _narrow(call: Call, readers: dict[Buffer, int], names: Names, program: Program, context: Context) -> None:
    view = call.ins[WEIGHTS]
    buffer = view.buffer
    if buffer.role != CONSTANT or buffer.dtype is not i8 or buffer.constant is None or readers[buffer] != 1:
        return
    array, fact = buffer.constant.array, f"every element of {buffer.name} fits 4 bits"
    if not array.size or array.min() < i4.low or array.max() > i4.high:
        return
    if not context.training.may_use(fact):
        return
    contents = Constant.of(np.asarray(array).astype(i4.numpy))
    few = Buffer(names.take(f"{buffer.name}_i4"), i4, buffer.shape, CONSTANT, contents, buffer.provenance)
    narrow = replace(call, ins=(call.ins[0], replace(view, buffer=few), *call.ins[WEIGHTS + 1 :]))
    candidates = context.registry.choose(narrow, context.target).candidates
    if candidates and candidates[0].kernel.isa != PORTABLE:
        program.facts_used[fact] = None
        call.ins = narrow.ins
