"""Machine code as functions of Python: one for each block of instructions up to a branch, a call or a place that others
jump to. It does to registers what the block does, and gives where execution goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...base.records import dataclass
from ..disassembly import Instruction
from . import tables, thumb, values, vectors
from .memory import Image, Memory

FLAGS, LANES, CORE = 15, 16, vectors.FIRST  # flags; elements of a vector in a loop of letp; s0 to s31
Registers = list[Any]
JUMP, CALL, RETURN, UNKNOWN = range(4)  # what a block ends with
_GOAL = re.compile(r"\b([0-9a-f]+) <")
_LANES = {"8": 16, "16": 8, "32": 4, "64": 2}
_NAMES: dict[str, Any] = {f"op_{name}": made for name, made in values.BINARY.items()} | {
    "unary": values.unary,
    "adc": values.adc,
    "sbc": values.sbc,
    "field": values.field,
    "meet": values.meet,
    "product": values.product,
    "KEEP": values.KEEP,
}


@dataclass(frozen=True)
class Block:
    at: int
    count: int  # instructions
    run: Callable[[Registers, Memory], Any]  # an address, or one of the above with more
    ways: tuple[int, ...]  # where it may go on in its function, as far as the code says
    last: int  # address of its last instruction
    behind: int = 0  # where a part of its own function goes back to that it calls
    goes_back: bool = False  # by the link register


class Code:
    """The code of a program."""

    def __init__(self, functions: Sequence[tuple[str, Sequence[Instruction]]], image: Image) -> None:
        self.image = image
        self.at: dict[int, Instruction] = {}
        self.names: dict[int, str] = {}
        self.starts: dict[int, range] = {}  # the function that an instruction is in
        self.follows: dict[int, int] = {}
        self.jumps: dict[int, tuple[int, ...]] = {}  # where instructions go on by a table
        heads: set[int] = set()
        begins = [*(code[0].at for _, code in functions[1:]), 0]
        for (name, code), then in zip(functions, begins, strict=True):  # one may go on as the next one
            last = code[-1].at
            own = range(code[0].at, then if then == last + 4 else last + 2)
            self.names[own.start] = name
            heads.add(own.start)
            for number, each in enumerate(code):
                if goals := tables.jumps(code, number, image):
                    self.jumps[each.at] = goals
                    heads.update(goals)
            for each, after in zip(code, [*(c.at for c in code[1:]), own.stop], strict=True):
                self.at[each.at], self.starts[each.at], self.follows[each.at] = each, own, after
                if thumb.bare(each.name)[0] in "bcwl" and (goal := _GOAL.search(each.operands)):
                    heads.add(int(goal[1], 16))
        self.heads = heads
        self._blocks: dict[int, Block] = {}

    def function(self, at: int) -> str:
        own = self.starts.get(at)
        return self.names[own.start] if own is not None else f"{at:#x}"

    def block(self, at: int) -> Block:
        found = self._blocks.get(at)
        if found is None:
            found = self._blocks[at] = _Builder(self, at).block()
        return found

    def ways(self, entry: int) -> dict[int, tuple[int, ...]]:
        """The blocks of a function, and where each may go on."""
        found: dict[int, tuple[int, ...]] = {}
        left = [entry]
        while left:
            at = left.pop()
            if at not in found:
                found[at] = self.block(at).ways
                left += found[at]
        behind = tuple(self.block(at).behind for at in found if self.block(at).behind)
        return {at: (*ways, *behind) if self.block(at).goes_back else ways for at, ways in found.items()}

    def kept(self, entry: int, around: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """Registers that calls need not keep and a function does, as compilers know of those in the same file: none of
        its instructions names them, nor do those of functions that it calls. `around`: functions that call it."""
        own, text, kept = self.starts[entry], "", {0: "r0", 1: "r1", 2: "r2", 3: "r3", 12: "ip"}
        for at in self.ways(entry):
            last = self.block(at).last
            while at in own and at != last:
                text += f" {self.at[at].operands}"
                at = self.follows[at]
            if at not in own:
                return ()
            if thumb.bare(self.at[at].name) in ("bl", "blx"):
                goal = _GOAL.search(self.at[at].operands)
                to = int(goal[1], 16) if goal else -1
                if to not in self.starts or to in around | {entry}:
                    return ()
                inner = self.kept(to, around | {entry})
                kept = {number: name for number, name in kept.items() if number in inner}
            text += f" {self.at[at].operands}"
        return tuple(number for number, name in kept.items() if not re.search(rf"\b{name}\b", text))


class _Builder:
    def __init__(self, code: Code, at: int) -> None:
        self.code = code
        self.start = at
        self.lines: list[str] = []
        self.ways: tuple[int, ...] = ()
        self.behind, self.goes_back = 0, False
        self.sometimes: list[str] = []  # conditions of the instructions that an `it` covers

    def block(self) -> Block:
        at, count, last = self.start, 0, self.start
        while True:
            each = self.code.at.get(at)
            if each is None or each.name.startswith("."):
                self._end(f"({UNKNOWN}, 'no instruction')")
                break
            count, last = count + 1, at
            if self._ends(each, self.code.follows[at]):
                break
            at = self.code.follows[at]
            if at in self.code.heads and not self.sometimes:
                self._end(str(at), at)
                break
        names = [f"r{n}" for n in range(15)]
        load = f"{', '.join(names)}, f, lanes = R[:{CORE}]"
        text = f"def run(R, m):\n    {load}\n" + "".join(f"    {line}\n" for line in self.lines)
        space = dict(_NAMES)
        exec(compile(text, f"block {self.start:#x}", "exec"), space)
        return Block(self.start, count, space["run"], self.ways, last, self.behind, self.goes_back)

    def _end(self, where: str, *ways: int) -> None:
        names = ", ".join(f"r{n}" for n in range(15))
        self.lines += [f"R[:{CORE}] = {names}, f, lanes", f"return {where}"]
        self.ways = ways

    def _either(self, condition: str, goal: int, after: int) -> None:
        """A branch whose condition is an expression of True, False or None."""
        self._end(f"({JUMP}, {goal}, {after}) if (c := {condition}) is None else {goal} if c else {after}", goal, after)

    def _ends(self, each: Instruction, after: int) -> bool:
        """Translates an instruction; whether the block ends with it."""
        name = thumb.bare(each.name)
        parts = thumb.split(each.operands)
        if self.sometimes:
            condition = self.sometimes.pop(0)
            name = _without(name, condition)
            return self._perhaps(each, name, condition, after)
        if re.fullmatch(r"it[te]{0,3}", name):
            first = parts[0]
            other = {**values.OPPOSITE, **{b: a for a, b in values.OPPOSITE.items()}}.get(first, "al")
            self.sometimes = [first if letter == "t" else other for letter in "t" + name[2:]]
            return False
        goal = _GOAL.search(each.operands)
        to = int(goal[1], 16) if goal else None
        if name[0] == "b" and name[1:] in thumb.CONDITIONS and to is not None:
            self._either(f'm.holds("{name[1:]}", f)', to, after)
            return True
        if name in ("cbz", "cbnz") and to is not None:
            test = f'm.holds("{"eq" if name == "cbz" else "ne"}", ("sub", r{thumb.register(parts[0])}, 0))'
            self._either(test, to, after)
            return True
        if (ends := self._loop(name, parts, to, after)) is not None:
            return ends
        return self._goes(each, name, parts, to, after)

    def _loop(self, name: str, parts: list[str], to: int | None, after: int) -> bool | None:
        """Loops of Armv8.1-M; whether the block ends. None: it is no such instruction."""
        kind, _, size = name.partition(".")
        if kind in ("dls", "dlstp", "wls", "wlstp"):
            self.lines.append(f"r14 = r{thumb.register(parts[1])}; lanes = {_LANES.get(size)}")
            if kind.startswith("w"):
                assert to is not None
                self._either('m.holds("eq", ("sub", r14, 0))', to, after)
            return kind.startswith("w")
        if kind in ("le", "letp") and len(parts) > 1 and to is not None:
            step = "1" if kind == "le" else "lanes"
            self.lines += [
                f'step = {step}; c = m.holds("hi", ("sub", r14, step))',
                "r14 = op_sub(r14, step) if c else None",
                "lanes = lanes if c else None",
            ]
            self._end(f"({JUMP}, {to}, {after}) if c is None else {to} if c else {after}", to, after)
            return True
        return None

    def _goes(self, each: Instruction, name: str, parts: list[str], to: int | None, after: int) -> bool:
        own = self.code.starts[each.at]
        if name in ("bl", "blx"):
            if to is not None and to in own and to != own.start:  # a far jump of Armv6-M
                self.lines.append(f"r14 = {after | 1}")
                self._end(str(to), to)
                return True
            target = str(to) if to is not None else f"r{thumb.register(parts[0])}"
            self.lines.append(f"goal = {target}")
            self.lines.append(f"r14 = {after | 1}")
            self._end(f"({CALL}, goal, {after})", after)
            return True
        if name == "b" and to is not None:
            self._end(str(to), to)
            return True
        if name == "bx":
            source = thumb.register(parts[0])
            self.goes_back = source == 14
            self._end(f"({RETURN}, r{source}, False)")
            return True
        if name in ("tbb", "tbh"):
            self._table(each, name, parts, after)
            return True
        if name == "mov" and parts[0] == "pc" and each.at in self.code.jumps:
            inner = thumb.split(self.code.at[each.at - 2].operands)[1]  # what it has loaded: [table, index]
            index = thumb.register(thumb.split(inner.strip("[]"))[1])
            self._by_table(each, index, f"r{thumb.register(parts[1])}")
            return True
        made = thumb.Translated(each, name)
        self.lines += made.lines
        if 15 in made.writes:
            self._end(f"({RETURN}, r15, {made.is_return})")
            return True
        if (parts and parts[0] == "pc") or name in ("bkpt", "udf", "svc"):
            self._end(f"({UNKNOWN}, 'a jump to a place that is computed')")
            return True
        return False

    def _table(self, each: Instruction, name: str, parts: list[str], after: int) -> None:
        inner = thumb.split(parts[0].strip("[]"))
        index = thumb.register(inner[1])
        size = 1 if name == "tbb" else 2
        if thumb.register(inner[0]) != 15:
            self._end(f"({UNKNOWN}, 'a table of jumps')")
            return
        self.lines += [
            f"w = None if r{index} is None or r{index} >> 32 else m.part({after} + {size} * r{index}, {size}, False)"
        ]
        self._by_table(each, index, f"(None if w is None else {after} + 2 * w)")

    def _by_table(self, each: Instruction, index: int | None, goal: str) -> None:
        """A jump to where an expression says, or to any entry of a table. What grows in each turn of a loop, in the
        register of the index when the block begins, chooses another entry in each: no turn stands for the others."""
        self.lines.insert(0, f"index = r{index}")
        self.lines.append(f"if index is not None and index >> {values.TURNS}: return ({UNKNOWN}, 'a counter chooses')")
        goals = self.code.jumps.get(each.at, ())
        unknown = f"({JUMP}, {', '.join(map(str, goals))})" if goals else f"({UNKNOWN}, 'a table of jumps')"
        self._end(f"{unknown} if (goal := {goal}) is None or goal >> 32 else goal & ~1", *goals)

    def _perhaps(self, each: Instruction, name: str, condition: str, after: int) -> bool:
        """An instruction that an `it` covers."""
        own = thumb.Translated(each, name)
        parts = thumb.split(each.operands)
        goal = _GOAL.search(each.operands)
        if name == "b" and goal:
            self._either(f'm.holds("{condition}", f)', int(goal[1], 16), after)
            return True
        if (
            name == "bl"
            and goal
            and self.code.starts[each.at].start < int(goal[1], 16) < self.code.starts[each.at].stop
        ):
            self.behind = after
            self.lines.append("r14 = None")
            self._either(f'm.holds("{condition}", f)', int(goal[1], 16), after)
            return True
        if name in ("bx", "bl", "blx") or 15 in own.writes or (parts and parts[0] == "pc"):
            back = "r14" if name == "bx" and parts[0] == "lr" else "r15" if 15 in own.writes else ""
            self.goes_back = back == "r14"
            if not back:
                self._end(f"({UNKNOWN}, 'a call or jump under a condition')")
                return True
            by_call = own.is_return
            self.lines.append(f'c = m.holds("{condition}", f)')
            names = ", ".join(f"r{n}" for n in range(15))
            self.lines.append(f"before = [{names}, f, lanes, *R[{CORE}:]]")
            self.lines.append("if c is not False:")
            self.lines += [f"    {line}" for line in (own.lines if name != "bx" else []) or ["pass"]]
            self.lines.append(f"    back = {back}")
            self.lines.append("    if c is None:")
            self.lines.append(f"        after = [{names}, f, lanes, *R[{CORE}:]]")
            self.lines.append(f"        R[:] = before; return ({RETURN}, back, {by_call}, {after}, after)")
            self.lines.append(f"    R[:{CORE}] = {names}, f, lanes; return ({RETURN}, back, {by_call})")
            self._end(str(after), after)
            return True
        if not own.lines:
            return False
        written = sorted(own.writes)
        self.lines.append(f'c = m.holds("{condition}", f)')
        self.lines.append("if c is not False:")
        self.lines += [f"    o{n} = r{n}" for n in written]
        self.lines += [f"    {_weak(line)}" for line in own.lines]
        if any(line.startswith("f = ") for line in own.lines):
            self.lines.append("    if c is None: f = None")
        if written:
            self.lines.append("    if c is None:")
            self.lines += [f"        r{n} = meet(o{n}, r{n})" for n in written]
        self.lines += [f"    if c is None: R[{n}] = None" for n in own.vectors]
        return False


def _weak(line: str) -> str:
    """A store that may not happen leaves nothing known."""
    if not line.startswith("m.store("):
        return line
    place = line.removeprefix("m.store(").rpartition(", ")[0]
    return f"{line} if c else m.kill({place}, 4)"


def _without(name: str, condition: str) -> str:
    """The name of an instruction without its condition."""
    stem, dot, rest = name.partition(".")
    twins = {"cs": ("cs", "hs"), "cc": ("cc", "lo"), "hs": ("cs", "hs"), "lo": ("cc", "lo")}
    for suffix in twins.get(condition, (condition,)):
        if stem.endswith(suffix):
            return stem.removesuffix(suffix) + dot + rest
    return name
