"""plan_memory: turns the program into the frozen plan: functions, blob offsets, and a place in the arena for every
buffer.

Time runs over the items of the program in textual order; a buffer lives from the call that first writes it (model
inputs: from before the first call) to the last that reads it (model outputs: beyond the last). Buffers that overlap by
decision of bufferize are one block with a part for each, so the planner slides them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...base.dims import Dim, Symbol, static, upper
from ...base.dims import symbols as dim_symbols
from ...base.errors import InternalError
from ...base.names import Names, c_identifier
from ...base.records import replace
from ...kernels.registry import Registry
from ...kernels.work import phases
from ...kinds.fetch import Fetch
from ...memory.interval import Block, Placement, align_up, lower_bound, naive_size, peak
from ...memory.verify import verify as verify_placement
from ...plan.constants import Checked, Entry
from ...plan.copies import Awaited, Copied
from ...plan.handed import InRows
from ...plan.ir import (
    BLOB,
    STREAMS,
    Address,
    Arena,
    Argument,
    Branch,
    Function,
    Halt,
    Measured,
    Phase,
    Place,
    Plan,
    Repeat,
    RowRegion,
    Shared,
    Stage,
    State,
    Step,
    StepResult,
    Swap,
    Tensor,
    arena_base,
    is_arena,
    outside,
)
from ...plan.ir import Item as PlanItem
from ...plan.lives import Life
from ...plan.places import place_names
from ...plan.sizes import of_call
from ...plan.verify import verify as verify_plan
from ...program.ir import (
    CONSTANT,
    EXTERNAL,
    STREAM,
    Await,
    Buffer,
    Call,
    Carry,
    Copy,
    If,
    Item,
    Loop,
    Measure,
    Program,
    Rows,
    Stop,
    View,
    reads,
    root,
    walk,
)
from ...targets.api import Pool, Prefer, Target
from ..memory.constants import BLOB_ALIGN, constant_align
from ..memory.liveness import Span, blocks_of, liveness, unshared
from ..memory.pools import share_pools
from ..memory.sharing import sharing_problems
from .advancing import for_outputs, guarded
from .function_sizes import instance, share_functions
from .inside import FilledMemory, shown

LARGE = 1 << 16  # bytes of weights, beside which 1 KB more is little
LARGEST_ENUM = 1 << 31  # offsets from here on have no names: C's enumerators are ints
Planner = Callable[[Sequence[Block]], Placement]


def plan_memory(
    program: Program,
    registry: Registry,
    target: Target,
    prefix: str,
    planner: Planner,
    keep_inputs: bool = False,
    pools: Sequence[Pool] = (),
    show: bool = False,
    window: int = 0,
    advances: bool = False,
) -> Plan:
    """`planner` gives every block its offset; with `keep_inputs` nothing is laid over the model's inputs. `pools` are
    the memories there are, the fastest first; none: one arena. `show`: steps say what they leave in memory. `window`:
    the most bytes of constants that are in arenas together, where they are copied there. `advances`: a run can leave
    out what only outputs need."""
    lives = liveness(program, keep_inputs)
    blocks, owners = blocks_of(lives, target.align)
    pools = pools or (Pool("", None, 0),)
    arenas: list[Arena] = []
    at: dict[int, tuple[str, int]] = {}  # base and offset of every block
    full: dict[str, int] = {}  # when most is alive, by base
    for pool, share in zip(pools, share_pools(program, blocks, owners, pools, planner), strict=True):
        inside = [blocks[index] for index in share.members]
        broken = verify_placement(inside, share.placement)
        if broken:
            raise InternalError("the memory plan is wrong: " + "; ".join(broken[:5]))
        align = max([target.align, *(block.align for block in inside)])
        full[arena_base(pool.name)] = peak(inside).time
        bound = lower_bound(inside)
        speed = pool.rate, pool.latency_ns
        arenas.append(Arena(pool.name, share.placement.size, align, bound, pool.bytes, pool.copied, *speed))
        base = arena_base(pool.name)
        at |= {index: (base, offset) for index, offset in zip(share.members, share.placement.offsets, strict=True)}
    offsets = {buffer: (at[index][0], at[index][1] + shift) for buffer, (index, shift) in owners.items()}
    broken = sharing_problems(program, offsets, registry, target, keep_inputs)
    if broken:
        raise InternalError("the memory plan is wrong: " + "; ".join(broken[:5]))
    blob = _Blob(target)
    planner_ = _Planner(registry, prefix, offsets, blob)
    planner_.read |= {view.buffer for item in walk(program.body) for view in reads(item)}
    planner_.read |= {view.buffer for _, view in program.outputs}
    axes = {call.ins[0].buffer: call.kind.axis for call in program.calls() if isinstance(call.kind, Fetch)}
    planner_.fetched = {buffer: (name, axes[buffer]) for name, buffer in program.inputs if buffer in axes}
    given = {s for _, buffer in program.inputs for dim in buffer.shape for s in dim_symbols(dim)}
    planner_.shown = shown(program) if show else {}
    planner_.sizes, planner_.not_negative = set(given), list(program.not_negative)
    at_first = planner_.settled()
    symbols = Names()
    others = {*program.kept} | {name for phase in program.phases for name in phase.arguments}
    inputs = tuple(
        planner_.tensor("input", name, buffer.whole(), symbols) for name, buffer in program.inputs if name not in others
    )
    handed_out = {name for phase, _ in program.runs() for name in phase.outputs}
    outputs = tuple(
        planner_.tensor("output", name, view, symbols) for name, view in program.outputs if name in handed_out
    )
    items = tuple(planner_.item(item) for item in program.body)
    if advances:
        items = guarded(items, for_outputs(program))
    functions = tuple(planner_.functions.values())
    if target.prefer == Prefer.FLASH:
        items, functions = share_functions(items, functions, planner_.names, prefix)
    kept = _states(program, planner_, symbols)
    plan = Plan(
        name=program.name,
        prefix=prefix,
        build=target.build,
        inputs=inputs,
        outputs=outputs,
        items=items,
        functions=functions,
        entries=tuple(blob.entries),
        data_bytes=blob.size,
        arenas=tuple(arenas),
        arena_naive=naive_size(unshared(program, lives, target.align)),
        arena_by_calls=program.call_by_call or sum(arena.bytes for arena in arenas),
        copied_bound=program.copied_bound,
        lives=tuple(_life(b, span, *offsets[b], full) for b, span in lives.items()),
        assumptions=tuple(program.assumptions),
        given=tuple(sorted(given)),
        not_negative=at_first,
        states=tuple(kept.values()),
        advances=advances,
        phases=_phases(program, planner_, kept),
        measured=tuple(dict.fromkeys(item.symbol for item in walk(program.body) if isinstance(item, Measure))),
        streams=len(planner_.streams),
        checks=tuple(planner_.checks),
        window=window,
        lists_constants=target.prefer != Prefer.FLASH,
        crc_table=target.prefer == Prefer.TIME and blob.size >= LARGE,
    )
    verify_plan(plan)
    return plan


def _states(program: Program, planner: _Planner, symbols: Names) -> dict[str, State]:
    """What is kept, by name: in the order of `states`, then what no run changes."""
    buffers, views, found = dict(program.inputs), dict(program.outputs), dict[str, State]()
    stored = {name for phase in program.phases for name in phase.stored}
    for name in dict.fromkeys((*program.states, *program.kept)):
        tensor = planner.tensor("state", name, buffers[name].whole(), symbols)
        changed = name in program.states and not program.phases
        made = planner.address(views[program.states[name]]) if changed else tensor.address
        first = program.initial.get(name)
        begins = planner.address(first.whole()) if first is not None else None
        found[name] = State(tensor, made, begins, begins is not None or name in stored)
    return found


def _phases(program: Program, planner: _Planner, kept: Mapping[str, State]) -> tuple[Phase, ...]:
    buffers, views, found = dict(program.inputs), dict(program.outputs), list[Phase]()
    for phase in program.phases:
        states = (replace(kept[before], made=planner.address(views[after])) for before, after in phase.states.items())
        names = Names()
        arguments = (planner.tensor("argument", name, buffers[name].whole(), names) for name in phase.arguments)
        after = kept[phase.after].tensor.address if phase.after else None
        found.append(Phase(phase.name, phase.items, tuple(states), phase.inputs, tuple(arguments), after))
    return tuple(found)


def _life(buffer: Buffer, span: Span, base: str, offset: int, full: Mapping[str, int]) -> Life:
    life = Life(buffer.name, span.start, span.end, offset, offset + buffer.max_bytes, base, idle=tuple(span.idle))
    return replace(life, at_peak=life.at(full[base]) and buffer.max_bytes > 0)


class _Blob:
    """Constants in order of first use, each aligned; the same buffer is laid down once, one without elements never."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.entries: list[Entry] = []
        self.offsets: dict[Buffer, int] = {}
        self.size = 0
        self.names = Names()

    def place(self, buffer: Buffer, first: bool = False) -> int:
        """`first`: of those that a copy brings."""
        if buffer not in self.offsets and buffer.max_bytes:
            assert buffer.constant is not None
            offset = align_up(self.size, BLOB_ALIGN if first else constant_align(buffer, self.target))
            self.offsets[buffer] = offset
            self.size = offset + buffer.max_bytes
            self.entries.append(Entry(self.names.take(buffer.name), offset, buffer.constant, buffer.packing))
        return self.offsets.get(buffer, 0)


