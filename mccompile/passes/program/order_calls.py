"""order_calls: the topological order of calls with the smallest peak of live bytes. A region keeps its place in the
order as one item.

Runs before anything is decided about memory, and again in bufferize, when the parts of concats have their places.
"""

from __future__ import annotations

from collections.abc import Callable

from ...kernels.api import Needs
from ...memory.order import Node, Tensor, best_order, results_first
from ...program.ir import (
    CONSTANT,
    EXTERNAL,
    INPUT,
    LASTING,
    Buffer,
    Call,
    Item,
    Measure,
    Program,
    View,
    reads,
    root,
    walk,
    writes,
)
from ...program.relocate import covers, disjoint
from ..api import Context


def order_calls(program: Program, context: Context) -> None:
    if _is_free(program, context):
        nodes, tensors = _model(program, context, lambda view: view.covers_buffer)
        program.unordered = program.body
        program.body = [program.body[number] for number in best_order(nodes, tensors)]


def results_first_order(program: Program, context: Context) -> list[Item]:
    """The items in an order that makes each result, such as a new weight, as soon as there is what it is made of."""
    if not _is_free(program, context):
        return program.body
    nodes, tensors = _model(program, context, covers)
    return [program.body[number] for number in results_first(nodes, tensors)]


def _is_free(program: Program, context: Context) -> bool:
    if any(tiles.count > 1 for tiles in context.memory.column_tiles):
        return False  # they run one after the other, each copied as soon as it is made
    if any(buffer.overlap and not buffer.overlap.part for buffer in program.buffers()):
        return False  # what is written over what is decided for this order
    return not any(isinstance(item, Measure) for item in walk(program.body))  # behind it is what depends on its size


def _model(program: Program, context: Context, is_whole: Callable[[View], bool]) -> tuple[list[Node], list[Tensor]]:
    """`is_whole`: may a result lie over the buffer of this view?"""
    written: dict[Buffer, list[tuple[int, View]]] = {}
    read: dict[Buffer, list[tuple[int, View]]] = {}
    for number, item in enumerate(program.body):
        inside = list(walk([item]))
        made = {base for inner in inside for view in writes(inner) for base in _around(view.buffer)}
        for inner in inside:
            for view in writes(inner):
                written.setdefault(view.buffer, []).append((number, view))
            for view in reads(inner):
                if view.buffer.role != CONSTANT and view.buffer not in made:
                    read.setdefault(view.buffer, []).append((number, view))
    inputs = [buffer for _, buffer in program.inputs]
    buffers = list(dict.fromkeys([*inputs, *written, *read]))
    parts: dict[Buffer, list[Buffer]] = {}
    for buffer in buffers:
        if buffer.overlap:
            parts.setdefault(buffer.overlap.base, []).append(buffer)
    outputs = {view.buffer for _, view in program.outputs}
    lasting = program.lasting_inputs(context.memory.keep_inputs)

    tensors: list[Tensor] = []
    numbers: dict[Buffer, int] = {}
    after: list[set[int]] = [set() for _ in program.body]
    for buffer in buffers:
        makers = sorted({number for number, _ in written.get(buffer, [])})
        around = _around(buffer)
        users = {number for base in around for number, _ in read.get(base, [])} | set(makers[1:])
        needed_later = any(base in outputs for base in around) or buffer.role == LASTING
        needed_later |= buffer in lasting
        own = max(0, buffer.max_bytes - sum(part.max_bytes for part in parts.get(buffer, [])))
        own *= buffer.role != EXTERNAL
        numbers[buffer] = len(tensors)
        if makers or buffer.role == INPUT:
            tensors.append(Tensor(own, makers[0] if makers else None, tuple(sorted(users)), needed_later))
        else:
            tensors.append(Tensor(0, None, (), False))
        for maker, view in written.get(buffer, []):
            for base in around:
                for user, seen in read.get(base, []):
                    if maker < user and not (base is buffer and disjoint(view, seen)):
                        after[user].add(maker)
                    elif user < maker and base is buffer and not disjoint(view, seen):
                        after[maker].add(user)
    nodes = [_node(item, numbers, context, after[number], is_whole) for number, item in enumerate(program.body)]
    return nodes, tensors


def _around(buffer: Buffer) -> list[Buffer]:
    """The buffer, and those that it is a part of."""
    found = [buffer]
    while found[-1].overlap:
        found.append(found[-1].overlap.base)
    return found


def _node(
    item: Item, numbers: dict[Buffer, int], context: Context, after: set[int], is_whole: Callable[[View], bool]
) -> Node:
    """What bufferize will be able to do for this item, and its workspace."""
    if not isinstance(item, Call):
        return Node(tuple(sorted(after)))
    needs = context.registry[item.kernel].match(item, context.target)
    over: tuple[int, ...] = ()
    if isinstance(needs, Needs) and all(
        root(view.buffer)[0] is view.buffer and view.type.count == view.buffer.type.count for view in item.outs
    ):
        candidates = (item.ins[operand] for _, operand in needs.alias)
        over = tuple(sorted({numbers[v.buffer] for v in candidates if v.buffer in numbers and is_whole(v)}))
    return Node(tuple(sorted(after)), over, item.scratch.max_bytes if item.scratch else 0)
