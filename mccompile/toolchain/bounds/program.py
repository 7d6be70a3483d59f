"""The bound of a function of a linked program for Cortex-M."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..disassembly import functions
from ..image import address
from .blocks import Code
from .memory import Image
from .running import Run, Unbounded


@dataclass(frozen=True)
class Bound:
    instructions: int | None  # of a run; None: something has no bound
    without: tuple[str, ...]  # what has none: where, and why


def bound(program: Path, compiler: str, function: str, aligned: int = 0) -> Bound:
    """Of a function whose first argument is the model's struct, in which so many words lie first that are addresses at
    multiples of 8."""
    tools = compiler.removesuffix("gcc")
    code = Code([*functions(disassembled(program, compiler).splitlines())], Image(program))
    run = Run(code, aligned)
    try:
        most = run.of(address(program, function)).cost
    except Unbounded as why:
        return Bound(None, (_told(program, tools, code, why.at, why),))
    told = [_told(program, tools, code, site, why) for site, why in sorted(run.without.items())]
    return Bound(None if told else most, tuple(told))


def disassembled(program: Path, compiler: str) -> str:
    machine = "-marmv8.1-m.main"  # which knows vectors, and has all that older ones have
    command = [compiler.removesuffix("gcc") + "objdump", "-d", "--no-show-raw-insn", machine, str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _told(program: Path, tools: str, code: Code, site: int, why: Unbounded) -> str:
    """With the line of the call, where it is another one."""
    command = [f"{tools}addr2line", "-s", "-e", str(program), hex(site), hex(why.at)]
    call, line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[:2]
    called = f", called at {call.split(' ')[0]}" if site != why.at else ""
    return f"{code.function(why.at)} at {why.at:#x} ({line.split(' ')[0]}{called}): {why.why}"
