"""Several compiled models as one program: built with every warning an error (and sanitizers on the host), run once, and
what each run of each model gave. Invariant: a model that does not build, or ends the program, takes no other along."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import struct
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

import mccompile.toolchain
from mccompile.base.constant import encoded
from mccompile.base.discovery import data_folder
from mccompile.base.dtypes import string
from mccompile.toolchain.boards import BOARDS, STACK_BYTES, linker_script
from mccompile.toolchain.elements import from_bytes, to_bytes
from mccompile.toolchain.host_model import host_model_header
from mccompile.toolchain.model_report import Report, Tensor, given_sizes

from . import ways
from .machines import Build

HERE = Path(__file__).parent
TOOLCHAIN = Path(mccompile.toolchain.__file__).parent
BOARD, DRIVER = TOOLCHAIN / "board", HERE / "driver.c"
END, RESET, RESIZE, INPUT, TEXTS, RUN, OUTPUT, SHAPED, OUTPUT_TEXTS, SAVE, LOAD = range(11)
MAGIC, GUARDS, WEIGHTS = 0x4D434346, 1001, 1002
STATUS = {GUARDS: "it wrote outside its memory", WEIGHTS: "it changed its weights"}
_CALLS = ("model_bytes", "init", "run", "spent", "input", "output", "resize")
NAMES = (*_CALLS, "output_shape", "place", "state", "status_text")  # of host.c
HOST = '#undef _POSIX_C_SOURCE\n#include "host.c"\n'  # it asks for more of the C library than the model does
WARNINGS_OF_CPP = ("-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
BUILD_SECONDS, RUN_SECONDS = 240, 60
ROOM, ROOM_OF_BOARDS = 16 << 20, 3 << 20
kept: Path | None = None  # a folder for what all batches share
LARGE_STACK = 1 << 18  # of boards: code that is not optimised needs more than firmware would
Arrays = Mapping[str, np.ndarray]

NO_BUILD, SANITIZER, HANG, DIED, STATUS_CODE = "no-build", "sanitizer", "hang", "died", "status"


class Failure(Exception):
    """What became of a model instead of results."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


@dataclass
class Item:
    """One compiled model in a folder of its own, and how it is to be run: sessions of runs, each after a reset."""

    folder: Path
    report: Report
    sessions: Sequence[Sequence[Arrays]]
    blob: bytes
    outcome: list[list[dict[str, np.ndarray]]] | Failure | None = None
    script: bytes = b""
    way: str = ""  # it is built in
    library: Path | None = None  # of its code, where the way has one

    @property
    def includes(self) -> list[Path]:
        """Where its headers lie."""
        names = (f"{self.report.prefix}.h", "mcc.h")
        return sorted({path.parent for name in names for path in self.folder.rglob(name)})

    @property
    def reads_blob(self) -> bool:
        """Do its weights come by a reader? By half of those that may have one."""
        prefix = self.report.prefix
        header = next(self.folder.rglob(f"{prefix}.h")).read_text(encoding="utf-8")
        return f"{prefix}_init_from(" in header and zlib.crc32(self.blob) % 2 == 0


