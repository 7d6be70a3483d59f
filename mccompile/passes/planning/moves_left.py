"""Which calls of a finished program only move elements, and why they were not fused into other calls.

Transposes, slices and broadcasts are views and cost nothing; what is left are copies, each with a reason.
"""

from __future__ import annotations

from ...base.dims import upper
from ...base.provenance import Provenance
from ...base.records import dataclass
from ...kernels.api import Needs
from ...kinds.map import Map
from ...program.ir import CONSTANT, EXTERNAL, INPUT, Buffer, Call, Program, View
from ..api import Context


@dataclass(frozen=True)
class Move:
    provenance: Provenance
    bytes: int
    reason: str


def moves_left(program: Program, context: Context) -> list[Move]:
    """Copies, in the order in which they run."""
    readers: dict[Buffer, list[tuple[Call, int]]] = {}
    for call in program.calls():
        for index, view in enumerate(call.ins):
            readers.setdefault(view.buffer, []).append((call, index))
    outputs = {view.buffer for _, view in program.outputs}
    found = []
    for call in program.calls():
        if isinstance(call.kind, Map) and call.kind.is_copy:
            reason = _reason(call, readers, outputs, context)
            found.append(Move(call.provenance, call.outs[0].type.max_bytes, reason))
    return found


def _reason(call: Call, readers: dict[Buffer, list[tuple[Call, int]]], outputs: set[Buffer], context: Context) -> str:
    source, result = call.ins[0], call.outs[0]
    for reader, index in readers.get(result.buffer, []):
        needs = context.registry[reader.kernel].match(reader, context.target) if reader.kernel else None
        if isinstance(needs, Needs) and index in needs.dense and not source.is_dense:
            return f"{reader.kernel} reads a dense operand only"
    if _repeats(source):
        return "elements are repeated in memory"
    if result.buffer.overlap is not None and result.buffer.overlap.part:
        return "a part of a larger tensor, made elsewhere"
    if result.buffer in outputs:
        return "an output is stored in the order of ONNX"
    if source.buffer.role in (INPUT, EXTERNAL, CONSTANT):
        return f"it is of {'a constant' if source.buffer.role == CONSTANT else 'an input'}, which no call makes"
    if _order(source) != _order(result):
        return "another order of elements, and what makes them is read by others too, or cannot write them so"
    return "what makes the elements is read by others too"


def _repeats(view: View) -> bool:
    return any(stride == 0 and dim != 1 for dim, stride in zip(view.shape, view.strides, strict=True))


def _order(view: View) -> list[int]:
    """Axes with more than one element, in the order in which they lie in memory."""
    axes = [axis for axis, dim in enumerate(view.shape) if dim != 1]
    return sorted(axes, key=lambda axis: -abs(upper(view.strides[axis])))
