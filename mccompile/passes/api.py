"""What a pass is, and how passes are run.

A pass changes one IR in place. Invariant: the IR is verified after every pass, and every pass leaves a record of what
it did to the number of nodes; `--print-after` and `--dump` see exactly what the next pass sees.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ..base.constant import Constant
from ..graph import dot as graph_dot
from ..graph import text as graph_text
from ..graph import verify as graph_verify
from ..graph.ir import Graph, all_nodes
from ..kernels.registry import Registry
from ..program import text as program_text
from ..program import verify as program_verify
from ..program.ir import Program
from ..targets.api import Target
from .constants_file import write_constants

IR = TypeVar("IR")


@dataclass(frozen=True)
class Context:
    """What a pass may ask besides the IR itself."""

    target: Target  # `target.prefer` says what to save first
    registry: Registry  # of kernels
    keep_inputs: bool = False  # a run must not overwrite the model's inputs
    rows: bool = True  # calls may run row by row where that saves memory
    fold_limit: int = 1 << 20  # bytes that folding one node may add to the weights


@dataclass(frozen=True)
class Pass(Generic[IR]):
    name: str
    run: Callable[[IR, Context], None]
    optional: bool = True  # the compiler works without it


GraphPass = Pass[Graph]
ProgramPass = Pass[Program]


@dataclass(frozen=True)
class Stage(Generic[IR]):
    """How one of the IRs is checked, counted and shown."""

    name: str
    verify: Callable[[IR, str], None]
    count: Callable[[IR], int]
    show: Callable[[IR], str]
    constants: Callable[[IR], Mapping[str, Constant]] = lambda _: {}
    dot: Callable[[IR], str] | None = None


GRAPH: Stage[Graph] = Stage(
    "graph",
    graph_verify.verify,
    lambda graph: sum(1 for _ in all_nodes(graph)),
    graph_text.show,
    graph_text.constants_of,
    graph_dot.dot,
)
PROGRAM: Stage[Program] = Stage(
    "program",
    program_verify.verify,
    lambda program: sum(1 for _ in program.calls()),
    program_text.show,
    program_text.constants_of,
)


@dataclass(frozen=True)
class Record:
    """One line of the report: what a pass did."""

    name: str
    nodes_before: int
    nodes_after: int


@dataclass
class PassManager:
    """Runs passes one after the other; one manager for all stages of a compilation, so dumped files are numbered on."""

    context: Context
    print_after: Collection[str] = ()  # names of passes, or "all"
    dump: Path | None = None  # folder for numbered texts and drawings
    out: Callable[[str], object] = lambda text: sys.stderr.write(text)
    records: list[Record] = field(default_factory=list)
    _dumped: int = 0

    def run(self, stage: Stage[IR], ir: IR, passes: Iterable[Pass[IR]]) -> None:
        for step in passes:
            before = stage.count(ir)
            step.run(ir, self.context)
            self.finished(stage, ir, step.name, before)

    def finished(self, stage: Stage[IR], ir: IR, name: str, nodes_before: int) -> None:
        """What follows every pass; called directly for loading and for steps that make one IR out of another."""
        stage.verify(ir, name)
        self.records.append(Record(name, nodes_before, stage.count(ir)))
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
