"""plan_memory: from the program to the frozen plan: functions, blob offsets, and a place in the arena for every buffer.

Time runs over the items of the program in textual order; a buffer lives from the call that first writes it (model
inputs: from before the first call) to the last that reads it (model outputs: beyond the last). Buffers that overlap by
decision of bind_storage are one block with a part for each, so the planner slides them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..base.dims import Dim, upper
from ..base.errors import InternalError
from ..base.names import Names, c_identifier
from ..kernels.registry import Registry
from ..memory.interval import Block, Part, Placement, glue, lower_bound, naive_size, peak
from ..memory.verify import verify as verify_placement
from ..plan.ir import ARENA, BLOB, Address, Argument, Branch, Entry, Function, Life, Plan, Step, Tensor
from ..plan.ir import Item as PlanItem
from ..plan.verify import verify as verify_plan
from ..program.ir import CONSTANT, Buffer, Call, If, Item, Program, View, reads, root, walk, writes
from ..targets.api import Target

BLOB_ALIGN = 64  # of every constant, as runtime_c/SPEC.md says
Planner = Callable[[Sequence[Block]], Placement]


def plan_memory(
    program: Program, registry: Registry, target: Target, prefix: str, planner: Planner, keep_inputs: bool = False
) -> Plan:
    """`planner` gives every block its offset; with `keep_inputs` nothing is laid over the model's inputs."""
    lives = _lives(program, keep_inputs)
    blocks, owners = _blocks(lives, target.align)
    placement = planner(blocks)
    broken = verify_placement(blocks, placement)
    if broken:
        raise InternalError("the memory plan is wrong: " + "; ".join(broken[:5]))
    offsets = {buffer: placement.offsets[index] + shift for buffer, (index, shift) in owners.items()}
    most = peak(blocks)
    blob = _Blob()
    planner_ = _Planner(registry, prefix, offsets, blob)
    items = tuple(planner_.item(item) for item in program.body)
    symbols = Names()
    inputs = tuple(planner_.tensor(name, buffer.whole(), symbols) for name, buffer in program.inputs)
    outputs = tuple(planner_.tensor(name, view, symbols) for name, view in program.outputs)
    plan = Plan(
        name=program.name,
        prefix=prefix,
        target=target.name,
        inputs=inputs,
        outputs=outputs,
        items=items,
        functions=tuple(planner_.functions.values()),
        entries=tuple(blob.entries),
        data_bytes=blob.size,
        arena_bytes=placement.size,
        arena_align=max([target.align, *(block.align for block in blocks)]),
        arena_bound=lower_bound(blocks),
        arena_naive=naive_size([b for buffer in lives for b in (_alone(buffer, target.align),)]),
        lives=tuple(
            Life(b.name, span.start, span.end, offsets[b], offsets[b] + b.max_bytes) for b, span in lives.items()
        ),
        at_peak=most.names,
        facts_used=tuple(program.facts_used),
    )
    verify_plan(plan)
    return plan


@dataclass
class _Span:
    start: int
    end: int  # exclusive


def _lives(program: Program, keep_inputs: bool) -> dict[Buffer, _Span]:
    """When each buffer of the arena is alive. Time 0 is before the first call, when the inputs are filled."""
    spans: dict[Buffer, _Span] = {buffer: _Span(0, 1) for _, buffer in program.inputs}

    def touch(buffer: Buffer, time: int) -> None:
        if buffer.role == CONSTANT:
            return
        span = spans.setdefault(buffer, _Span(time, time + 1))
        span.end = max(span.end, time + 1)

    time = 0
    for item in walk(program.body):
        time += 1
        for view in (*reads(item), *writes(item)):
            touch(view.buffer, time)
        if isinstance(item, Call) and item.scratch is not None:
            touch(item.scratch, time)
    for _, view in program.outputs:
        touch(view.buffer, time + 1)
    if keep_inputs:
        for _, buffer in program.inputs:
            touch(buffer, time + 1)
    parts = [buffer for buffer in spans if buffer.overlap and buffer.overlap.part]
    for buffer in parts:
        base = buffer
        while base.overlap and base.overlap.part:  # a part holds its bytes as long as anybody needs the whole
            base = base.overlap.base
            if base in spans:
                spans[buffer].end = max(spans[buffer].end, spans[base].end)
    return spans


def _alone(buffer: Buffer, align: int) -> Block:
    return Block(buffer.name, (Part(0, 1, 0, buffer.max_bytes),), max(align, buffer.storage.align))


