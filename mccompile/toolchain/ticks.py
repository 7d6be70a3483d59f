"""Instructions of each step under emulation: behind each of them the program calls a function of its own, whose address
tells the counter which step that was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from .image import symbols
from .wasm import MAGIC

_TICK = 'void mcc_tick_N(void);\n__attribute__((noinline)) void mcc_tick_N(void) { __asm__ volatile("/* N */"); }\n'


class Counting(Protocol):
    """A program that is emulated."""

    program: Path

    def counted(
        self, inputs: Mapping[str, np.ndarray], host_cc: str, more: str = "", state: bytes | None = None
    ) -> tuple[list[str], tuple[int, ...]]: ...


def ticks_source(steps: int) -> str:
    """The C that is told when steps end. Equal functions would be merged: each has other assembly."""
    made = "".join(_TICK.replace("N", str(number)) for number in range(steps))
    cases = "".join(f"    case {number}: mcc_tick_{number}(); break;\n" for number in range(steps))
    head = "void mcc_host_tick(int step);\nvoid mcc_host_tick(int step)\n"
    return f"{made}{head}{{\n    switch (step) {{\n{cases}    }}\n}}\n"


def count_steps(
    model: Counting, inputs: Mapping[str, np.ndarray], whole: int, steps: int, state: bytes | None = None
) -> list[int]:
    """Instructions of each step in a run; of a build with so many ticks. `whole`: of a run without them, by which the
    cost of telling is known. It begins with `state`, or that after init. Nothing where programs are counted in another
    way."""
    if model.program.read_bytes().startswith(MAGIC):
        return []
    places = symbols(model.program)
    known = model.program.with_name("ticks.txt")
    known.write_text("".join(f"{places.get(f'mcc_tick_{n}', 0):x}\n" for n in range(steps)), encoding="utf-8")
    lines, _ = model.counted(inputs, "gcc", f",ticks={known}", state)
    total, *pairs = lines[1].split()
    counts = [int(pair.partition(":")[0]) for pair in pairs]
    calls = [int(pair.partition(":")[2]) for pair in pairs]
    telling = max(0, int(total) - whole) / max(1, sum(calls))
    return [max(0, round(count - telling * times)) for count, times in zip(counts, calls, strict=True)]