@dataclass
class Batch:
    build: Build
    folder: Path
    items: list[Item] = field(default_factory=list)
    shared: Path | None = None  # a source of what the models have in common

    def run(self) -> None:
        """Fills in the outcomes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for item in self.items:
            try:
                item.script = _script(item, self.build.is_bare)
                self._compile(item)
            except Failure as failure:
                item.outcome = failure
        if self.shared is not None:
            try:
                self._call(["-c", str(self.shared), "-o", f"{self.shared}.o"], [self.shared.parent / "runtime"])
            except Failure as failure:
                for item in self.items:
                    item.outcome = failure
        left = [item for item in self.items if item.outcome is None]
        if not left:
            return
        try:
            self._execute(left)
        except Failure as failure:
            if len(left) == 1:
                left[0].outcome = failure
                return
            for item in left:  # who was it?
                try:
                    self._execute([item])
                except Failure as own:
                    item.outcome = own

    def _compile(self, item: Item) -> None:
        prefix, folder = item.report.prefix, item.folder
        header = host_model_header(item.report)
        if self.build.command:  # no threads there
            header += "#define MCC_HOST_IN_TURN\n"
        if item.reads_blob:
            header = from_reader(header, prefix)
        weights = folder / f"{prefix}_weights.c"
        sources = [name for name in (f"{prefix}_kernels.c", f"{prefix}.c") if (folder / name).is_file()]
        own = ways.library(item.way, folder, prefix, self.build)
        if own is not None:
            sources, item.library = [], own[1]
            for command in own[0]:
                self._run_tool(command)
        defines = "".join(f"#define mcc_host_{name} {prefix}_host_{name}\n" for name in NAMES)
        if own is None and weights.is_file() and "incbin" not in weights.read_text(encoding="utf-8"):
            sources.append(weights.name)
        included = "".join(f'#include "{name}"\n' for name in sources)
        unit = '#include "late.h"\n#define MCC_STAND_IN\n' + defines + included + HOST
        (folder / f"{prefix}_unit.c").write_text(unit, encoding="utf-8")
        aside = folder / f"{prefix}_host"
        aside.mkdir(exist_ok=True)
        (aside / "mcc_host_model.h").write_text(header, encoding="utf-8")
        wrapper = folder / f"{prefix}.hpp"
        if wrapper.is_file() and not self.build.command and shutil.which("g++"):
            folders = [f"-I{path}" for path in item.includes]
            machine = [flag for flag in self.build.flags if flag.startswith("-m")]  # a header of several targets asks
            words = ["-fsyntax-only", "-x", "c++", str(wrapper)]
            self._run_tool(["g++", *WARNINGS_OF_CPP, *machine, *folders, *words])
        section = [f"-D{prefix.upper()}_WEIGHTS_SECTION="] if self.build.compiler == "tcc" else []  # it has none
        words = ["-c", str(folder / f"{prefix}_unit.c"), "-o", str(folder / f"{prefix}_unit.o")]
        self._call([*section, *self._intrinsics(), *words], [aside, folder, *item.includes, HERE])

    def _execute(self, items: Sequence[Item]) -> None:
        folder = self.folder
        program = folder / "program"
        table, prefixes = folder / "programs.c", [item.report.prefix for item in items]
        table.write_text(_table(prefixes), encoding="utf-8")
        self._call(["-O0", "-w", "-c", str(table), "-o", f"{table}.o"], [HERE, data_folder("runtime_c") / "include"])
        board = BOARD / ("bare.c" if self.build.is_bare else "hosted.c")
        objects = [str(self._own(board)), str(self._own(DRIVER)), f"{table}.o"]
        objects += [str(item.folder / f"{item.report.prefix}_unit.o") for item in items]
        objects += [f"{self.shared}.o"] if self.shared is not None else []
        objects += [str(item.library) for item in items if item.library is not None]
        self._call([*self._linking(), *objects, "-o", str(program), "-lm"], [])
        script = struct.pack("<I", len(items)) + b"".join(
            struct.pack("<I", number) + item.script for number, item in enumerate(items)
        )
        results = _run([*self.build.command, str(program)], folder, script)
        reader = _Reader(results)
        for number, item in enumerate(items):
            if reader.word() != MAGIC + number:
                raise Failure(DIED, "its results are incomplete")
            item.outcome = _results(item, reader)

    def _own(self, source: Path) -> Path:
        """The object of a source that is the same in every batch of this build."""
        room = ROOM_OF_BOARDS if self.build.is_bare else ROOM
        includes = [data_folder("runtime_c") / "include", BOARD]
        return self._kept(f"{source.name}.o", ["-O0", f"-DFUZZ_ROOM={room}u", "-w", "-c", str(source)], includes)

    def _kept(self, name: str, words: Sequence[str], includes: Sequence[Path]) -> Path:
        """What a compiler makes of a file that is the same for every batch of this build."""
        key = hashlib.sha256(" ".join([self.build.compiler, *self.build.flags, *words]).encode()).hexdigest()[:16]
        made = (kept or self.folder) / key / name
        if not made.is_file():
            made.parent.mkdir(parents=True, exist_ok=True)
            aside = made.with_name(f"{os.getpid()}-{name}")
            self._call([*words, "-o", str(aside)], includes)
            aside.rename(made)
        return made

    def _intrinsics(self) -> list[str]:
        """Parsed once: they take longer to parse than all that a model has."""
        if "-march=" not in " ".join(self.build.flags) or self.build.command or self.build.compiler == "tcc":
            return []
        suffix = "pch" if self.build.compiler == "clang" else "h.gch"
        made = self._kept(f"intrinsics.{suffix}", ["-x", "c-header", str(HERE / "intrinsics.h")], [])
        return ["-include-pch", str(made)] if suffix == "pch" else ["-include", str(made.with_suffix(""))]

    def _linking(self) -> list[str]:
        if not self.build.command:
            return ["-pthread"]
        if not self.build.is_bare:
            return ["-static", "-no-pie"]
        command = self.build.command
        board = BOARDS[command[command.index("-M") + 1]]
        script = self.folder / "board.ld"
        text = linker_script(board, "no_weights.o").replace(f". += {STACK_BYTES};", f". += {LARGE_STACK};")
        script.write_text(text, encoding="utf-8")
        return [*board.options, "-nostartfiles", "-Wl,--gc-sections", f"-T{script}"]

    def _call(self, words: Sequence[str], includes: Sequence[Path]) -> None:
        folders = [f"-I{path}" for path in (*includes, TOOLCHAIN)]
        self._run_tool([self.build.compiler, *self.build.flags, *folders, *words])

    def _run_tool(self, command: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=BUILD_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise Failure(HANG, f"the compiler took {BUILD_SECONDS} s: {shlex.join(command)}") from None
        if done.returncode != 0:
            said = done.stderr[:3000] or done.stdout[-3000:]
            raise Failure(NO_BUILD, f"{self.build.compiler} {' '.join(self.build.flags)}\n{said}")


def _run(command: Sequence[str], folder: Path, script: bytes) -> bytes:
    (folder / "inputs.bin").write_bytes(script)
    (folder / "results.bin").write_bytes(b"")
    settings = "detect_leaks=0:detect_stack_use_after_return=0:handle_abort=1"
    environment = {**os.environ, "ASAN_OPTIONS": settings, "UBSAN_OPTIONS": "print_stacktrace=1"}
    try:
        done = subprocess.run(
            list(command), cwd=folder, capture_output=True, timeout=RUN_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Failure(HANG, f"it ran for {RUN_SECONDS} s") from None
    said = (done.stderr + done.stdout).decode(errors="replace")
    if "runtime error:" in said or "AddressSanitizer" in said:
        raise Failure(SANITIZER, said[:3000])
    if done.returncode != 0:
        raise Failure(DIED, f"exit code {done.returncode} {said[:500]}")
    return (folder / "results.bin").read_bytes()


def from_reader(header: str, prefix: str) -> str:
    """With a reader of the blob instead of a pointer to it."""
    init = re.escape(f" {prefix}_init(") + "(.*), w, s\\)"
    header = re.sub(init, rf" {prefix}_init_from(\1, late_blob_reader(w, s))", header)
    return header.replace("#define", '#include "late_blob.h"\n#define', 1)


def _table(prefixes: Sequence[str]) -> str:
    declared = "".join(f"FUNCTIONS(DECLARED, {prefix})\n" for prefix in prefixes)
    rows = "".join(f"    {{FUNCTIONS(POINTER, {prefix})}},\n" for prefix in prefixes)
    return f'#include "programs.h"\n\n{declared}\nconst program programs[] = {{\n{rows}}};\n'


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _script(item: Item, bare: bool) -> bytes:
    """What the driver is to do."""
    report = item.report
    weights = item.blob
    outside = [tensor for tensor in (*report.inputs, *report.outputs) if tensor.room]
    parts = [_words(len(weights)), weights, _words(len(report.arenas))]
    parts += [_words(arena.bytes, arena.align) for arena in report.arenas]
    parts += [_words(len(outside)), *(_words(tensor.room, tensor.align) for tensor in outside)]
    parts.append(_words(max(report.state_bytes, 1)))
    texts = 0
    for number, session in enumerate(item.sessions):
        parts.append(_words(RESET, (0xA5, 0x5A)[number % 2]))
        for place, inputs in enumerate(session):
            if report.state_bytes and number and place == len(session) // 2:
                parts.append(_words(SAVE, RESET, 0x33, LOAD))
            if report.given:
                sizes = given_sizes(report, inputs)
                parts.append(_words(RESIZE, len(report.given), *(sizes[name] for name in report.given)))
            for tensor in report.inputs:
                where = _place(tensor, report.inputs, outside)
                if tensor.dtype is string:
                    given = encoded(inputs[tensor.name])
                    texts += sum(len(text) + 17 for text in given)
                    parts.append(_words(TEXTS, *where, len(given)))
                    parts += [_words(len(text)) + text for text in given]
                else:
                    content = to_bytes(tensor.in_memory(inputs[tensor.name]), tensor.dtype)
                    parts += [_words(INPUT, *where, len(content)), content]
            parts.append(_words(RUN))
            for index, tensor in enumerate(report.outputs):
                where = _place(tensor, report.outputs, outside)
                if tensor.dtype is string:
                    if not tensor.is_static:
                        raise Failure("skipped", "texts of free sizes")
                    parts.append(_words(OUTPUT_TEXTS, *where, prod(tensor.static_shape)))
                elif tensor.is_static:
                    parts.append(_words(OUTPUT, *where, tensor.nbytes))
                else:
                    bits = tensor.dtype.bits
                    parts.append(_words(SHAPED, *where, index, len(tensor.shape), bits))
    parts.append(_words(END))
    rooms = [len(weights) + 64 * 4, *(arena.bytes + arena.align * 4 for arena in report.arenas), report.state_bytes]
    rooms += [tensor.room + 4 * tensor.align for tensor in outside]
    room = sum(rooms) + texts + 256 * (len(rooms) + 4) + 65536
    if room > (ROOM_OF_BOARDS if bare else ROOM):
        raise Failure("skipped", "too large for the memory that it is run in")
    return b"".join(parts)


def _place(tensor: Tensor, among: Sequence[Tensor], outside: Sequence[Tensor]) -> tuple[int, int]:
    if tensor.room:
        return 1, next(number for number, other in enumerate(outside) if other is tensor)
    return 0, [other for other in among if not other.room].index(tensor)


@dataclass
class _Reader:
    content: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        found = self.content[self.at : self.at + count]
        if len(found) < count:
            raise Failure(DIED, "its results are incomplete")
        self.at += count
        return found

    def word(self) -> int:
        return int.from_bytes(self.take(4), "little")


def _results(item: Item, reader: _Reader) -> list[list[dict[str, np.ndarray]]] | Failure:
    report, failed, found = item.report, 0, []
    for number, session in enumerate(item.sessions):
        failed = reader.word() or failed
        runs: list[dict[str, np.ndarray]] = []
        for place, _ in enumerate(session):
            if report.state_bytes and number and place == len(session) // 2:
                failed = reader.word() or failed
            if report.given:
                failed = reader.word() or failed
            failed = reader.word() or failed
            if not failed:
                runs.append({tensor.name: _output(tensor, reader) for tensor in report.outputs})
        found.append(runs)
    last = reader.word()
    if failed or last:
        code = failed or last
        return Failure(STATUS_CODE, STATUS.get(code, f"status {code}"))
    return found


def _output(tensor: Tensor, reader: _Reader) -> np.ndarray:
    if tensor.dtype is string:
        texts = np.empty(prod(tensor.static_shape), object)
        for number in range(texts.size):
            texts[number] = reader.take(reader.word()).decode(errors="surrogateescape")
        return texts.reshape(tensor.static_shape)
    shape = tensor.static_shape if tensor.is_static else tuple(reader.word() for _ in tensor.shape)
    return from_bytes(reader.take(tensor.dtype.nbytes(prod(shape))), tensor.dtype, shape)
