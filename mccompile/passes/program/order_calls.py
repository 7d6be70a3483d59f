"""order_calls: the topological order of calls with the smallest peak of live bytes. Regions keep their place in the
line as one item."""

from __future__ import annotations

from ...kernels.api import Needs
from ...memory.order import Node, Tensor, best_order
from ...program.ir import CONSTANT, INPUT, Buffer, Call, Item, Program, reads, root, walk, writes
from ..api import Context


def order_calls(program: Program, context: Context) -> None:
    body = program.body
    touched = [_touched(item) for item in body]
    producers: dict[Buffer, list[int]] = {}
    consumers: dict[Buffer, list[int]] = {}
    for number, (read, written) in enumerate(touched):
        for buffer in written:
            producers.setdefault(buffer, []).append(number)
        for buffer in read:
            consumers.setdefault(buffer, []).append(number)
    outputs = {root(view.buffer)[0] for _, view in program.outputs}
    inputs = [buffer for _, buffer in program.inputs]
    tensors: list[Tensor] = []
    numbers: dict[Buffer, int] = {}
    for buffer in dict.fromkeys([*inputs, *producers, *consumers]):
        made = producers.get(buffer, [])
        if len(made) > 1:
            return  # several writers: their order matters in ways that this model does not know
        if buffer.role != CONSTANT:
            numbers[buffer] = len(tensors)
            needed_later = buffer in outputs or (context.keep_inputs and buffer.role == INPUT)
            producer = made[0] if made else None
            tensors.append(Tensor(buffer.max_bytes, producer, tuple(consumers.get(buffer, [])), needed_later))
    order = best_order([_node(item, numbers, context) for item in body], tensors)
    program.body = [body[number] for number in order]


def _node(item: Item, numbers: dict[Buffer, int], context: Context) -> Node:
    """What bind_storage will be able to do for this item, and its workspace."""
    if not isinstance(item, Call):
        return Node()
    needs = context.registry[item.kernel].match(item, context.target)
    over: tuple[int, ...] = ()
    if isinstance(needs, Needs):
        candidates = (item.ins[operand] for _, operand in needs.alias)
        over = tuple(sorted({numbers[v.buffer] for v in candidates if v.buffer in numbers and v.covers_buffer}))
    return Node(overwrites=over, workspace=item.scratch.max_bytes if item.scratch else 0)


def _touched(item: Item) -> tuple[set[Buffer], set[Buffer]]:
    """Buffers that an item reads and writes, with all that is inside of it."""
    read: set[Buffer] = set()
    written: set[Buffer] = set()
    for inner in walk([item]):
        read |= {view.buffer for view in reads(inner)}
        written |= {view.buffer for view in writes(inner)}
    return read - written, written
