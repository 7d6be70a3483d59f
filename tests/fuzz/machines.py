"""On what machines programs are built and run, and by which compiler with which flags: one row each. To add one is to
add a row."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mccompile.targets import api as targets
from mccompile.toolchain.emulate import run_command

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-g1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
# With sanitizers or without optimization gcc warns of what it cannot see any more.
UNSURE = ("-Wno-maybe-uninitialized", "-Wno-array-bounds", "-Wno-stringop-overflow")


@dataclass(frozen=True)
class Machine:
    target: str  # of mccompile
    weight: float  # how often it is drawn
    compilers: tuple[str, ...] = ("gcc", "clang")  # one per batch
    levels: tuple[str, ...] = ("-O0",) * 7 + ("-O1",)
    sanitized: bool = True
    per_batch: int = 12


MACHINES = (
    Machine("generic", 8, ("gcc", "clang", "tcc", "tcc", "tcc", "tcc")),
    Machine("x86-64-v3", 2),
    Machine("x86-64-v4", 2),
    Machine("native", 1),
    # As users build: an optimizer may be wrong where the C is right.
    Machine("generic", 2, ("gcc", "gcc", "clang", "clang-19"), ("-O2", "-O3"), False),
    Machine("x86-64-v3", 1, ("gcc", "clang", "clang-19"), ("-O2", "-O3"), False),
    Machine("cortex-m4", 1.2, ("",), ("-O1", "-Os"), False),
    Machine("cortex-m55", 0.5, ("",), ("-O1",), False),
    Machine("rv32imc", 0.5, ("",), ("-O1",), False),
    Machine("aarch64", 0.5, ("",), ("-O1",), False),
    Machine("aarch64-fp16", 0.2, ("",), ("-O1",), False),
    Machine("aarch64-i8mm", 0.2, ("",), ("-O1",), False),
    Machine("armv7a", 0.2, ("",), ("-O1",), False),
    Machine("riscv64v", 0.3, ("",), ("-O1",), False),
    Machine("riscv64v256", 0.2, ("",), ("-O1",), False),
)
VECTORS = ("x86-64-v3", "x86-64-v4", "native")


@dataclass(frozen=True)
class Build:
    """A machine with the compiler and the flags of one batch."""

    machine: Machine
    compiler: str
    flags: tuple[str, ...]

    @property
    def own_flags(self) -> list[str]:
        """Without those that the target needs, which what mccompile writes has itself."""
        return [flag for flag in self.flags if flag not in _target(self.machine.target).cflags]

    @property
    def is_bare(self) -> bool:
        return "-M" in self.command

    @property
    def command(self) -> list[str]:
        """What runs the program; nothing where that is this machine."""
        found = _target(self.machine.target)
        return run_command(found) if found.run else []


@cache
def _target(name: str) -> targets.Target:
    return targets.load(name)


def draw(machine: Machine, chance: np.random.Generator) -> Build:
    target = _target(machine.target)
    there = [name for name in machine.compilers if not name or shutil.which(name)]
    compiler = str(chance.choice(there)) or target.compiler
    level = str(chance.choice(machine.levels))
    if compiler == "tcc":  # no sanitizers, but twenty times as quick
        return Build(machine, compiler, ("-std=c99", "-Wall", "-Werror"))
    flags = [flag for flag in target.cflags if not flag.startswith("-O")]
    extra = (*SANITIZERS, *UNSURE) if machine.sanitized else UNSURE
    if compiler.startswith("clang"):  # it is not unsure, but warns of a linker's flags where it only compiles
        extra = (*(flag for flag in extra if flag not in UNSURE), "-Wno-unused-command-line-argument")
    return Build(machine, compiler, (*flags, level, *WARNINGS, *extra))


@cache
def available(names: tuple[str, ...] = ()) -> tuple[Machine, ...]:
    """The machines asked for, or all that can be built and run here."""
    found = []
    native = targets.load("native")
    for machine in MACHINES:
        target = targets.load(machine.target)
        if names and machine.target not in names:
            continue
        if target.run:
            if shutil.which(target.compiler) is None or shutil.which(run_command(target)[0]) is None:
                continue
        elif not set(target.isas) <= set(native.isas):
            continue
        found.append(machine)
    return tuple(found)


def one_each(there: Sequence[Machine]) -> list[Machine]:
    """The first row of each target."""
    found: dict[str, Machine] = {}
    for machine in there:
        found.setdefault(machine.target, machine)
    return list(found.values())
