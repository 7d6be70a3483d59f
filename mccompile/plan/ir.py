"""Plan IR: frozen. Steps and regions whose arguments are addresses.

An address is a base (memory pool, blob, external pointer) and a byte offset: an int, or an expression over dimension
variables and loop counters. Invariant: nothing here can change, so what was verified stays true until it is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import accumulate

from ..base.column_tiles import ColumnTiles
from ..base.dims import Dim, Symbol, Symbolic
from ..base.portable import PortableStep
from ..base.provenance import Provenance
from ..base.records import cached_property, dataclass, replace
from ..base.streaming import Streamed
from ..base.tensor import Shape, TensorType
from ..kernels.api import Kernel
from ..program.ir import Call
from ..program.pull import Pull
from ..targets.api import Build
from .constants import Checked, Entry
from .copies import Awaited, Copied
from .handed import InRows, Quantized, Table
from .lives import Life
from .partition import Partition

ARENA, BLOB, STREAMS = "arena", "blob", "streams"


def arena_base(pool: str) -> str:
    """The base of addresses in a pool, and its pointer's name in the model's struct; without pools of the arena."""
    return f"{ARENA}_{pool}" if pool else ARENA


def is_arena(base: str) -> bool:
    return base == ARENA or base.startswith(f"{ARENA}_")


@dataclass(frozen=True)
class Place:
    """A buffer of an arena, for those who read the C."""

    symbol: str  # what C calls the offset at which it begins:
    begin: int
    name: str
    bytes: int


@dataclass(frozen=True)
class Address:
    base: str  # that of an arena, BLOB, STREAMS, the name of a pointer variable of a loop, or a field: see outside()
    offset: Dim  # bytes
    place: Place | None = field(default=None, compare=False)  # the buffer that it lies in, in an arena


@dataclass(frozen=True)
class Argument:
    """A pointer that a step passes: where its first element lies, and which bytes it may touch from there."""

    role: str  # name of the C parameter
    address: Address
    type: TensorType
    low: int  # first byte touched, counted from the base; at the upper bounds of all symbols
    high: int  # one past the last
    written: bool
    over_read: int = 0  # bytes behind them that it may read, too, whatever they are


@dataclass(frozen=True)
class Function:
    """One C function: a kernel instance, made for one call and used by all calls that would give the same text."""

    name: str
    kernel: Kernel
    call: Call
    aliased: frozenset[str]  # parameters that may overlap another one: emitted without restrict
    sizes: tuple[str, ...] = ()  # what it takes besides pointers: sizes that are known only at run time, by name
    table_c: str = ""  # not empty: it reads sizes from a table of such numbers
    body: str = ""  # the C function as `emit.kernels.marked` gives it, where the kernel prints another one for the call
    constants: tuple[str, ...] = ()  # sizes that the body declares

    @cached_property
    def unpassed(self) -> frozenset[str]:
        """Operands that it is not given. Kernels may have to print their tiles to say so."""
        return self.kernel.unpassed(self.call)


@dataclass(frozen=True)
class Shared:
    """How workers share a step: each computes one piece, from begin to end, of each phase. A phase starts when the one
    before it is done."""

    number: int  # of the first phase among those of all such steps
    phases: tuple[tuple[tuple[int, int], ...], ...]
    workspace: int  # bytes from that of one piece to that of the next; 0: there is none, or one for all

    @property
    def workers(self) -> int:
        return max(len(pieces) for pieces in self.phases)


@dataclass(frozen=True)
class StepResult:
    """What lies in memory once a step has run. Element (i, j, ...) lies `i*strides[0] + j*strides[1] + ...` elements
    behind the address."""

    name: str
    is_value: bool  # is that a tensor of the model's file? Else it is a name of ours
    address: Address
    type: TensorType
    strides: Shape
    also: tuple[str, ...] = ()  # other tensors of the file in the same memory
    axis: int | None = None  # where only the newest rows are there: along which they go,
    lines: int = 0  # and so many of them; row y is row y % lines. 0: all of them
    is_input: bool = False  # that the program gives in this run

    @property
    def reach(self) -> Dim:
        """Elements from the first to the last, where there are any."""
        return sum(((dim - 1) * stride for dim, stride in zip(self.type.shape, self.strides, strict=True)), 1)


@dataclass(frozen=True)
class Step:
    op: str  # kind
    function: Function
    arguments: tuple[Argument, ...]
    macs: int
    provenance: Provenance
    shared: Shared | None = None  # by several workers
    cuts: tuple[int, ...] = ()  # of its work, between slices of the run; with both ends. Empty: it is one slice
    table: Table | None = None  # for a function that reads sizes
    number: int = 0  # among all steps, in the order in which they are written down
    timed: bool = False  # how long it takes is counted
    ticks: bool = False  # a function of the program is told when it ends
    made: tuple[StepResult, ...] = ()  # complete once it, or its region of rows, has run; only to be dumped
    cycles: float = 0.0  # estimated, where a memory is copied

    @property
    def failure(self) -> str:
        """The status with which a run ends where it fails; nothing where it cannot."""
        return self.function.kernel.failure(self.function.call)

    @property
    def arena_ranges(self) -> dict[str, tuple[int, int]]:
        """By base, the bytes of each arena between the first and the last that the step touches."""
        found: dict[str, tuple[int, int]] = {}
        for a in self.arguments:
            if is_arena(a.address.base) and a.high > a.low:
                low, high = found.get(a.address.base, (a.low, a.high))
                found[a.address.base] = min(low, a.low), max(high, a.high)
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class Branch:
    """Runs `then` where the bool at `condition` is true, or outputs are read (None), else `otherwise`."""

    condition: Argument | None
    then: tuple[Item, ...]
    otherwise: tuple[Item, ...]
    provenance: Provenance


@dataclass(frozen=True)
class Swap:
    """Two pieces of memory that a loop takes turns with: pointer variables, which change places after every trip.
    Afterwards what `now` points at is brought to `last`, if it is not there. Where one piece is enough it has no name,
    and does not change."""

    now: str  # names of the pointers: bases of addresses in the body
    next: str
    first: Address  # where `now` points before the first trip, and `next`
    second: Address
    bytes: int
    last: Address
    settled: bool  # the value is at `last` already, or nobody reads it


@dataclass(frozen=True)
class Repeat:
    """Runs `items` for counter = 0, 1, ... below `trips`, as long as the bool at `condition` holds before a trip."""

    counter: str
    trips: int | Symbolic | Argument
    condition: Argument | None
    swaps: tuple[Swap, ...]
    items: tuple[Item, ...]
    provenance: Provenance


@dataclass(frozen=True)
class Halt:
    """Ends the run with an error."""

    why: str
    provenance: Provenance
    status: str  # MCC_ERR_<status>


@dataclass(frozen=True)
class Measured:
    """From here on a size has the value that lies at `source`; outside of its bounds the run ends with an error."""

    symbol: Symbol
    source: Argument
    provenance: Provenance
    not_negative: tuple[Dim, ...] = ()  # what that may make too small, which ends the run as well


@dataclass(frozen=True)
class Stage:
    """A step of a region of rows: makes `step` rows at a time until it has made `height`."""

    run: Step
    height: int
    step: int
    pulls: tuple[Pull, ...]


@dataclass(frozen=True)
class RowRegion:
    """Steps that run row by row, each when the next one needs more rows; the last one drives all others."""

    stages: tuple[Stage, ...]
    provenance: Provenance


Item = Step | Branch | Repeat | RowRegion | Halt | Measured | Copied | Awaited


@dataclass(frozen=True)
class Tensor:
    """An input or an output: dense, at a fixed address, or outside the arena where the program says."""

    name: str
    symbol: str  # its part of C names
    type: TensorType
    address: Address
    align: int = 1  # of memory outside the arena
    room: int = 0  # bytes of it that must be there: a kernel may read some past the end
    quantized: Quantized | None = None  # what its integers stand for
    rows: InRows | None = None  # an input that lies nowhere: the program gives it row by row

    @property
    def is_outside(self) -> bool:
        return is_outside(self.address)


def outside(way: str, symbol: str) -> str:
    """The base of an input's or output's address outside the arena, and its pointer's name in the model's struct."""
    return f"{way}_{symbol}"


def is_outside(address: Address) -> bool:
    return address.base.startswith((outside("input", ""), outside("output", "")))


@dataclass(frozen=True)
class State:
    """What a run leaves for the next one: it lies at `tensor`, to where it is brought at the end from `made`."""

    tensor: Tensor
    made: Address
    initial: Address | None = None  # what it begins with; None: zeros
    stored: bool = False  # it outlives the power where a program saves


@dataclass(frozen=True)
class Phase:
    """Items that run at one call of the program."""

    name: str
    items: int  # so many, behind those of the phase before
    states: tuple[State, ...]  # that it changes
    inputs: tuple[str, ...] = ()  # that it is given, by name
    arguments: tuple[Tensor, ...] = ()  # numbers that the call is handed
    after: Address | None = None  # of a number that is 0 as long as there is nothing to do


@dataclass(frozen=True)
class Arena:
    """Memory for tensors: the only one, or a pool of those that `--mem` or the target names."""

    pool: str  # empty: the only one
    bytes: int
    align: int
    bound: int  # the largest live set in it
    limit: int | None = None  # the most bytes it may have
    copied: bool = False  # no step works there but those that copy to and fro
    rate: int | None = None  # megabytes per second that these reach
    latency_ns: int = 0  # that each of them takes besides

    @property
    def base(self) -> str:
        return arena_base(self.pool)


@dataclass(frozen=True)
class Plan:
    name: str
    prefix: str
    build: Build  # for which target, and how that is compiled
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    items: tuple[Item, ...]
    functions: tuple[Function, ...]
    entries: tuple[Entry, ...]
    data_bytes: int  # of the blob's data, with what may be read past the last constant
    arenas: tuple[Arena, ...]
    arena_naive: int
    arena_by_calls: int  # if nothing ran row by row
    lives: tuple[Life, ...]
    assumptions: tuple[str, ...]
    mhz: int = 0  # of the core that runs it, where that is known
    copied_bound: int | None = None  # bytes that any plan copies to and from the arena that is `copied`, where known
    given: tuple[Symbol, ...] = ()  # sizes that are given before a run
    not_negative: tuple[Dim, ...] = ()  # what those given may make too small, and then are refused
    measured: tuple[Symbol, ...] = ()  # sizes that a run finds out
    states: tuple[State, ...] = ()
    phases: tuple[Phase, ...] = ()  # none: all items are one run
    streams: int = 0  # of random numbers: each goes on from run to run
    advances: bool = False  # a run can be made for its states alone
    sliced: bool = False  # a run can be made a few items at a time
    parallel: bool = False  # programs may say how workers run, whether or not a step is shared
    checks: tuple[Checked, ...] = ()  # of the blob, by init
    window: int = 0  # not 0: weights are copied into arenas, at most so many bytes at a time, and read nowhere else
    portable: tuple[PortableStep, ...] = ()  # long ones
    partition: Partition | None = None  # between an accelerator and the core
    column_tiles: tuple[ColumnTiles, ...] = ()  # computed one after the other
    streamed: Streamed | None = None  # where a run takes the newest frames of a window
    lists_constants: bool = True  # the blob has a table of its constants, for tools; else the report has
    trusts_blob: bool = False  # init leaves out the checksums
    crc_table: bool = False  # init may take 1 KB more of flash to be quicker
    profiled: bool = False  # a run counts how long each step takes
    dumped: bool = False  # a run hands out what each step makes
    ticking: bool = False  # a run calls `mcc_host_tick(number)` behind each step, for programs of this machine
    unseen: tuple[tuple[str, str], ...] = ()  # tensors of the file that no step leaves in memory, and why

    @property
    def runs(self) -> tuple[tuple[Phase, tuple[Item, ...]], ...]:
        """The phases with their items; of a plan without any the only one."""
        phases = self.phases or (Phase("run", len(self.items), self.states),)
        ends = [*accumulate(phase.items for phase in phases)]
        return tuple((phase, self.items[end - phase.items : end]) for phase, end in zip(phases, ends, strict=True))

    @property
    def target(self) -> str:
        return self.build.target

    @property
    def arena_bytes(self) -> int:
        """Of all arenas."""
        return sum(arena.bytes for arena in self.arenas)

    @property
    def arena_bound(self) -> int:
        return sum(arena.bound for arena in self.arenas)

    @property
    def at_peak(self) -> tuple[str, ...]:
        """The buffers that are alive when most is."""
        return tuple(dict.fromkeys(life.name for life in self.lives if life.at_peak))

    @property
    def arena_align(self) -> int:
        return max(arena.align for arena in self.arenas)

    @property
    def has_pools(self) -> bool:
        return any(arena.pool for arena in self.arenas)

    def steps(self) -> Iterator[Step]:
        return walk(self.items)

    def with_schemes(self, found: Mapping[str, Quantized]) -> Plan:
        """The same, whose inputs and outputs say what their integers stand for."""

        def told(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(replace(tensor, quantized=found.get(tensor.name)) for tensor in tensors)

        return replace(self, inputs=told(self.inputs), outputs=told(self.outputs))

    @property
    def with_ticks(self) -> Plan:
        """The same, for a program that wants to know when each step ends."""
        return replace(self, items=with_steps(self.items, lambda step: replace(step, ticks=True)), ticking=True)

    @property
    def plain(self) -> Plan:
        """The same, of which nobody looks inside."""
        items = with_steps(self.items, lambda step: replace(step, timed=False, made=()))
        return replace(self, items=items, profiled=False, dumped=False)


def walk(items: Iterable[Item]) -> Iterator[Step]:
    for item in items:
        match item:
            case Branch():
                yield from walk((*item.then, *item.otherwise))
            case Repeat():
                yield from walk(item.items)
            case RowRegion():
                yield from (stage.run for stage in item.stages)
            case Step():
                yield item


def with_steps(items: Iterable[Item], change: Callable[[Step], Step]) -> tuple[Item, ...]:
    """The items with every step replaced."""

    def changed(item: Item) -> Item:
        match item:
            case Branch():
                return replace(item, then=with_steps(item.then, change), otherwise=with_steps(item.otherwise, change))
            case Repeat():
                return replace(item, items=with_steps(item.items, change))
            case RowRegion():
                return replace(item, stages=tuple(replace(stage, run=change(stage.run)) for stage in item.stages))
        return change(item) if isinstance(item, Step) else item

    return tuple(changed(item) for item in items)


def swaps(items: Iterable[Item]) -> Iterator[Swap]:
    """Of all loops, inner ones included."""
    for item in items:
        match item:
            case Branch():
                yield from swaps((*item.then, *item.otherwise))
            case Repeat():
                yield from item.swaps
                yield from swaps(item.items)
