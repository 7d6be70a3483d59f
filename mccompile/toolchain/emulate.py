"""Builds a compiled model for its target and runs it there: under QEMU or Node, which a target's `run` command names.

Programs for Linux run under QEMU's user mode; programs for bare metal are linked with start-up code and linker script
for one of the boards of boards.py, and talk by semihosting; those for WebAssembly are run by board/wasi.js. Invariant:
what is not installed is named together with the packages that bring it; nothing is skipped. The program
(board/run_model.c) treats the model as firmware would, and worse: no better alignment than promised, poisoned memory,
guards around it, checksums of the weights before and after.
"""

from __future__ import annotations

import re
import shlex
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dtypes import DType, string
from mccompile.base.errors import CheckFailed, Problem, WrongUse
from mccompile.base.scratch import Scratch
from mccompile.targets.api import Target

from ..base.records import dataclass
from .board_model import board_header
from .boards import BOARDS, STACK_BYTES, Board, linker_script
from .build import Compiler, compile_program
from .disassembly import frames
from .elements import from_bytes, to_bytes
from .image import address, read_map
from .loaded import built, loaded
from .model_report import Report, check_inputs, given_sizes, read_report, sources_of
from .stack import FLAG, UNKNOWN, CallGraph, frames_by_compiler
from .ticks import ticks_source
from .tools import compiler_failed, require
from .wasm import MAGIC as WASM
from .wasm import with_counters

_FOLDER = Path(__file__).with_name("board")
Inputs = Mapping[str, np.ndarray]
Words = Sequence[str]
_MAGIC = 0x4D434352
_HEAD = struct.Struct("<8I")
_WORD = struct.Struct("<I")
_STAGES = {
    1: "reading inputs failed",
    2: "init failed",
    3: "run failed",
    4: "a run wrote outside of the arena",
    5: "a run changed the weights",
    6: "resize failed",
    7: "learning failed",
}
_LARGE = 8 << 20  # bytes of C that are nothing but weights
_SECONDS = 600  # an emulated core is some 50 times slower than the host
# A blob that the model's own files do not carry.
_WEIGHTS = """#include "NAME.h"
extern const size_t NAME_weights_bytes;
const size_t NAME_weights_bytes = BYTES_OF_BLOB;
#if defined(__wasm__)
#define SECTION ".section .rodata.NAME_weights,\\"\\",@\\n.type NAME_weights,@object\\n"
#else
#define SECTION ".section .rodata.NAME_weights,\\"a\\"\\n"
#endif
__asm__(SECTION
        ".balign ALIGN\\n"
        ".globl NAME_weights\\n"
        "NAME_weights:\\n"
        ".incbin \\"NAME.mcb\\"\\n"
#if defined(__wasm__)
        ".size NAME_weights, BYTES_OF_BLOB\\n"
        ".text\\n");
#else
        ".previous\\n");
#endif
"""


@dataclass(frozen=True)
class Count:
    """What init and one run cost."""

    init_instructions: int
    run_instructions: int
    init_stack: int | None  # bytes below the caller; None where it is not known
    run_stack: int | None
    struct_bytes: int


@dataclass(frozen=True)
class Results:
    """What a run has given."""

    outputs: dict[str, np.ndarray]
    state: bytes  # that it left for the next run
    advanced: bytes | None = None  # what a run for the states alone left instead, where there was one


def timing_program(folder: Path, target: Target, cc: str | None = None) -> Path:
    """An output folder of mccompile as a program that prints the median seconds of a run; beside the folder."""
    report, scratch = read_report(folder), folder.parent.resolve()
    compiler = shlex.split(cc) if cc else [target.compiler]
    require(compiler[:1], target.name)
    (scratch / "mcc_host_model.h").write_text(board_header(report, False), encoding="utf-8")
    sources = sources_of(folder, report.prefix)
    sources += [_external_weights(folder, report.prefix, scratch), _FOLDER / "timed.c"]
    includes = [scratch, folder, folder / "runtime"]
    return compile_program(Compiler(tuple(compiler)), sources, includes, scratch / "timed", [*target.cflags, "-static"])


