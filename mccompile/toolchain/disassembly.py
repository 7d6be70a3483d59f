"""How much stack each function of a linked program takes, from its disassembly.

Instructions are followed along all paths: every change of the stack pointer, every call at the depth where it stands.
Invariant: what cannot be followed (a stack pointer that is computed, a call by pointer, a depth that grows in a loop)
has no bound; it is never guessed. Instructions that no path reaches, as behind tables of jumps, are followed from the
deepest place known before.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..base.records import dataclass
from .image import symbols
from .stack import Frame

_FUNCTION = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
_TARGET = re.compile(r"\b([0-9a-f]+) <([^>+]+)(?:\+0x[0-9a-f]+)?>")
_REGISTERS = re.compile(r"\{([^}]*)\}")
_NUMBER = re.compile(r"#?(-?\d+)$")
_SAVED = re.compile(r"__riscv_save_(\d+)$")
_RISCV_BRANCHES = [f"b{test}{end}" for test in ("eq", "ne", "lt", "ge", "gt", "le") for end in ("", "u", "z")]
_MVE = ("14", "15")  # objdump's words for vectors of narrow elements, whose register of 3 bits is not sp, as it says
_ARM_CONDITIONS = "eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"


@dataclass(frozen=True)
class Instruction:
    at: int
    name: str
    operands: str


@dataclass(frozen=True)
class _Effect:
    """What an instruction does to the stack and to where execution goes on."""

    taken: int | None = 0  # bytes; None: unknown
    callee: str = ""
    by_pointer: bool = False  # it goes on where a register says
    jump: int | None = None
    falls: bool = True  # to the next instruction


class Arm:
    """Thumb code of Cortex-M."""

    _CONDITIONAL = re.compile(rf"^(.*?)({_ARM_CONDITIONS})?(?:\.[nw])?$")
    _SHORT = ("bl", "bls", "blt", "ble", "cbz", "cbnz", "bcs", "mls", "vmls", "teq", "movs", "adds", "subs", "lsls")

    def effect(self, code: Instruction, own: range) -> _Effect:
        name, sometimes = self._parted(code.name)
        text = code.operands
        if name.startswith("."):  # data
            return _Effect(falls=False)
        if name in ("bl", "blx", "b", "bx", "cbz", "cbnz"):
            return self._branch(name, sometimes or name.startswith("cb"), text, own)
        if name in ("tbb", "tbh"):  # a table of jumps
            return _Effect(falls=False)
        taken = self._taken(name, text)
        listed = name in ("pop", "ldmia", "ldm") and re.search(r"\{[^}]*\bpc\b", text)
        if listed or text.startswith("pc, [sp"):
            return _Effect(falls=sometimes)
        if sometimes and taken is not None and taken < 0:
            taken = 0  # may not happen
        return _Effect(taken)

    def _parted(self, name: str) -> tuple[str, bool]:
        bare = name.removesuffix(".n").removesuffix(".w")
        if bare in self._SHORT:
            return bare, False
        found = self._CONDITIONAL.match(bare)
        assert found is not None
        return found[1], bool(found[2])

    def _branch(self, name: str, sometimes: bool, text: str, own: range) -> _Effect:
        goal = _TARGET.search(text)
        if name == "bx":
            return _Effect(falls=sometimes) if text.strip() == "lr" else _Effect(by_pointer=True, falls=sometimes)
        if goal is None:
            return _Effect(by_pointer=True, falls=True)
        place = int(goal[1], 16)
        if name in ("bl", "blx") and (place not in own or place == own.start):  # else a far jump of Thumb-1
            return _Effect(callee=goal[2])
        if place in own:
            return _Effect(jump=place, falls=sometimes)
        return _Effect(callee=goal[2], falls=sometimes)

    def _taken(self, name: str, text: str) -> int | None:
        written = [word.strip() for word in re.sub(r"\{[^}]*\}", "", text).split(",")]
        if name in ("push", "pop", "vpush", "vpop"):
            return _bytes_of(text) * (-1 if name in ("pop", "vpop") else 1)
        if name.startswith(("ldc", "stc")) and written[0] in _MVE:
            return 0
        if written[0] == "sp!":
            return _bytes_of(text) * (1 if "db" in name else -1)
        if name.startswith(("ldm", "stm", "vldm", "vstm")):
            return 0
        if writeback := re.search(r"\[sp, *#(-?\d+)\]!", text):
            return -int(writeback[1])
        if behind := re.search(r"\[sp\], *#(-?\d+)", text):
            return -int(behind[1])
        if written[0] != "sp" or name in ("cmp", "str", "strd", "vstr"):
            return 0
        number = _NUMBER.match(written[-1])
        if name in ("sub", "subw", "subs", "add", "addw", "adds") and number and written[-2] in ("sp", written[0]):
            return int(number[1]) * (1 if name.startswith("sub") else -1)
        return None


class RiscV:
    """RV32 and RV64, with compressed instructions. GCC's __riscv_save_N takes a part of its caller's frame."""

    def __init__(self, word: int) -> None:
        self.word = word  # bytes of a register

    def effect(self, code: Instruction, own: range) -> _Effect:
        name, text = code.name.removeprefix("c."), code.operands
        goal = _TARGET.search(text)
        if name.startswith(".") or name in ("ret", "ebreak"):
            return _Effect(falls=False)
        if name in _RISCV_BRANCHES or name in ("j", "jal", "jalr", "jr", "call", "tail"):
            return self._branch(name, text, goal, own)
        words = [word.strip() for word in text.partition("#")[0].split(",")]
        if words[0] != "sp" or name in ("sw", "sd"):
            return _Effect()
        number = _NUMBER.match(words[-1])
        known = name in ("addi", "add", "addi16sp") and number is not None and words[-2] == "sp"
        return _Effect(-int(number[1]) if known and number else None)

    def _branch(self, name: str, text: str, goal: re.Match[str] | None, own: range) -> _Effect:
        links = name in ("call", "jalr") or (name == "jal" and not text.startswith("zero"))
        if goal is None:
            returns = name == "jr" and text.strip() in ("ra", "t0")
            return _Effect(falls=False) if returns else _Effect(by_pointer=True, falls=links)
        if saved := _SAVED.match(goal[2]):
            return _Effect(16 * -(-self.word * (int(saved[1]) + 1) // 16))
        place = int(goal[1], 16)
        if name in _RISCV_BRANCHES and place in own:
            return _Effect(jump=place)
        if not links and place in own:
            return _Effect(jump=place, falls=False)
        return _Effect(callee=goal[2], falls=links or name in _RISCV_BRANCHES)


def _bytes_of(text: str) -> int:
    """Of the registers that an instruction of Arm lists."""
    found = _REGISTERS.search(text)
    total = 0
    for part in found[1].split(",") if found else ():
        first, _, last = part.strip().partition("-")
        width = {"d": 8, "s": 4, "q": 16}.get(first[0], 4)
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        total += width * count
    return total


def frames(program: Path, compiler: str) -> dict[str, Frame]:
    """Of all functions of a program for bare metal, by all their names; none where there is no disassembler beside the
    compiler."""
    word = 8 if program.read_bytes()[4] == 2 else 4
    machine = Arm() if compiler.startswith("arm-") else RiscV(word) if compiler.startswith("riscv") else None
    if machine is None or not compiler.endswith("-gcc"):
        return {}
    command = [compiler.removesuffix("gcc") + "objdump", "-d", "--no-show-raw-insn", str(program)]
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    at = {code[0].at: frame_of(code, machine) for _, code in functions(text.splitlines())}
    return {name: at[place] for name, place in symbols(program).items() if place in at}


def functions(lines: Iterable[str]) -> Iterable[tuple[str, list[Instruction]]]:
    """The functions of a disassembly, with their instructions."""
    name, code = "", list[Instruction]()
    for line in lines:
        if head := _FUNCTION.match(line):
            if code:
                yield name, code
            name, code = head[2], []
        elif found := _INSTRUCTION.match(line):
            operands = re.split("[;@]", found[3])[0].strip()
            code.append(Instruction(int(found[1], 16), found[2], operands))
    if code:
        yield name, code


def frame_of(code: list[Instruction], machine: Arm | RiscV) -> Frame:
    """By the deepest path to each instruction."""
    places = {instruction.at: number for number, instruction in enumerate(code)}
    own = range(code[0].at, code[-1].at + 1)
    frame, depths = Frame(), dict[int, int]()
    most_steps = 50 * len(code)  # depths that grow in a loop never settle
    for start in range(len(code)):
        if start in depths:
            continue
        open_places = [(start, frame.deepest or 0)]
        while open_places:
            number, depth = open_places.pop()
            if depths.get(number, -1) >= depth:
                continue
            depths[number] = depth
            most_steps -= 1
            effect = machine.effect(code[number], own)
            called = effect.by_pointer and (effect.falls or depth == 0)  # else within the function, as by a table
            if effect.taken is None or called or most_steps < 0:
                return Frame(None)
            depth = max(depth + effect.taken, 0)
            frame.deepest = max(frame.deepest or 0, depth)
            if effect.callee:
                frame.calls[effect.callee] = max(frame.calls.get(effect.callee, 0), depth)
            if effect.jump in places:
                open_places.append((places[effect.jump], depth))
            if effect.falls and number + 1 < len(code):
                open_places.append((number + 1, depth))
    return frame
