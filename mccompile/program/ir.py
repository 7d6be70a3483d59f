"""Program IR: calls of kinds over views of buffers.

A buffer is memory of its own with a dense natural shape; a view is a window on a buffer with a shape and strides in
elements. Transpose, slice, split, broadcast and reshape are views from lowering on and cost nothing until a kernel asks
for dense operands.

Invariants (checked by verify.py): until `bufferize` has run every buffer has one writer; a buffer is written before
it is read; constants are never written, and where one has an `Overlap`, it is a copy in memory that a `Copy` brings;
types fit the kinds. What a call may overwrite is decided by `bufferize`
alone: it joins buffers by giving one an `Overlap` on another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from ..base.constant import Constant
from ..base.dims import Dim, Symbol, Symbolic, evaluate, product, static, symbols, upper
from ..base.dtypes import DType
from ..base.provenance import Provenance
from ..base.records import cached_property, dataclass, replace
from ..base.tensor import Shape, TensorType, dense_strides
from ..kinds.api import AnyKind, Kind
from .phases import Phase
from .pull import Pull
from .reached import NOTHING, reached
from .reshaped_strides import reshaped_strides

TEMPORARY, INPUT, CONSTANT = "temporary", "input", "constant"
STREAM = "stream"  # where random numbers go on: kept from run to run, in the model's struct
EXTERNAL = "external"  # an input or output whose memory is the caller's, told by pointer
LASTING = "lasting"  # written by a call, and alive to the end of the run: strings point into it


@dataclass(frozen=True)
class Storage:
    """How a buffer lies in memory beyond its shape; chosen in select_kernels."""

    align: int = 1
    slack: int = 0  # bytes that a kernel may read past the end


@dataclass(eq=False)
class Buffer:
    name: str
    dtype: DType
    shape: Shape
    role: str = TEMPORARY
    constant: Constant | None = None
    provenance: Provenance = ()
    storage: Storage = field(default_factory=Storage)
    overlap: Overlap | None = None
    packing: str = ""  # how a constant was packed for its kernel; set by pack_constants and share_tables
    packed_of: Buffer | None = None  # what it was packed of before pack_constants, which keeps it once
    within: tuple[int, int] | None = None  # of a constant: init checks that its elements lie so; set by known_ranges
    far: bool = False  # lies in a memory that only transfers reach; set by bring_tensors
    _type: ClassVar[TensorType | None] = None  # as it was asked for last

    @property
    def type(self) -> TensorType:
        found = self._type
        if found is None or found.dtype is not self.dtype or found.shape is not self.shape:
            found = TensorType(self.dtype, self.shape)
            vars(self)["_type"] = found
        return found

    @property
    def max_bytes(self) -> int:
        return self.type.max_bytes + self.storage.slack

    def whole(self) -> View:
        return View(self, self.shape, dense_strides(self.shape))

    def __repr__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class Overlap:
    """This buffer lies `offset` bytes into `base`: written over it (`part` false: base is dead by then), or a part of
    it that is written by its own call instead of being copied there (`part` true: base holds it as long as base
    lives)."""

    base: Buffer
    offset: int = 0
    part: bool = False


@dataclass(frozen=True)
class View:
    """Element (i, j, ...) lies `offset + i*strides[0] + j*strides[1] + ...` elements into the buffer."""

    buffer: Buffer
    shape: Shape
    strides: Shape
    offset: Dim = 0
    lines: int = 0  # not 0: a ring of so many rows; row y lies at row y % lines (see Rows)

    @cached_property
    def type(self) -> TensorType:
        return TensorType(self.buffer.dtype, self.shape)

    @property
    def is_dense(self) -> bool:
        """Row-major without gaps (the stride of an axis of size 1 does not matter)."""
        return all(
            have == want or dim == 1
            for dim, have, want in zip(self.shape, self.strides, dense_strides(self.shape), strict=True)
        )

    @property
    def covers_buffer(self) -> bool:
        return self.offset == 0 and self.is_dense and product(self.shape) == product(self.buffer.shape)

    def permuted(self, order: Sequence[int]) -> View:
        return replace(self, shape=tuple(self.shape[a] for a in order), strides=tuple(self.strides[a] for a in order))

    def broadcast_to(self, shape: Shape) -> View:
        """Aligned at the last axis, as numpy does it."""
        missing = len(shape) - len(self.shape)
        own = (1,) * missing + self.shape
        strides = (0,) * missing + self.strides
        for dim, want in zip(own, shape, strict=True):
            if dim not in (1, want):
                raise ValueError(f"{self.type} does not broadcast to {shape}")
        return replace(
            self,
            shape=shape,
            strides=tuple(0 if dim == 1 else stride for dim, stride in zip(own, strides, strict=True)),
        )

    def sliced(self, axis: int, start: Dim, count: Dim, step: int = 1) -> View:
        """`count` elements of an axis from `start`, every `step`-th (backwards where negative)."""
        shape = (*self.shape[:axis], count, *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], self.strides[axis] * step, *self.strides[axis + 1 :])
        return replace(self, shape=shape, strides=strides, offset=self.offset + self.strides[axis] * start)

    def reshaped(self, shape: Shape) -> View | None:
        """The same elements in another shape, where strides can say that; None where a copy is needed."""
        if self.is_dense:
            return replace(self, shape=shape, strides=dense_strides(shape))
        strides = reshaped_strides(self.shape, self.strides, shape)
        return None if strides is None else replace(self, shape=shape, strides=strides)

    @cached_property
    def is_static(self) -> bool:
        """Are shape and strides known? (The offset may still count with a loop.)"""
        return all(isinstance(d, int) for d in (*self.shape, *self.strides))

    @property
    def last_element(self) -> int:
        """Largest offset (in elements of the buffer, at the upper bounds) that the view can touch; -1 where it is
        empty."""
        return upper(self.buffer.type.count) - 1 if self.lines else self._last

    @cached_property
    def _last(self) -> int:
        if self.is_static and isinstance(self.offset, int):
            ends = zip(self.shape, self.strides, strict=True)
            steps = [(static(dim) - 1) * static(stride) for dim, stride in ends]
            return -1 if 0 in self.shape else self.offset + sum(step for step in steps if step > 0)
        dims = (*self.shape, *self.strides, self.offset)
        top = {s.name: s.high for dim in dims if not isinstance(dim, int) for s in symbols(dim)}
        if any(upper(dim) == 0 for dim in self.shape):
            return -1
        return evaluate(self.offset, top) + sum(
            max(0, (evaluate(dim, top) - 1) * evaluate(stride, top))
            for dim, stride in zip(self.shape, self.strides, strict=True)
        )

    @property
    def byte_range(self) -> tuple[int, int]:
        """The bytes of the buffer from the first to beyond the last element that the view touches, in any trip of a
        loop; all of them where a size is known only at run time."""
        found = reached(self.shape, self.strides, self.offset, self.buffer.type.count)
        if found is None:
            return 0, self.buffer.max_bytes
        if self.lines and found != NOTHING:
            return 0, self.buffer.type.max_bytes
        low, high = found
        bits = self.buffer.dtype.bits
        return low * bits // 8, ((high + 1) * bits + 7) // 8


@dataclass(eq=False)
class Call:
    """One computation. `kernel`, `blocks` and `scratch` are set by select_kernels."""

    kind: Kind
    ins: tuple[View, ...]
    outs: tuple[View, ...]
    provenance: Provenance = ()
    kernel: str = ""
    scratch: Buffer | None = None
    blocks: tuple[int, ...] = ()  # sizes that the kernel chose for the target; only the kernel knows what they mean
    rows: int | None = None  # the axis of the result along which it runs piece by piece
    workers: int = 1  # that share it; each computes some of its units, or of its rows
    # smallest and largest element of operands of more than 8 bits, before they were packed: see evidence/ranges.py
    packed_ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    in_turn: bool = False  # one worker makes all of these pieces, one slice of the run after the other

    def of(self, kind: type[AnyKind]) -> AnyKind:
        """Its kind, for those who know which one that is."""
        assert isinstance(self.kind, kind), self.kind
        return self.kind

    @property
    def macs(self) -> Dim:
        """How many products are added up."""
        return self.kind.macs([view.type for view in self.ins], [view.type for view in self.outs])


@dataclass(eq=False)
class If:
    """Runs one of two bodies. Both write the same result buffers."""

    condition: View
    then: list[Item]
    otherwise: list[Item]
    provenance: Provenance = ()


@dataclass(frozen=True)
class Carry:
    """What a trip of a loop hands to the next one, in two buffers of one type that change places after every trip: a
    trip reads `now` and writes `next`. Before the loop `now` holds the first value; after it `last` holds what the last
    trip wrote, or the first value if there was none (it is copied, unless bufferize lays `last` over the right one
    of the two)."""

    now: Buffer
    next: Buffer
    last: Buffer


@dataclass(eq=False)
class Loop:
    """Runs `body` for counter = 0, 1, ..., as often as `trips` says and as long as the condition holds before a trip.
    Addresses in the body may contain the counter."""

    counter: Symbol
    trips: int | Symbolic | View
    carries: list[Carry]
    condition: View | None
    body: list[Item]
    provenance: Provenance = ()


@dataclass(frozen=True)
class Stop:
    """The run ends here with the status MCC_ERR_<status>: the model cannot do what comes now."""

    why: str
    provenance: Provenance = ()
    status: str = "BRANCH"


@dataclass(eq=False)
class Measure:
    """From here on `symbol` is the number that `source` (one i64) holds; outside of its bounds the run ends with
    MCC_ERR_SIZE. A program measures a symbol once, before anything that depends on it."""

    symbol: Symbol
    source: View
    provenance: Provenance = ()


@dataclass(eq=False)
class Stage:
    """A call that makes `step` rows at a time until it has made `height`. Its rows may lie where those of the operand
    `over` did, which are made only just before and read by nobody else."""

    call: Call
    height: int
    step: int
    pulls: tuple[Pull, ...]
    over: int | None = None


@dataclass(eq=False)
class Rows:
    """Calls that run row by row, each when the next one needs more rows; the last stage drives all others. What goes
    from one to another lies in rings of a few rows, alive only here. Every stage is pulled by one other."""

    stages: list[Stage]
    over: tuple[
        Buffer, ...
    ] = ()  # operands that the last result may be written over: all their readers are ahead of it
    # Operands that the last result runs after, without meeting what is still to be read of them, if it begins at least
    # so many bytes before them.
    before: tuple[tuple[Buffer, int], ...] = ()
    provenance: Provenance = ()


@dataclass(eq=False)
class Copy:
    """Begins to bring constants, which lie in the blob one after the other, to the buffer that they are parts of. Until
    it has been awaited nobody reads or writes there."""

    parts: tuple[Buffer, ...]
    to: Buffer
    provenance: Provenance = ()


@dataclass(eq=False)
class Await:
    """What a copy brings is there from now on."""

    copy: Copy

    @property
    def provenance(self) -> Provenance:
        return self.copy.provenance


Item = Call | If | Loop | Rows | Stop | Measure | Copy | Await


@dataclass(eq=False)
class Program:
    name: str
    inputs: list[tuple[str, Buffer]] = field(default_factory=list)
    outputs: list[tuple[str, View]] = field(default_factory=list)
    body: list[Item] = field(default_factory=list)
    assumptions: dict[str, None] = field(default_factory=dict)
    not_negative: dict[Dim, None] = field(default_factory=dict)  # else the run ends with a status
    call_by_call: int = 0  # bytes of the arena if nothing ran row by row; 0: nothing does
    copied_bound: int | None = None  # bytes that plans copy at least between two memories, where that is known
    states: dict[str, str] = field(default_factory=dict)  # as of the graph: name of the input -> of the output
    initial: dict[str, Buffer | None] = field(default_factory=dict)  # as of the graph: what kept inputs begin with
    phases: list[Phase] = field(default_factory=list)  # none: all items are one run
    # Where tensors of the file lie, as far as buffers of theirs are still written. Copies of a program have none.
    values: list[tuple[str, View]] = field(default_factory=list)
    # What the verifier has found right of each call, by itself: it looks at a call again where a pass changed it.
    verified: dict[Call, tuple[object, ...]] = field(default_factory=dict, repr=False, compare=False)
    # The items as they were before order_calls, for recompute_activations.
    unordered: list[Item] = field(default_factory=list, repr=False, compare=False)

    @property
    def kept(self) -> list[str]:
        """The inputs that nobody hands over: what a run hands to the next one, or leaves as it is."""
        return [name for name, _ in self.inputs if name in self.states or name in self.initial]

    def runs(self) -> Iterator[tuple[Phase, list[Item]]]:
        """The phases with their items; of a program without phases the only one."""
        handed_out = tuple(name for name, _ in self.outputs if name not in self.states.values())
        items = iter(self.body)
        for phase in self.phases or [Phase("run", len(self.body), self.states, handed_out)]:
            yield phase, list(itertools.islice(items, phase.items))

    def lasting_inputs(self, all_of_them: bool) -> list[Buffer]:
        """Inputs whose memory nothing else may be laid over: those that are kept, or all."""
        kept = self.kept
        return [buffer for name, buffer in self.inputs if all_of_them or name in kept]

    def buffers(self) -> list[Buffer]:
        """Every buffer, in order of first appearance."""
        found: dict[Buffer, None] = {buffer: None for _, buffer in self.inputs}
        for item in walk(self.body):
            for view in (*reads(item), *writes(item)):
                found.setdefault(view.buffer)
            for scratch in scratches(item):
                found.setdefault(scratch)
        for _, view in self.outputs:
            found.setdefault(view.buffer)
        for buffer in list(found):
            if buffer.overlap:
                found.setdefault(buffer.overlap.base)
        return list(found)

    def calls(self) -> Iterator[Call]:
        for item in walk(self.body):
            if isinstance(item, Call):
                yield item
            elif isinstance(item, Rows):
                yield from (stage.call for stage in item.stages)


def walk(body: Iterable[Item]) -> Iterator[Item]:
    """Calls and regions as they are written down, a region before what is in it. One of rows counts as one item: all
    that it reads and writes is in use as long as it runs."""
    for item in body:
        yield item
        for body in bodies(item):
            yield from walk(body)


def bodies(item: Item) -> tuple[list[Item], ...]:
    """The lines of a region, in textual order."""
    match item:
        case If():
            return item.then, item.otherwise
        case Loop():
            return (item.body,)
    return ()


def reads(item: Item) -> tuple[View, ...]:
    """What an item reads itself; what is inside of a region speaks for itself."""
    match item:
        case Call():
            return item.ins
        case If():
            return (item.condition,)
        case Measure():
            return (item.source,)
        case Stop() | Copy():
            return ()
        case Await():
            return tuple(buffer.whole() for buffer in (item.copy.to, *item.copy.parts))
        case Rows():
            return tuple(view for stage in item.stages for view in stage.call.ins)
    views = [item.trips] if isinstance(item.trips, View) else []
    views += [item.condition] if item.condition is not None else []
    return (*views, *(carry.now.whole() for carry in item.carries))


def writes(item: Item) -> tuple[View, ...]:
    match item:
        case Call():
            return item.outs
        case If() | Stop() | Measure() | Await():
            return ()
        case Copy():
            return (item.to.whole(),)
        case Rows():
            return tuple(view for stage in item.stages for view in stage.call.outs)
    return tuple(carry.last.whole() for carry in item.carries)


def scratches(item: Item) -> tuple[Buffer, ...]:
    """Workspaces in use while an item runs."""
    calls = [item] if isinstance(item, Call) else [s.call for s in item.stages] if isinstance(item, Rows) else []
    return tuple(call.scratch for call in calls if call.scratch is not None)


def root(buffer: Buffer) -> tuple[Buffer, int]:
    """The buffer whose memory this one lies in, and how many bytes into it."""
    offset = 0
    while buffer.overlap:
        offset += buffer.overlap.offset
        buffer = buffer.overlap.base
    return buffer, offset
