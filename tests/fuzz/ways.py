"""How a program is written and built besides the fuzzer's own way: what mccompile writes for a Makefile, for cmake, for
several targets in one folder, or for a processor that picks its code. To add a way is to add a row."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from mccompile.driver import Options, arrange, compile_jobs
from mccompile.emit.building import archiver
from mccompile.emit.folder import MARK
from mccompile.emit.package import Package
from mccompile.targets import api as targets
from mccompile.toolchain.loaded import loaded
from mccompile.toolchain.model_report import read_report

from .machines import MACHINES, VECTORS, Build, Machine
from .subject import Subject

SHARE = 0.06  # of the programs
Chance = np.random.Generator
Commands = list[list[str]]


@dataclass(frozen=True)
class Written:
    """A program as it is written: its package, all that it is made of, and the file of its blob."""

    package: Package
    winograd: bool
    files: Mapping[str, bytes]
    blob: bytes


@dataclass(frozen=True)
class Way:
    suits: Callable[[Machine, Options], bool]
    layout: str = ""  # of --package
    several: bool = False  # targets
    module: bool = False
    command: Callable[[Path, str, Build], tuple[Commands, Path]] | None = None  # builds a library; None: as any program


def _make(folder: Path, prefix: str, build: Build) -> tuple[Commands, Path]:
    tools = [] if build.command else [f"CC={build.compiler}"]
    name = f"lib{prefix}.a"
    return [["make", "-s", "-C", str(folder), *tools, f"CFLAGS={' '.join(build.own_flags)}", name]], folder / name


def _cmake(folder: Path, prefix: str, build: Build) -> tuple[Commands, Path]:
    made = folder / "build"
    tools = [f"-DCMAKE_C_COMPILER={build.compiler}", f"-DCMAKE_C_FLAGS={' '.join(build.own_flags)}"]
    configure = ["cmake", "-S", str(folder), "-B", str(made), *tools]
    return [configure, ["cmake", "--build", str(made), "--target", prefix]], made / f"lib{prefix}.a"


def _module(folder: Path, prefix: str, build: Build) -> tuple[Commands, Path]:
    """The module in a library with the functions of the model's header, as `check` runs it."""
    target = targets.load(build.machine.target)
    compiler = target.compiler if build.command else "gcc"
    flags = [flag for flag in target.cflags if not flag.startswith("-O")]
    source, made = folder / f"{prefix}_loaded.c", folder / f"lib{prefix}.a"
    source.write_text(loaded(read_report(folder), folder / f"{prefix}.mcm"), encoding="utf-8")
    words = [compiler, *flags, "-O1", f"-I{folder}", f"-I{folder / 'runtime'}"]
    compiled = [*words, "-c", str(source), "-o", f"{source}.o"]
    make = ["make", "-s", "-C", str(folder), f"CC={compiler}", "CFLAGS=-O1", f"{prefix}.mcm"]
    archive = ["sh", "-c", f'{archiver(compiler).replace("$(shell ", "$(")} rcs "$@"', "", str(made), f"{source}.o"]
    return [make, compiled, archive], made


def _is_module(machine: Machine, options: Options) -> bool:
    refused = (options.single_file, options.threads > 1, options.profile, options.dump_values)
    refused = (*refused, options.functions, options.accelerator)
    refused = (*refused, any(form.rows for form in options.inputs.values()))
    refused = (*refused, options.weights_section, options.weights_window, options.blob == "external")
    return not any((*refused, options.wrappers, options.mem))


def _is_linked(machine: Machine, options: Options) -> bool:
    alone = options.single_file or options.accelerator  # whose functions are the program's
    return not (alone or ("tcc" in machine.compilers and _needs_elf(options)))


def _needs_elf(options: Options) -> bool:
    """What tcc has no words for."""
    return options.blob == "incbin" or bool(options.weights_section)


def _has_cmake(machine: Machine, options: Options) -> bool:
    return _is_packed(machine, options) and machine.target in VECTORS and shutil.which("cmake") is not None


def _is_packed(machine: Machine, options: Options) -> bool:
    return _is_linked(machine, options) and options.blob != "incbin"


WAYS: Mapping[str, Way] = {
    "its Makefile": Way(_is_linked, command=_make),
    "--package make": Way(_is_packed, "make", command=_make),
    "--package cmake": Way(_has_cmake, "cmake", command=_cmake),
    "picked at run time": Way(lambda m, o: _is_linked(m, o) and m.target == "x86-64-v3", several=True, command=_make),
    "a module": Way(_is_module, module=True, command=_module),
    "several targets": Way(lambda m, o: _is_packed(m, o) and m.target != "native", several=True),
}


def draw(chance: Chance, options: Options, machine: Machine) -> str:
    """The name of a way; none for most."""
    suiting = [name for name, way in WAYS.items() if way.suits(machine, options)]
    return str(chance.choice(suiting)) if suiting and chance.random() < SHARE else ""


def target(name: str, options: Options, chance: Chance) -> str:
    """What is asked for with --target."""
    if not WAYS[name].several:
        return options.target
    if WAYS[name].command is not None:
        return f"{options.target},generic"
    apart = (options.target, *VECTORS)
    if options.target in VECTORS:
        apart += ("generic",)  # that would be picked at run time
    others = list(dict.fromkeys(m.target for m in MACHINES if m.target not in apart))
    pair = [options.target, str(chance.choice(others))]
    return ",".join(sorted(pair, key=lambda each: (each == "generic", each)))  # the one for all machines is the last


def written(name: str, subject: Subject, options: Options, asked: str, prefix: str, file: Path) -> Written:
    """Compiles what stands in a file, as the command line does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(subject.model, file)
    own = replace(options, name=prefix, target=asked, module=WAYS[name].module)
    packages, files = compile_jobs([(file, own)], prefix)
    found = [package for package in packages if package.plan.build.target == targets.load(options.target).name]
    blob = files[f"{prefix}.mcb"] if f"{prefix}.mcb" in files else files[f"{prefix}-{options.target}.mcb"]
    if WAYS[name].layout:
        files = arrange(files, WAYS[name].layout, prefix, options)
    elif WAYS[name].several and WAYS[name].command is None:
        files = {**files, MARK: found[0].files[MARK]}  # how the code behind its condition is run
    winograd = any("f32_nhwc_winograd" in function.kernel.id for each in packages for function in each.plan.functions)
    return Written(found[0], winograd, files, blob)


def library(name: str, folder: Path, prefix: str, build: Build) -> tuple[Sequence[Sequence[str]], Path] | None:
    """The commands that build it, and what they make; None where it is built as any program is."""
    command = WAYS[name].command if name else None
    return command(folder, prefix, build) if command else None
