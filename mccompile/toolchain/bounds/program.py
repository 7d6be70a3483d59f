"""The bound of a function of a linked program for Cortex-M."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ...base.records import dataclass
from ..disassembly import functions
from ..image import address
from .blocks import Code
from .memory import Image
from .running import Run, Unbounded


@dataclass(frozen=True)
class Loop:
    function: str
    offset: int  # of its first instruction
    line: str  # of the source
    turns: int  # each time it is entered


@dataclass(frozen=True)
class Bound:
    instructions: int | None  # of a run; None: something has no bound
    without: tuple[str, ...]  # what has none: where, and why
    functions: Mapping[str, int] = field(default_factory=dict)  # instructions of all calls in a run, by name
    loops: Sequence[Loop] = ()  # of functions that a run calls
    dearest: Mapping[str, int] = field(default_factory=dict)  # the most instructions of one call, by name
    each: Sequence[int] = ()  # instructions of a run for each of what the struct may hold; the most counts


def bound(
    program: Path, compiler: str, function: str, aligned: int = 0, held: Sequence[Mapping[int, int]] = ({},)
) -> Bound:
    """Of a function whose first argument is the model's struct, in which so many words lie first that are addresses at
    multiples of 8. `held`: numbers of its words by offset, which are one of these in each run."""
    tools = compiler.removesuffix("gcc")
    code = Code([*functions(disassembled(program, compiler).splitlines())], Image(program))
    run = Run(code, aligned)
    costs, most = [], dict[int, int]()
    try:
        for words in held:
            ended = run.of(address(program, function), words)
            costs.append(ended.cost)
            most |= {at: max(taken, most.get(at, 0)) for at, taken in ended.calls.items()}
            if run.without:
                break
    except Unbounded as why:
        return Bound(None, (_told(program, tools, code, why.at, why),))
    told = [_told(program, tools, code, site, why) for site, why in sorted(run.without.items())]
    if told:
        return Bound(None, tuple(told))
    calls = {code.function(at): instructions for at, instructions in most.items()}
    heads = sorted(run.turns)
    lines = _lines(program, tools, heads)
    loops = [
        Loop(code.function(at), at - code.starts[at].start, line, run.turns[at])
        for at, line in zip(heads, lines, strict=True)
    ]
    dearest = {code.function(at): run.dearest[at] for at in most}
    return Bound(max(costs), (), dict(sorted(calls.items())), tuple(loops), dearest, tuple(costs))


def disassembled(program: Path, compiler: str) -> str:
    machine = "-marmv8.1-m.main"  # which knows vectors, and has all that older ones have
    command = [compiler.removesuffix("gcc") + "objdump", "-d", "--no-show-raw-insn", machine, str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _told(program: Path, tools: str, code: Code, site: int, why: Unbounded) -> str:
    """With the line of the call, where it is another one."""
    call, line = _lines(program, tools, [site, why.at])
    called = f", called at {call}" if site != why.at else ""
    return f"{code.function(why.at)} at {why.at:#x} ({line}{called}): {why.why}"


def _lines(program: Path, tools: str, places: Sequence[int]) -> list[str]:
    """Of the source."""
    command = [f"{tools}addr2line", "-s", "-e", str(program)]
    asked = "".join(f"{at:#x}\n" for at in places)
    found = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    return [line.split(" ")[0] for line in found.splitlines()]