class Emulated:
    """A compiled model as a program for its target; its files last as long as it does."""

    def __init__(
        self,
        report: Report,
        scratch: Scratch,
        program: Path,
        command: Sequence[str],
        sections: Mapping[str, Mapping[str, int]],
        call_graph: CallGraph,
    ) -> None:
        self._scratch = scratch
        self.report = report
        self.program = program
        self.sections = sections  # bytes by source of the code ("kernels", "model", "weights", "libraries", ...)
        self.call_graph = call_graph
        self.dumped = b""  # what the steps of the last run have made
        self._command = tuple(command)

    @classmethod
    def build(
        cls, folder: Path, target: Target, cc: str | None = None, flags: Words = (), dump: bool = False, ticks: int = 0
    ) -> Emulated:
        """Cross-compile an output folder of mccompile. `flags` are added to the target's. For a target that names no
        emulator the program is only looked at. `dump`: runs write what their steps make, too. `ticks`: so many steps
        tell when they end."""
        report = read_report(folder)
        command = run_command(target)
        compiler = shlex.split(cc) if cc else [target.compiler]
        require([compiler[0], *command[:1]], target.name, "" if compiler[0] == target.compiler else target.compiler)
        made = Scratch()
        scratch = Path(made.name).resolve()
        (scratch / "mcc_host_model.h").write_text(board_header(report, dump), encoding="utf-8")
        sources = _sources(folder, report.prefix, scratch)
        if report.module:
            image = built(folder, report, shlex.join(compiler), scratch, flags)
            sources = [scratch / f"{report.prefix}_loaded.c"]
            sources[0].write_text(loaded(report, image), encoding="utf-8")
        machine = command[command.index("-M") + 1] if "-M" in command else ""
        if ticks:
            sources.append(scratch / "ticks.c")
            sources[-1].write_text(ticks_source(ticks), encoding="utf-8")
        main = "learn_model.c" if report.learns else "run_model.c"
        board_sources = [_FOLDER / main, _FOLDER / "marks.c", _FOLDER / ("bare.c" if machine else "hosted.c")]
        includes = [f"-I{path}" for path in (scratch, _FOLDER, folder, folder / "runtime")]
        objects = []
        for source in [*sources, *board_sources]:
            objects.append(scratch / f"{source.stem}.o")
            options = [*target.cflags, *flags, *includes, "-ffunction-sections", "-fdata-sections"]
            options += [FLAG] if compiler[0].endswith("gcc") else []
            options.append(f"-D{report.prefix.upper()}_WEIGHTS_SECTION=")  # boards have none of a model's own
            _call([*compiler, *options, "-c", str(source), "-o", str(objects[-1])], source.name)
        linked = _Linking(compiler, [*target.cflags, *flags], objects, f"{report.prefix}_weights.o", scratch)
        if not machine:
            program = linked.run(["-static", "-no-pie"])
        else:
            program, used = linked.bare(machine, target)
            command[command.index("-M") + 1] = used
        sections = read_map(scratch / "program.map", report.prefix)
        known = frames_by_compiler(scratch.glob("*.ci")) | (frames(program, compiler[0]) if machine else {})
        return cls(report, made, program, command, sections, CallGraph(known))

    def run(self, inputs: Mapping[str, np.ndarray], poison: int | None = None) -> dict[str, np.ndarray]:
        """Outputs by name. The program always poisons its memory with a byte of its own."""
        return self.run_twice(inputs)[0].outputs

    def run_twice(self, inputs: Mapping[str, np.ndarray], state: bytes | None = None) -> tuple[Results, Results]:
        """What a run on poisoned memory gives, and a second one on what the first one left. Both begin with `state`, or
        with the one after init."""
        first, second, _ = self._execute(inputs, [*self._command, str(self.program)], state)
        return first, second

    def dump(self, inputs: Mapping[str, np.ndarray], state: bytes = b"") -> bytes:
        """What the steps of a run make, as mcc_dump.h writes it. It begins with `state`, or that after init."""
        self.run_twice(inputs, state or None)
        return self.dumped

    def count(self, inputs: Inputs, host_cc: str = "gcc", state: bytes | None = None) -> Count:
        """Exact numbers of instructions, and the stack that was used. It begins with `state`, or that after init."""
        lines, head = self.counted(inputs, host_cc, state=state)
        init, run, again = (int(line) for line in lines)
        if run != again:
            raise CheckFailed(Problem("two equal runs took different numbers of instructions", self.report.prefix))
        used = [None if stack == UNKNOWN else stack for stack in head[3:5]]
        return Count(init, run, used[0], used[1], head[5])

    def counted(
        self, inputs: Inputs, host_cc: str, more: str = "", state: bytes | None = None
    ) -> tuple[list[str], tuple[int, ...]]:
        """The lines that count.c wrote, for init and two runs, and the head of the results. `more`: arguments of it."""
        counts = self.program.with_name("counts.txt")
        if self.program.read_bytes().startswith(WASM):
            counting = self.program.with_name("counting.wasm")
            counting.write_bytes(with_counters(self.program.read_bytes()))
            command = [*self._command, str(counting), str(counts)]
        else:
            require([host_cc], "counting")
            plugin = self.program.with_name("count.so")
            if not plugin.is_file():  # one is enough for all runs
                _call([host_cc, "-O2", "-fPIC", "-shared", str(_FOLDER / "count.c"), "-o", str(plugin)], "count.c")
            begin, end = (address(self.program, name) for name in ("board_count_begin", "board_count_end"))
            chosen = f"{plugin},begin={begin:#x},end={end:#x},out={counts}{more}"
            command = [self._command[0], "-plugin", chosen, *self._command[1:], str(self.program)]
        _, _, head = self._execute(inputs, command, state)
        return counts.read_text(encoding="utf-8").splitlines(), head

    def _execute(
        self, inputs: Mapping[str, np.ndarray], command: Sequence[str], state: bytes | None = None
    ) -> tuple[Results, Results, tuple[int, ...]]:
        check_inputs(self.report, inputs)
        written, head = self._executed(self._written(inputs, state), command)
        first, rest = self._results(written)
        second, rest = self._results(rest)
        if self.report.advances:
            second = replace(second, advanced=rest[: self.report.state_bytes])
        return first, second, head

    def answered(self, contents: bytes) -> bytes:
        """What the program writes for what it reads."""
        return self._executed(contents, [*self._command, str(self.program)])[0]

    def _executed(self, contents: bytes, command: Sequence[str]) -> tuple[bytes, tuple[int, ...]]:
        with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
            Path(scratch, "inputs.bin").write_bytes(contents)
            try:
                done = subprocess.run(command, cwd=scratch, capture_output=True, timeout=_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                raise self._failed(f"it did not end within {_SECONDS} s", command) from None
            results = Path(scratch, "results.bin")
            written = results.read_bytes() if results.is_file() else b""
            dumped = Path(scratch, "dump.bin")
            self.dumped = dumped.read_bytes() if dumped.is_file() else b""
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        if done.returncode != 0 or len(written) < _HEAD.size:
            raise self._failed(f"exit code {done.returncode}" + (f": {said}" if said else ""), command)
        head = _HEAD.unpack(written[-_HEAD.size :])
        if head[0] != _MAGIC:
            raise self._failed("its results are incomplete", command)
        if head[1] != 0:
            raise self._failed(f"{_STAGES[head[1]]}, status {head[2]}", command)
        called = [f"{self.report.prefix}_{name}" for name in ("init", "learn" if self.report.learns else "run")]
        if wrong := self.call_graph.exceeded(called, head[3:5], STACK_BYTES):
            raise self._failed(wrong, command)
        return written, head

    def _written(self, inputs: Mapping[str, np.ndarray], state: bytes | None) -> bytes:
        """As board/run_model.c reads it."""
        sizes = given_sizes(self.report, inputs) if self.report.given else {}
        parts = [_WORD.pack(sizes[name]) for name in self.report.given]
        if self.report.state_bytes:
            parts += [_WORD.pack(state is not None), state or b""]
        for tensor in self.report.inputs:
            array = inputs[tensor.name]
            parts += [] if tensor.is_static else [_WORD.pack(array.size)]
            parts.append(_on_the_wire(tensor.in_memory(array), tensor.dtype))
        return b"".join(parts)

    def _results(self, contents: bytes) -> tuple[Results, bytes]:
        """What a run has given, and what follows in the file."""
        outputs, at = {}, 0
        for tensor in self.report.outputs:
            shape: tuple[int, ...]
            if tensor.is_static:
                shape = tensor.static_shape
            else:
                shape = struct.unpack_from(f"<{len(tensor.shape)}I", contents, at)
                at += _WORD.size * len(shape)
            if tensor.dtype is string:
                texts, at = _texts(contents, prod(shape), at)
                outputs[tensor.name] = texts.reshape(shape)
            else:
                begin, at = at, at + tensor.dtype.nbytes(prod(shape))
                outputs[tensor.name] = from_bytes(contents[begin:at], tensor.dtype, shape)
        end = at + self.report.state_bytes
        return Results(outputs, contents[at:end]), contents[end:]

    def _failed(self, why: str, command: Sequence[str]) -> CheckFailed:
        return CheckFailed(Problem(f"{self.report.prefix} failed under emulation", shlex.join(command), why))


@dataclass(frozen=True)
class _Linking:
    compiler: Sequence[str]
    flags: Sequence[str]
    objects: Sequence[Path]
    weights: str
    scratch: Path

    def run(self, options: Sequence[str]) -> Path:
        program = self.scratch / "program.elf"
        more = ["-Wl,--gc-sections", f"-Wl,-Map={self.scratch / 'program.map'}"]
        _call(
            [*self.compiler, *self.flags, *options, *map(str, self.objects), *more, "-o", str(program), "-lm"],
            program.name,
        )
        return program

    def bare(self, machine: str, target: Target) -> tuple[Path, str]:
        """The program, and the machine it was linked for."""
        board = BOARDS.get(machine)
        if board is None:
            why = f"the machines that programs are linked for are {', '.join(BOARDS)}"
            raise WrongUse(Problem(f"no linker script for machine {machine!r}", f"target {target.name}, key run", why))
        try:
            return self._for(board), board.machine
        except WrongUse as error:
            lacking = re.search(r"region `\w+' overflowed by \d+ bytes", str(error))
            if lacking is None:
                raise
        if board.larger:
            return self.bare(board.larger, target)
        fix = "check it on another target, such as --target generic"
        raise WrongUse(Problem(f"the program does not fit into the memory of {machine}", "emulator", lacking[0], fix))

    def _for(self, board: Board) -> Path:
        script = self.scratch / "board.ld"
        script.write_text(linker_script(board, self.weights), encoding="utf-8")
        return self.run([*board.options, "-nostartfiles", f"-T{script}"])


def run_command(target: Target) -> list[str]:
    """The words that a program's path is appended to. A file of the folder `board` may be among them."""
    return [str(_FOLDER / word) if (_FOLDER / word).is_file() else word for word in shlex.split(target.run)]


def _call(command: Sequence[str], what: str) -> None:
    done = subprocess.run(list(command), capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[:40])
        raise compiler_failed(what, command, said)


def _sources(folder: Path, prefix: str, scratch: Path) -> list[Path]:
    """The model's own, but for a large array of weights: that takes a compiler many minutes and gigabytes, while the
    assembler brings in the same bytes, as aligned, at once."""
    own = folder / f"{prefix}_weights.c"
    sources = [path for path in sources_of(folder, prefix) if path != own]
    if own.is_file() and own.stat().st_size < _LARGE:
        return [*sources, own]
    if own.is_file():
        with own.open(encoding="utf-8") as file:
            aligned = re.search(r"MCC_ALIGNED\((\d+)\)", file.read(4096))
        return [*sources, _external_weights(folder, prefix, scratch, int(aligned[1])) if aligned else own]
    if f"{prefix}_weights_bytes;" in (folder / f"{prefix}.h").read_text(encoding="utf-8"):
        return sources
    return [*sources, _external_weights(folder, prefix, scratch)]


def _external_weights(folder: Path, prefix: str, scratch: Path, align: int = 64) -> Path:
    """A source that brings in the blob."""
    path = scratch / f"{prefix}_weights.c"
    nbytes = (folder / f"{prefix}.mcb").stat().st_size
    text = _WEIGHTS.replace("BYTES_OF_BLOB", str(nbytes)).replace("ALIGN", str(align)).replace("NAME", prefix)
    path.write_text(text, encoding="utf-8")
    return path


def _on_the_wire(array: np.ndarray, dtype: DType) -> bytes:
    """As board/run_model.c reads it: strings as length and text."""
    return Constant.of(array).raw_bytes() if dtype is string else to_bytes(array, dtype)


def _texts(contents: bytes, count: int, at: int) -> tuple[np.ndarray, int]:
    texts = np.empty(count, object)
    for number in range(count):
        begin, end = at + 4, at + 4 + int.from_bytes(contents[at : at + 4], "little")
        texts[number] = contents[begin:end].decode(errors="surrogateescape")
        at = end
    return texts, at