def _blocks(lives: dict[Buffer, _Span], align: int) -> tuple[list[Block], dict[Buffer, tuple[int, int]]]:
    """One block per root, and for every buffer its block and its distance from the block's address."""
    groups: dict[Buffer, list[Buffer]] = {}
    for buffer in lives:
        groups.setdefault(root(buffer)[0], []).append(buffer)
    blocks: list[Block] = []
    owners: dict[Buffer, tuple[int, int]] = {}
    for base, members in groups.items():
        parts = []
        for member in members:
            shift = root(member)[1]
            span = lives[member]
            parts.append(Part(span.start, span.end, shift, shift + member.max_bytes))
        needed = max([align, *(m.storage.align for m in members)])
        block, moved = glue(base.name, parts, needed)
        for member in members:
            owners[member] = (len(blocks), root(member)[1] + moved)
        blocks.append(block)
    return blocks, owners


class _Blob:
    """Constants in order of first use, each aligned; the same buffer is laid down once."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.offsets: dict[Buffer, int] = {}
        self.size = 0
        self.names = Names()

    def place(self, buffer: Buffer) -> int:
        if buffer not in self.offsets:
            assert buffer.constant is not None
            offset = -(-self.size // BLOB_ALIGN) * BLOB_ALIGN
            self.offsets[buffer] = offset
            self.size = offset + buffer.max_bytes
            self.entries.append(Entry(self.names.take(buffer.name), offset, buffer.constant, buffer.packing))
        return self.offsets[buffer]


class _Planner:
    def __init__(self, registry: Registry, prefix: str, offsets: dict[Buffer, int], blob: _Blob) -> None:
        self.registry, self.prefix, self.offsets, self.blob = registry, prefix, offsets, blob
        self.names = Names()
        self.functions: dict[object, Function] = {}

    def item(self, item: Item) -> PlanItem:
        if isinstance(item, If):
            then = tuple(self.item(inner) for inner in item.then)
            otherwise = tuple(self.item(inner) for inner in item.otherwise)
            return Branch(self.argument("condition", item.condition, False), then, otherwise, item.provenance)
        return self.step(item)

    def step(self, call: Call) -> Step:
        kernel = self.registry[call.kernel]
        outs, ins = kernel.parameter_names(call)
        arguments = [self.argument(role, view, True) for role, view in zip(outs, call.outs, strict=True)]
        arguments += [self.argument(role, view, False) for role, view in zip(ins, call.ins, strict=True)]
        if call.scratch is not None:
            arguments.append(self.argument("scratch", call.scratch.whole(), True))
        aliased = frozenset(role for a in arguments for b in arguments if _meet(a, b) for role in (a.role, b.role))
        context = kernel.context(call)
        types = tuple((a.role, a.type.dtype, a.written) for a in arguments)
        key = (kernel.id, repr(sorted(context.items(), key=lambda pair: pair[0])), types, aliased)
        if key not in self.functions:
            name = self.names.take(c_identifier(f"{self.prefix}_{kernel.label(call)}"))
            self.functions[key] = Function(name, kernel, call, aliased)
        macs = call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs])
        return Step(call.kind.name, self.functions[key], tuple(arguments), upper(macs), call.provenance)

    def argument(self, role: str, view: View, written: bool) -> Argument:
        address = self.address(view)
        static_sizes = all(isinstance(d, int) for d in (*view.shape, *view.strides, view.offset))
        low, high = view.byte_range if static_sizes else (0, view.buffer.max_bytes)
        begin = self.base(view.buffer)
        return Argument(role, address, view.type, begin + low, begin + high, written)

    def base(self, buffer: Buffer) -> int:
        return self.blob.place(buffer) if buffer.role == CONSTANT else self.offsets[buffer]

    def address(self, view: View) -> Address:
        bits = view.buffer.dtype.bits
        offset: Dim = view.offset * bits // 8
        return Address(BLOB if view.buffer.role == CONSTANT else ARENA, self.base(view.buffer) + offset)

    def tensor(self, name: str, view: View, symbols: Names) -> Tensor:
        return Tensor(name, symbols.take(c_identifier(name)), view.type, self.address(view))


def _meet(a: Argument, b: Argument) -> bool:
    """Do two arguments share bytes, one of them written? Empty ones at one address count too: compilers warn of
    them."""
    if a is b or a.address.base != b.address.base or not a.written:
        return False
    return a.address == b.address or (a.low < b.high and b.low < a.high)
