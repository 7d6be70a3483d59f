"""What a pass is, and how passes are run.

A pass changes one IR in place. Invariant: the IR is verified after every pass that changed it, and every pass leaves a
record of what it did to the size of the IR; `--print-after` and `--dump` see exactly what the next pass sees.
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from ..accelerators.api import Accelerator
from ..base.column_tiles import ColumnTiles
from ..base.constant import Constant
from ..base.option_entries import ALL as ALL
from ..base.provenance import Provenance
from ..base.records import dataclass
from ..base.scratch import Scratch
from ..base.stages import stage as timed
from ..graph import contents as graph_contents
from ..graph import dot as graph_dot
from ..graph import text as graph_text
from ..graph import verify as graph_verify
from ..graph.ir import Graph, all_nodes
from ..kernels.registry import Choice, Registry
from ..kinds.map import Map
from ..plan.partition import Partition
from ..program import contents as program_contents
from ..program import text as program_text
from ..program import verify as program_verify
from ..program.ir import Call, Program
from ..targets.api import Target
from .constants_file import write_constants
from .history import History

IR = TypeVar("IR")


@dataclass(frozen=True)
class Explanation:
    """Which kernels there were for a call when one was chosen."""

    provenance: Provenance
    kind: str
    choice: Choice
    call: Call  # as it was then

    @property
    def by_measurement(self) -> bool:
        """Was there a choice, and is it known what the chosen kernel takes?"""
        return len(self.choice.candidates) > 1 and self.choice.candidates[0].cost.measured


@dataclass
class Folding:
    """Bytes of constants that were computed from others, and the most that may be."""

    spent: int = 0
    allowed: int | None = None  # None: nothing was folded yet


class WeightsDtype(StrEnum):
    """In which elements weights of products are stored."""

    OWN = ""  # as they are
    F16 = "f16"
    BF16 = "bf16"


class CacheDtype(StrEnum):
    """In which elements states in f32 that grow are stored."""

    OWN = ""  # as they are
    F16 = "f16"
    INT8 = "int8"  # with a scale for each row


class BlockActivations(StrEnum):
    """As what the other operand of products with weights of few bits is multiplied."""

    MODEL = "model"  # rounded to int8 where the model lets a runtime do so
    FLOAT = "float"  # as it is
    INT8 = "int8"  # rounded in all of them

    def rounds(self, may: bool) -> bool:
        """Given what the model says."""
        return self == BlockActivations.INT8 or (may and self == BlockActivations.MODEL)


@dataclass(frozen=True)
class Cut:
    """A value of four axes through which everything goes: tiles may begin and end there."""

    name: str
    makes: frozenset[str]  # nodes of the file that make it out of the cut before


@dataclass(frozen=True)
class TilesCost:
    """What tiles are expected to take."""

    column_tiles: ColumnTiles
    bytes: int  # of the arena while they run
    macs: int  # that are computed once more
    copied: int = 0  # bytes, where what lies at their ends is far away


@dataclass(frozen=True)
class TriedPlan:
    """A plan that was tried on the way to the one that was taken."""

    bytes: int  # of its arena
    time: float  # estimated cycles


@dataclass(frozen=True)
class Memory:
    """What may be done with tensors in memory."""

    keep_inputs: bool = False  # a run must not overwrite the model's inputs
    external: tuple[str, ...] = ()  # inputs and outputs outside the arena, by name; ALL: every one
    fetched: tuple[str, ...] = ()  # inputs that the program gives row by row
    rows: bool = True  # calls may run row by row where that saves memory
    blocks: bool = True  # products may run by blocks of rows; if not rows, only by blocks that take no more time
    enough: int = 0  # bytes of the arena: less is no better
    column_tiles: tuple[ColumnTiles, ...] = ()
    recompute: float = 1.0  # tiles that multiply the multiply-accumulates by at most this are looked for
    again: float = 1.0  # activations are computed again, for up to so many times the multiply-accumulates
    window: int = 0  # not 0: constants are copied into memory, at most so many bytes at a time
    copied: bool = False  # steps work in a near memory alone; what lies in the far one is copied
    near: int | None = None  # bytes of these; None: as many as are wanted
    far: int | None = None
    latency: int = 0  # bytes that are copied in the time that each copy takes besides
    early: bool = False  # copies may be on their way while steps run
    worth: int = 0  # percent of time that one percent of the arena may cost; 0: any


@dataclass(frozen=True)
class Training:
    """What of the values of constants code may rely on."""

    updatable: bool = False  # constants that training changes stay apart
    facts_known: frozenset[str] | None = None  # that code made before relies on; no others are used

    def may_use(self, fact: str) -> bool:
        return self.facts_known is None or fact in self.facts_known


@dataclass(frozen=True)
class StandIn:
    """A region in C, for where there is no accelerator."""

    text: str  # defines `static int NAME_stand_in(const void *const *inputs, void *const *results)`
    cycles: float  # that the core takes for it


@dataclass(frozen=True)
class Accelerated:
    """An accelerator that regions of the graph may be given to."""

    accelerator: Accelerator
    prefix: str  # of the names of C functions
    folder: Scratch  # for their C, as long as this lives
    stand_in: Callable[[Graph, str], StandIn]  # of a region as a graph, whose function has that name
    partition: Partition


@dataclass(frozen=True)
class Context:
    """What a pass may ask besides the IR itself."""

    target: Target  # `target.prefer` says what to save first
    registry: Registry  # of kernels
    memory: Memory = Memory()
    training: Training = Training()
    threads: int = 1  # workers that may share a call
    weights_dtype: WeightsDtype = WeightsDtype.OWN
    block_activations: BlockActivations = BlockActivations.MODEL
    # How far rounding errors of products in f32 may move an output, of its largest element. None: by a few last places
    # of 16 bits, where that is worth its time.
    float_error: float | None = None
    accelerated: Accelerated | None = None
    fold_limit: int = 1 << 20  # bytes that folding one node may add to the weights
    folding: Folding = field(default_factory=Folding)  # of all nodes together
    explanations: list[Explanation] = field(default_factory=list)  # of all calls, in their order
    cuts: list[Cut] = field(default_factory=list)  # where tiles of columns may begin and end
    column_tiles: list[TilesCost] = field(default_factory=list)  # between them
    # Of bottlenecks that become one call, the nodes of the file behind the middle, and rows at a time.
    bottlenecks: dict[frozenset[str], int] = field(default_factory=dict)
    # Of pools over all of a convolution, the nodes of the file behind them, and in how many blocks of channels.
    channel_blocks: dict[frozenset[str], int] = field(default_factory=dict)
    max_slice: int = 0  # cycles that a slice of the run may take; 0: as long as it takes
    smallest: list[TriedPlan] = field(default_factory=list)  # of plans that were tried, that with the smallest arena


@dataclass(frozen=True)
class Pass(Generic[IR]):
    name: str
    run: Callable[[IR, Context], None]
    optional: bool = True  # the compiler works without it


GraphPass = Pass[Graph]
ProgramPass = Pass[Program]


@dataclass(frozen=True)
class Size:
    """What passes make smaller: the number of nodes (or calls), those among them that only move elements (transposes,
    copies), and the bytes of all tensors between nodes."""

    nodes: int
    moves: int
    bytes: int


def _size_of_graph(graph: Graph) -> Size:
    nodes = list(all_nodes(graph))
    made = sum(value.type.max_bytes for node in nodes for value in node.present_outputs)
    return Size(len(nodes), sum(node.op.name in ("Transpose", "TransposeInMemory") for node in nodes), made)


def _size_of_program(program: Program) -> Size:
    calls = list(program.calls())
    copies = sum(isinstance(call.kind, Map) and call.kind.is_copy for call in calls)
    made = {view.buffer: None for call in calls for view in call.outs}
    return Size(len(calls), copies, sum(buffer.type.max_bytes for buffer in made))


@dataclass(frozen=True)
class Stage(Generic[IR]):
    """How one of the IRs is checked, counted and shown."""

    name: str
    contents: Callable[[IR], list[object]]
    verify: Callable[[IR, str], None]
    size: Callable[[IR], Size]
    show: Callable[[IR], str]
    constants: Callable[[IR], Mapping[str, Constant]] = lambda _: {}
    dot: Callable[[IR], str] | None = None


GRAPH: Stage[Graph] = Stage(
    "graph",
    graph_contents.contents,
    graph_verify.verify,
    _size_of_graph,
    graph_text.show,
    graph_text.constants_of,
    graph_dot.dot,
)
PROGRAM: Stage[Program] = Stage(
    "program",
    program_contents.contents,
    program_verify.verify,
    _size_of_program,
    program_text.show,
    program_text.constants_of,
)


@dataclass(frozen=True)
class Record:
    """One line of the report: what a pass did."""

    name: str
    before: Size
    after: Size
    seconds: float = 0.0


@dataclass(frozen=True)
class SkippedPass:
    """An optional pass that failed on the model, which is compiled without it; one line says how."""

    name: str
    why: str

    def show(self) -> str:
        """For the terminal, with what to do about it."""
        advice = "the code is right without it; please report it with the model, if you can share it"
        return f"left out pass {self.name}, which failed ({self.why}): {advice}"

    def as_dict(self) -> dict[str, str]:
        return {"pass": self.name, "why": self.why}


@dataclass
class PassManager:
    """Runs passes one after the other; one manager for all stages of a compilation, so dumped files are numbered on."""

    context: Context
    print_after: Collection[str] = ()  # names of passes, or "all"
    dump: Path | None = None  # folder for numbered texts and drawings
    out: Callable[[str], object] = lambda text: sys.stderr.write(text)
    records: list[Record] = field(default_factory=list)
    history: History = field(default_factory=History)  # what became of the nodes
    running: str = ""  # the optional pass that is running or being verified
    _dumped: int = 0
    _seen: list[object] = field(default_factory=list)  # the contents of what was verified last

    def run(self, stage: Stage[IR], ir: IR, passes: Iterable[Pass[IR]]) -> None:
        before = stage.size(ir)
        for step in passes:
            start = time.perf_counter()
            self.running = step.name if step.optional else ""
            with timed(step.name):
                step.run(ir, self.context)
            self.finished(stage, ir, step.name, before, time.perf_counter() - start)
            before = self.records[-1].after
        self.running = ""

    def finished(self, stage: Stage[IR], ir: IR, name: str, before: Size | None = None, seconds: float = 0.0) -> None:
        """What follows every pass; called directly for loading and for steps that make one IR out of another."""
        contents = stage.contents(ir)
        if before is None or not _are_the_same(contents, self._seen):
            stage.verify(ir, name)
            self.history.see(name, ir)
            after = stage.size(ir)
        else:
            after = before
        self._seen = contents
        self.records.append(Record(name, before or after, after, seconds))
        if name in self.print_after or "all" in self.print_after:
            self.out(f"# after {name}\n{stage.show(ir)}")
        if self.dump is not None:
            self._write(stage, ir, name, self.dump)

    def _write(self, stage: Stage[IR], ir: IR, name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{self._dumped:02}-{name}.{stage.name}"
        (folder / f"{stem}.txt").write_text(stage.show(ir), encoding="utf-8")
        if stage.dot is not None:
            (folder / f"{stem}.dot").write_text(stage.dot(ir), encoding="utf-8")
        constants = stage.constants(ir)
        if constants:
            write_constants(folder / "constants.zip", constants)
        self._dumped += 1


def _are_the_same(some: list[object], others: list[object]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))
