"""order_calls: the topological order of calls with the smallest peak of live bytes. Regions keep their place in the line as one item."""

from __future__ import annotations

from ...memory.order import Tensor, best_order
from ...program.ir import CONSTANT, Buffer, Item, Program, reads, root, walk, writes


def order_calls(program: Program) -> None:
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
    tensors = []
    inputs = [buffer for _, buffer in program.inputs]
    for buffer in dict.fromkeys([*inputs, *producers, *consumers]):
        if buffer.role == CONSTANT:
            continue
        made = producers.get(buffer, [])
        if len(made) > 1:
            return  # several writers: their order matters in ways that this model does not know
        tensors.append(Tensor(buffer.max_bytes, made[0] if made else None, tuple(consumers.get(buffer, [])), buffer in outputs))
    depends: list[set[int]] = [set() for _ in body]
    for tensor in tensors:
        for consumer in tensor.consumers:
            if tensor.producer is not None and consumer != tensor.producer:
                depends[consumer].add(tensor.producer)
    order = best_order(len(body), [sorted(d) for d in depends], tensors)
    program.body = [body[number] for number in order]


def _touched(item: Item) -> tuple[set[Buffer], set[Buffer]]:
    """Buffers that an item reads and writes, with all that is inside of it."""
    read: set[Buffer] = set()
    written: set[Buffer] = set()
    for inner in walk([item]):
        read |= {view.buffer for view in reads(inner)}
        written |= {view.buffer for view in writes(inner)}
    return read - written, written
