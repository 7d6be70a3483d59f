"""pack_constants: packs constants into the form that their kernels need; equal constants are stored once.

That two are equal, although they are made from others, is a fact about weights and recorded. Those that go with
quantized tensors change with every training, and stay apart.

The call still sees a packed constant in the shape that the kind demands; only the kernel knows the real order. One with
fewer elements than that is seen as its first one everywhere.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...base.constant import Constant
from ...base.dims import Dim, static
from ...base.dtypes import SHORT
from ...base.tensor import dense_strides
from ...program.ir import CONSTANT, Buffer, Program, View
from ...program.taken_names import taken_names
from ..api import Context

Sources = frozenset[Buffer]


def pack_constants(program: Program, context: Context) -> None:
    names = taken_names(program)
    alike_by: dict[tuple[str, str], list[tuple[Buffer, Sources]]] = {}  # by packing and digest of the contents

    def keep(buffer: Buffer, sources: Sources, is_apart: bool) -> Buffer:
        found, other = equal(buffer, sources, is_apart), buffer.storage
        kept = found.storage
        found.storage = replace(kept, align=max(kept.align, other.align), slack=max(kept.slack, other.slack))
        return found

    def equal(buffer: Buffer, sources: Sources, is_apart: bool) -> Buffer:
        assert buffer.constant is not None
        alike = alike_by.setdefault((buffer.packing, buffer.constant.digest), [])
        for other, others in alike:
            fact = f"{buffer.name} equals {other.name}"
            if sources == others or other is buffer:
                return other
            if not is_apart and context.training.may_use(fact):
                program.assumptions[fact] = None
                return other
        alike.append((buffer, sources))
        return buffer

    for call in program.calls():
        kernel = context.registry[call.kernel]
        constants = {i: v.buffer.constant for i, v in enumerate(call.ins) if v.buffer.constant is not None}
        packed = kernel.pack(call, constants)
        packings = kernel.packing(call)
        is_apart = context.training.updatable or (bool(call.ins) and call.ins[0].buffer.dtype in SHORT)
        together = frozenset(v.buffer for i, v in enumerate(call.ins) if i in packed)  # tables take from several
        ins: list[View] = []
        for index, view in enumerate(call.ins):
            if index in packed:
                contents = Constant.of(packed[index])
                name = names.take(f"{view.buffer.name}_packed")
                buffer = Buffer(
                    name, contents.type.dtype, contents.type.shape, CONSTANT, contents, view.buffer.provenance
                )
                buffer.packing = packings[index]
                buffer.storage = view.buffer.storage
                is_joined = any(packed[index] is other for place, other in packed.items() if place != index)
                sources = together if is_joined else frozenset({view.buffer})
                ins.append(View(keep(buffer, sources, is_apart), view.shape, _strides(view, contents)))
            elif view.buffer.role == CONSTANT:
                sources = frozenset({view.buffer.packed_of or view.buffer})
                ins.append(replace(view, buffer=keep(view.buffer, sources, is_apart)))
            else:
                ins.append(view)
        call.packed_ranges = {index: found for index in packed if (found := _range(constants[index])) is not None}
        call.ins = tuple(ins)


def _strides(view: View, packed: Constant) -> tuple[Dim, ...]:
    """As if what is packed lay dense; it still has one element for all positions along the axes where it had."""
    sizes = tuple(1 if stride == 0 else size for size, stride in zip(view.shape, view.strides, strict=True))
    if packed.array.size < prod(map(static, sizes)):
        return (0,) * len(sizes)
    strides = dense_strides(sizes)
    return tuple(0 if old == 0 else new for old, new in zip(view.strides, strides, strict=True))


def _range(constant: Constant) -> tuple[int, int] | None:
    """Of integers of more than 8 bits: biases, multipliers, shifts."""
    if not constant.type.dtype.is_integer or constant.type.dtype.bits <= 8 or not constant.array.size:
        return None
    return int(constant.array.min()), int(constant.array.max())
