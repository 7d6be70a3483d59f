"""Where a program lies: in an emulated machine of the board's core, and in the chip itself.

Invariant: addresses of chips are facts of `chips.toml`; for a chip that it does not have, nothing is guessed.
"""

from __future__ import annotations

import shlex
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from ..base.records import dataclass
from ..targets.api import Target
from ..targets.boards.catalogue import Board
from ..toolchain.boards import BOARDS, Region, Timer, Uart, linker_script
from ..toolchain.boards import Board as Machine

_CHIPS = Path(__file__).with_name("chips.toml")
_VECTORS = 0x40  # bytes of the exceptions of the core; nothing else is used
_WEIGHTS = "*_weights.c.o*"  # as CMake names objects


@dataclass(frozen=True)
class Emulated:
    command: str  # of the emulator, without the line and the program
    script: str
    uart: Uart
    timer: Timer
    options: tuple[str, ...]


@dataclass(frozen=True)
class OnChip:
    script: str


def emulated(target: Target, ram: int, weights: int) -> Emulated | None:
    """The machine with the target's core that holds so much; none where nothing emulates it."""
    words = shlex.split(target.run)
    if "-M" not in words or words[words.index("-M") + 1] not in BOARDS:
        return None
    at = words.index("-M") + 1
    machine = BOARDS[words[at]]
    while machine.larger and (ram > machine.data.bytes or weights > machine.code.bytes // 2):
        machine = BOARDS[machine.larger]
    words[at] = machine.machine
    serial = words.index("-serial")
    words = [*words[:serial], *words[serial + 2 :]]
    return Emulated(" ".join(words), linker_script(machine, _WEIGHTS), machine.uart, machine.timer, machine.options)


def on_chip(board: Board) -> OnChip | None:
    """Its own memories; none where nothing says where they lie."""
    found = next((at for pattern, at in _chips().items() if _fits(pattern, board)), None)
    if found is None:
        return None
    flash, ram = found["flash"], found["ram"]
    code = Region(flash + _VECTORS, board.flash - _VECTORS)
    machine = Machine("", Region(flash, _VECTORS), code, Region(ram, board.ram), code)
    return OnChip(linker_script(machine, _WEIGHTS))


def _fits(pattern: str, board: Board) -> bool:
    return fnmatchcase(board.key, pattern) or fnmatchcase(board.chip.lower(), pattern)


def _chips() -> dict[str, dict[str, int]]:
    return tomllib.loads(_CHIPS.read_text(encoding="utf-8"))
