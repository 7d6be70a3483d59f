"""One model as a program of libFuzzer (target.c) with sanitizers, and what a run of it found."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import mccompile.toolchain
from mccompile.base.dtypes import string
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.targets import api as targets
from mccompile.toolchain.build import compile_program, find_compiler
from mccompile.toolchain.elements import to_bytes
from mccompile.toolchain.host_model import host_model_header
from mccompile.toolchain.model_report import Report, Tensor, read_report

from .models import all_programs

HERE = Path(__file__).parent
FLAGS = ("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O1", "-g1", "-Wno-unused-function")
# C in place of instructions that are not here
OF_BOARDS = ("-DMCC_DSP_PORTABLE", "-DMCC_HELIUM_PORTABLE", "-DMCC_SCALAR_PORTABLE")
SANITIZERS = ("-fsanitize=fuzzer,address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
OWN_BLOB, ALL_RIGHT, DATA = 0, 1, 2  # what the first byte of an input says of the others, see target.c
HANG = 20  # seconds
_SUMMARY = re.compile(r"blobs taken (\d+) refused (\d+) runs (\d+) ended (\d+)")
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: (\d+)")


@dataclass(frozen=True)
class Program:
    file: Path
    seeds: Path  # a folder: blobs as the compiler made them
    longest: int  # input


@dataclass(frozen=True)
class Found:
    """What a run of a program came to; numbers of blobs and of runs are known only where it went to its end."""

    executions: int
    taken: int
    refused: int
    runs: int
    finding: str  # empty: none

    def __str__(self) -> str:
        counts = f"{self.executions} executions, {self.taken} blobs taken, {self.refused} refused, {self.runs} runs"
        return f"{counts}, {self.finding or 'no finding'}"


def runs_here(options: Options) -> bool:
    """Can this machine run the target's code? That of boards is C where it is not assembly."""
    wanted = targets.load(options.target)
    return bool(wanted.run) or set(wanted.isas) <= set(targets.load("native").isas)


def build(name: str, folder: Path) -> Program:
    make, options = all_programs()[name]
    graph = load_proto(make(), dims=options.dims, bounds=options.bounds)
    package = compile_graph(graph, options, f"m_{name}")
    out = folder / "code"
    package.write(out, force=True)
    report = read_report(out)
    prefix = report.prefix
    own = out / f"{prefix}.mcb"
    sources = [f"{prefix}{part}.c" for part in ("_kernels", "", "_weights")]
    unit = folder / f"{name}.c"
    included = "".join(f'#include "{source}"\n' for source in (*sources, "host.c", "target.c"))
    unit.write_text(included.replace('#include "host.c"', '#undef _POSIX_C_SOURCE\n#include "host.c"'))
    (folder / "mcc_host_model.h").write_text(host_model_header(report))
    (folder / "fuzz_model.h").write_text(_description(report, own.stat().st_size))
    target = options.resolved_target()
    flags = OF_BOARDS if target.run else [flag for flag in target.cflags if flag.startswith("-m")]
    includes = [folder, out, out / "runtime", HERE, Path(mccompile.toolchain.__file__).parent]
    file = compile_program(find_compiler("clang"), [unit], includes, folder / name, (*FLAGS, *flags, *SANITIZERS))
    blob = own.read_bytes()
    begin = int.from_bytes(blob[32:40], "little")
    seeds = folder / "seeds"
    shutil.rmtree(seeds, ignore_errors=True)  # with what an earlier run has found
    seeds.mkdir()
    for how, contents in ((OWN_BLOB, blob), (ALL_RIGHT, blob), (DATA, blob[begin:])):
        (seeds / str(how)).write_bytes(bytes([how]) + contents)
    return Program(file, seeds, len(blob) + 65)