class _Planner:
    def __init__(self, registry: Registry, prefix: str, offsets: dict[Buffer, tuple[str, int]], blob: _Blob) -> None:
        self.registry, self.prefix, self.offsets, self.blob = registry, prefix, offsets, blob
        symbols = place_names(prefix, (buffer.name for buffer in offsets))
        self.places = {
            buffer: Place(symbol, begin, buffer.name, buffer.max_bytes)
            for symbol, (buffer, (_, begin)) in zip(symbols, offsets.items(), strict=True)
            if begin < LARGEST_ENUM
        }
        self.sizes: set[Symbol] = set()
        self.not_negative: list[Dim] = []
        self.names = Names()
        self.functions: dict[object, Function] = {}
        self.pointers: dict[Buffer, str] = {}  # in loops: what lies where a pointer variable says
        self.times = 1  # how often a step runs
        self.copies: dict[Copy, Copied] = {}
        self.swaps = self.shared = self.steps = 0
        self.shown: Mapping[int, tuple[FilledMemory, ...]] = {}
        self.outside: dict[Buffer, str] = {}  # inputs and outputs that are told by pointer
        self.fetched: dict[Buffer, tuple[str, int]] = {}  # inputs that the program gives, and the axes of their rows
        self.streams: dict[Buffer, int] = {}
        self.checks: dict[Checked, None] = {}  # in order, each once
        self.read: set[Buffer] = set()  # by anybody; nothing else has to be brought to its place after a loop

    def item(self, item: Item) -> PlanItem:
        if isinstance(item, If):
            then = tuple(self.item(inner) for inner in item.then)
            otherwise = tuple(self.item(inner) for inner in item.otherwise)
            return Branch(self.argument("condition", item.condition, False), then, otherwise, item.provenance)
        if isinstance(item, Loop):
            return self.loop(item)
        if isinstance(item, Measure):
            self.sizes.add(item.symbol)
            return Measured(item.symbol, self.argument("size", item.source, False), item.provenance, self.settled())
        if isinstance(item, Copy):
            return self.copy(item)
        if isinstance(item, Await):
            return Awaited(self.copies[item.copy])
        if isinstance(item, Stop):
            return Halt(item.why, item.provenance, item.status)
        if isinstance(item, Rows):
            stages = (Stage(self.step(stage.call), stage.height, stage.step, stage.pulls) for stage in item.stages)
            return RowRegion(tuple(stages), item.provenance)
        return self.step(item)

    def copy(self, copy: Copy) -> Copied:
        source = self.blob.place(copy.parts[0], first=True)
        for part in copy.parts:
            if self.blob.place(part) - source != root(part)[1] - root(copy.to)[1]:
                raise InternalError(f"{part} is not where its copy expects it in the blob")
        base, offset = self.offsets[copy.to]
        self.copies[copy] = Copied(source, base, offset, copy.to.max_bytes, copy.provenance)
        return self.copies[copy]

    def settled(self) -> tuple[Dim, ...]:
        """What must not be negative, as far as it follows from the sizes that are known by now; each once."""
        found = tuple(dim for dim in self.not_negative if dim_symbols(dim) <= self.sizes)
        self.not_negative = [dim for dim in self.not_negative if dim not in found]
        return found

    def loop(self, loop: Loop) -> Repeat:
        trips = self.argument("trips", loop.trips, False) if isinstance(loop.trips, View) else loop.trips
        known = loop.trips if isinstance(loop.trips, int) and loop.condition is None else None
        outside, times = dict(self.pointers), self.times
        swaps = tuple(swap for carry in loop.carries if (swap := self.swap(carry, known)) is not None)
        condition = self.argument("condition", loop.condition, False) if loop.condition is not None else None
        self.times *= known or 1
        items = tuple(self.item(inner) for inner in loop.body)
        self.pointers, self.times = outside, times
        return Repeat(loop.counter.name, trips, condition, swaps, items, loop.provenance)

    def swap(self, carry: Carry, trips: int | None) -> Swap | None:
        """The pointers for what a loop carries; None where one piece of memory is enough."""
        first, second, last = (self.address(buffer.whole()) for buffer in (carry.now, carry.next, carry.last))
        if first == second == last:
            return None
        if first != second:
            number, self.swaps = self.swaps, self.swaps + 1
            self.pointers |= {carry.now: f"now{number}", carry.next: f"next{number}"}
        end = None if trips is None else second if trips % 2 else first
        names = self.pointers.get(carry.now, ""), self.pointers.get(carry.next, "")
        is_part = carry.last.overlap is not None and carry.last.overlap.part
        settled = end == last or not (is_part or carry.last in self.read)
        return Swap(*names, first, second, carry.now.max_bytes, last, settled)

    def step(self, call: Call) -> Step:
        kernel = self.registry[call.kernel]
        outs, ins = kernel.parameter_names(call)
        arguments = [self.argument(role, view, True) for role, view in zip(outs, call.outs, strict=True)]
        arguments += [self.argument(role, view, False) for role, view in zip(ins, call.ins, strict=True)]
        if call.scratch is not None:
            arguments.append(self.argument("scratch", call.scratch.whole(), True))
        by_rows = call.rows is not None
        aliased = frozenset(
            role for a in arguments if a.written for b in arguments if _meet(a, b, by_rows) for role in (a.role, b.role)
        )
        types = tuple((a.role, a.type.dtype, a.written) for a in arguments)
        key = (instance(kernel, call), types, aliased, of_call(call), tuple(kernel.sizes(call).items()))
        if key not in self.functions:
            name = self.names.take(c_identifier(f"{self.prefix}_{kernel.label(call)}"))
            self.functions[key] = Function(name, kernel, call, aliased, of_call(call))
        shared, cuts = None, tuple[int, ...]()
        if call.workers > 1:
            barrier = kernel.barrier(call)
            pieces = phases(kernel.units(call), call.workers, barrier)
            if call.in_turn:
                cuts = (0, *(end for phase in pieces for _, end in phase))
            else:
                workspace = call.scratch.max_bytes // call.workers if call.scratch is not None and not barrier else 0
                shared = Shared(self.shared, pieces, workspace)
                self.shared += len(shared.phases)
        self.check(call)
        macs = upper(call.macs) * self.times
        number, self.steps = self.steps, self.steps + 1
        made = tuple(self.made(each) for each in self.shown.get(id(call), ()))
        if isinstance(call.kind, Fetch):
            name, _ = self.fetched[call.ins[0].buffer]
            made = tuple(replace(each, name=name, is_input=True) for each in made[:1])
        function = self.functions[key]
        step = Step(call.kind.name, function, tuple(arguments), macs, call.provenance, shared, cuts)
        return replace(step, number=number, made=made)

    def made(self, shown: FilledMemory) -> StepResult:
        view, place = shown.view, self.address(shown.view)
        return StepResult(
            shown.name, shown.is_value, place, view.type, view.strides, shown.also, shown.axis, view.lines
        )

    def check(self, call: Call) -> None:
        """Has init check what kernels trust of constants."""
        for view in call.ins:
            if view.buffer.role == CONSTANT and view.buffer.within is not None:
                count, place = static(view.buffer.type.count), self.blob.place(view.buffer)
                self.checks[Checked("within", view.buffer.dtype, (place,), count, view.buffer.within)] = None
        for check in call.kind.checks([view.type for view in call.ins], [view.type for view in call.outs]):
            views = [call.ins[operand] for operand in check.operands]
            if all(view.buffer.role == CONSTANT for view in views):
                dtype = views[0].buffer.dtype
                low, high = views[0].byte_range
                count = (high - low) // dtype.nbytes(1)
                offsets = tuple(self.blob.place(view.buffer) + view.byte_range[0] for view in views)
                self.checks[Checked(check.function, dtype, offsets, count, check.numbers)] = None

    def argument(self, role: str, view: View, written: bool) -> Argument:
        address = self.address(view)
        low, high = view.byte_range
        _, begin = self.place(view.buffer)
        over_read = 0 if written else view.buffer.storage.slack
        return Argument(role, address, view.type, begin + low, begin + high, written, over_read)

    def place(self, buffer: Buffer) -> tuple[str, int]:
        """Base and offset of a buffer's address."""
        if buffer.role == CONSTANT and not buffer.overlap:
            return BLOB, self.blob.place(buffer)
        if buffer.role == STREAM:
            return STREAMS, 8 * self.streams.setdefault(buffer, len(self.streams))
        base, shift = buffer, 0
        while base.overlap and base not in self.pointers:
            shift += base.overlap.offset
            base = base.overlap.base
        if base in self.pointers:
            return self.pointers[base], shift
        return (self.outside[base], shift) if base.role == EXTERNAL else self.offsets[buffer]

    def address(self, view: View) -> Address:
        base, begin = self.place(view.buffer)
        offset: Dim = view.offset * view.buffer.dtype.bits // 8
        return Address(base, begin + offset, self.places.get(view.buffer) if is_arena(base) else None)

    def tensor(self, way: str, name: str, view: View, symbols: Names) -> Tensor:
        symbol, buffer = symbols.take(c_identifier(name)), view.buffer
        if buffer.role != EXTERNAL:
            return Tensor(name, symbol, view.type, self.address(view))
        self.outside[buffer] = outside(way, symbol)
        if buffer in self.fetched:
            _, axis = self.fetched[buffer]
            count = static(buffer.shape[axis])
            rows = InRows(axis, count, buffer.type.max_bytes // count)
            return Tensor(name, symbol, view.type, self.address(view), room=buffer.type.max_bytes, rows=rows)
        align = max(buffer.storage.align, buffer.dtype.bits // 8, 1)
        return Tensor(name, symbol, view.type, self.address(view), align, buffer.max_bytes)


def _meet(a: Argument, b: Argument, by_rows: bool) -> bool:
    """Do two arguments share bytes in one call, where the first is written? Empty ones at one address count too:
    compilers warn of them. By rows, a result that begins before an operand keeps away from the rows that it reads."""
    if a is b or a.address.base != b.address.base or (by_rows and a.low < b.low):
        return False
    return a.address == b.address or (a.low < b.high and b.low < a.high)
