"""Programs of a test's own on an emulated Cortex-M4, and how many instructions they take between marks.

A program calls `board_count_begin` and `board_count_end` (board.h) around what is counted, and returns 0 from main."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from mccompile.targets.api import load
from mccompile.toolchain.boards import BOARDS, linker_script
from mccompile.toolchain.emulate import run_command
from mccompile.toolchain.image import address

BOARD = Path(__file__).parents[1] / "mccompile" / "toolchain" / "board"
TARGET = load("cortex-m4")
MACHINE = BOARDS["mps2-an386"]
CPP = ["-std=c++11", "-fno-exceptions", "-fno-rtti"]


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(source: Path, to: Path, *places: Path) -> Path:
    """An object, by the compiler of C or of C++."""
    is_cpp = source.suffix == ".cpp"
    flags = [flag for flag in TARGET.cflags if not (is_cpp and flag.startswith("-std="))] + (CPP if is_cpp else [])
    made = to / f"{source.stem}.o"
    compiler = TARGET.compiler.replace("gcc", "g++") if is_cpp else TARGET.compiler
    sections = ["-ffunction-sections", "-fdata-sections"]
    run(compiler, *flags, *sections, *(f"-I{p}" for p in (*places, BOARD)), "-c", source, "-o", made)
    return made


def model_objects(folder: Path, to: Path) -> list[Path]:
    """Of all sources of an output folder but its program."""
    places = (folder, folder / "runtime")
    return [compiled(path, to, *places) for path in sorted(folder.glob("*.c")) if path.name != "main.c"]


def program(objects: Sequence[Path], weights: str, to: Path) -> Path:
    script = to / "board.ld"
    script.write_text(linker_script(MACHINE, weights))
    board = [compiled(BOARD / name, to) for name in ("bare.c", "marks.c")]
    made = to / "program.elf"
    flags = [*TARGET.cflags, *MACHINE.options, "-nostartfiles", "-Wl,--gc-sections", f"-T{script}"]
    run(TARGET.compiler, *flags, *board, *objects, "-lm", "-o", made)
    return made


def instructions(made: Path) -> list[int]:
    """A number for each pair of marks that the program passes."""
    plugin, counts = made.with_name("count.so"), made.with_name("counts.txt")
    run("gcc", "-O2", "-fPIC", "-shared", BOARD / "count.c", "-o", plugin)
    begin, end = (address(made, name) for name in ("board_count_begin", "board_count_end"))
    command = run_command(TARGET)
    run(command[0], "-plugin", f"{plugin},begin={begin:#x},end={end:#x},out={counts}", *command[1:], made)
    return [int(line) for line in counts.read_text().split()]