def fuzz(program: Program, limits: Sequence[str], seed: int) -> Found:
    """`limits`: options of libFuzzer that end it, such as -runs=1000. It ends at the first finding, whose input it
    leaves beside the program."""
    command = [
        str(program.file), *limits, f"-seed={seed}", f"-max_len={program.longest}", f"-timeout={HANG}",
        "-len_control=0", "-print_final_stats=1", f"-artifact_prefix={program.file.parent}/", str(program.seeds),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    executions = _EXECUTIONS.search(done.stderr)
    summary = _SUMMARY.search(done.stderr)
    taken, refused, runs = (int(number) for number in summary.groups()[:3]) if summary else (0, 0, 0)
    finding = "" if done.returncode == 0 and summary else _finding(done.stderr)
    return Found(int(executions[1]) if executions else 0, taken, refused, runs, finding)


def _finding(said: str) -> str:
    lines = [line for line in said.splitlines() if "runtime error" in line or "ERROR:" in line or "Test unit" in line]
    return "; ".join(lines) or "it ended without a summary: " + said[-500:]


def _description(report: Report, weights_bytes: int) -> str:
    """fuzz_model.h."""
    chance = np.random.default_rng(1)
    lines: list[str] = []
    for way, tensors in (("input", report.inputs), ("output", report.outputs)):
        rows = []
        for number, tensor in enumerate(tensors):
            start = "NULL"
            if way == "input" and tensor.dtype is string:
                start = f"(const uint8_t *)elements_{number}"
                lines.append(f"static const mcc_string elements_{number}[] = {{{', '.join(_texts(tensor))}}};")
            elif way == "input" and tensor.nbytes:
                start = f"(const uint8_t *)elements_{number}"
                words = np.frombuffer(_elements(tensor, chance).ljust(-(-tensor.nbytes // 8) * 8, b"\0"), "<u8")
                lines.append(f"static const uint64_t elements_{number}[] = {{{', '.join(f'{w}u' for w in words)}}};")
            rank = -1 if tensor.is_static else len(tensor.shape)
            is_string = int(tensor.dtype is string)
            element = max(tensor.dtype.bits // 8, 1)
            rows.append(f"{{{tensor.nbytes}, {tensor.room}, {tensor.align}, {element}, {rank}, {start}, {is_string}}}")
        lines.append(f"static const tensor {way}s[] = {{{', '.join([*rows, '{0, 0, 0, 0, 0, NULL, 0}'])}}};")
    arenas = [(arena.bytes, arena.align) for arena in report.arenas]
    for what, column in (("bytes", [bytes for bytes, _ in arenas]), ("aligns", [align for _, align in arenas])):
        lines.append(f"static const size_t arena_{what}[] = {{{', '.join(map(str, [*column, 0]))}}};")
    highest, lowest = ([bounds[end] for bounds in report.given.values()] or [0] for end in (1, 0))
    each = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in [highest, *([lowest] if report.given else [])])
    lines.append(f"static const ptrdiff_t sizes[][{len(highest)}] = {{{each}}};")
    lines.append(f"#define STATE_BYTES {report.state_bytes}u\n#define WEIGHTS_BYTES {weights_bytes}u")
    lines.append(f"#define weights_of_model ((const uint8_t *){report.prefix}_weights)")
    return "\n".join(lines) + "\n"


def _elements(tensor: Tensor, chance: np.random.Generator) -> bytes:
    """At the highest sizes: numbers some of which are indices, and some are not."""
    count = tensor.nbytes * 8 // tensor.dtype.bits
    numbers = chance.integers(0, 2, count) if tensor.dtype.kind == "bool" else chance.integers(-4, 9, count)
    return to_bytes((numbers * (0.5 if tensor.dtype.is_float else 1)).astype(tensor.dtype.numpy), tensor.dtype)


def _texts(tensor: Tensor) -> list[str]:
    count = tensor.nbytes * 8 // tensor.dtype.bits
    texts = ["mcc", "Hello", "", "1.5", "hElLo w"]
    return [f'{{.data = "{text}", .size = {len(text)}u}}' for text in (texts * count)[:count]]
