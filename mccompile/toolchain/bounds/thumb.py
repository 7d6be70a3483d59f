"""What instructions of Arm's Thumb do to registers and memory, as lines of Python over the functions of values.py.

Registers are locals r0 to r14 (13: the stack pointer, 14: the link register), flags `f`, memory `m`. Invariant: an
instruction that is not known here makes every register unknown that it names and does not only read memory by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..disassembly import Instruction
from . import vectors
from .values import BINARY, UNARY

CONDITIONS = ("eq", "ne", "cs", "cc", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")
REGISTERS = {f"r{number}": number for number in range(16)} | {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": 13}
REGISTERS |= {"lr": 14, "pc": 15}
_PART = re.compile(r"\{[^}]*\}!?|\[[^]]*\]!?|[^,{}\[\]]+")
_LOADS = {"ldrb": (1, False), "ldrsb": (1, True), "ldrh": (2, False), "ldrsh": (2, True)}
_STORES = {"strb": 1, "strh": 2}
_NO_RESULT = ("nop", "pld", "dsb", "isb", "dmb", "vmsr", "it", "vctp", "vpst", "vpnot", "vcmp", "vcmpe", "vpt")
_WHOLE = ("vldrw.u32", "vldrw.s32", "vstrw.32", "vstrh.16", "vstrb.8")  # words as they are in memory
_COUNTING = ("vidup", "vddup", "viwdup", "vdwdup", "vshlc")
_TWO_RESULTS = ("smull", "umull", "smlal", "umlal", "smlsl", "umaal", "lsll", "lsrl", "asrl", "sqrshrl", "sqshll")
_TWO_SHIFTED = ("srshrl", "uqrshll", "uqshll", "urshrl")
_ONE_RESULT = re.compile(
    r"(sm(la|ls|mla|mls|mul|ua|us|ul)|[us]?sat|[us]xta?[bh]|(s|u|q|sh|uh|uq|qd)(add|sub|asx|sax)|sel|bf[ic]|rev|rbit|pkh"
    r"|adc|sbc|rrx|mrs|cs(el|inc|inv|neg|et)|c(inc|inv|neg)|usada?8|add|sub|mov|mul|mla|mls|[us]qr?sh|[us]rshr)"
)
_CHOICE = re.compile(r"c(set|setm|sel|inc|inv|neg|sinc|sinv|sneg)")
_CHANGED = {"inc": "op_add({}, 1)", "inv": 'unary("mvn", {})', "neg": 'unary("neg", {})'}
_FROM_STACK = re.compile(r"\bsp!|\[sp\], #")


def split(operands: str) -> list[str]:
    return [part.strip() for part in _PART.findall(operands) if part.strip()]


def bare(name: str) -> str:
    return name.removesuffix(".n").removesuffix(".w")


def register(text: str) -> int | None:
    return REGISTERS.get(text.strip())


def listed(text: str) -> list[int]:
    """Core registers in braces."""
    found: list[int] = []
    for part in text.strip("{}!^ ").split(","):
        first, _, last = part.strip().partition("-")
        low, high = register(first), register(last or first)
        found += range(low, high + 1) if low is not None and high is not None else []
    return found


def value(text: str, shift: str = "") -> str | None:
    """An operand as an expression; None where it is not understood."""
    if (number := re.fullmatch(r"#?(-?(?:0x)?[0-9a-f]+)", text)) and (text[0] == "#" or text[0].isdigit()):
        return str(int(number[1], 0) & 0xFFFFFFFF)
    if (found := register(text)) is None or found == 15:
        return None
    if not shift:
        return f"r{found}"
    how, _, by = shift.partition(" ")
    return f"op_{how}(r{found}, {int(by.strip('#'), 0)})" if how in ("lsl", "lsr", "asr", "ror") and "#" in by else None


class Translated:
    """The lines of one instruction."""

    def __init__(self, code: Instruction, name: str) -> None:
        self.lines: list[str] = []
        self.writes: set[int] = set()
        self.vectors: set[int] = set()  # places of words of vector registers
        self.at = code.at
        self.is_return = name.startswith("pop") or _FROM_STACK.search(code.operands) is not None  # if it sets pc
        parts = split(code.operands)
        if not self._known(name, parts):
            self._unknown(name, parts)

    def set(self, target: int, expression: str) -> None:
        self.lines.append(f"r{target} = {expression}")
        self.writes.add(target)

    def _known(self, name: str, parts: list[str]) -> bool:
        if name.startswith(_NO_RESULT) or not parts:
            return True
        if name in ("cmp", "cmn", "tst", "teq"):
            return self._compare(name, parts)
        if name.startswith(("ldm", "stm", "push", "pop")):
            return self._several(name, parts)
        if name in ("ldr", "ldrd", "str", "strd", *_LOADS, *_STORES):
            return self._access(name, parts)
        if name.startswith("v"):
            return self._vector(name, parts)
        if _CHOICE.fullmatch(name):
            return self._choice(name, parts)
        return self._arithmetic(name, parts)

    def _arithmetic(self, name: str, parts: list[str]) -> bool:
        target = register(parts[0])
        if target is None or target == 15:
            return False
        operation, flags = name, False
        if name not in (*BINARY, *UNARY, "mls") and name.endswith("s"):
            operation, flags = name[:-1], True
        operation = {"addw": "add", "subw": "sub", "movw": "mov", "rsc": ""}.get(operation, operation)
        first, rest = None, parts[1:]
        second: str | None = None
        made: str | None = None
        if rest and rest[0] == "pc":
            rest[0] = f"#{self.at + 4 if len(rest) == 1 else (self.at + 4) & ~3}"
        if operation in ("mov", *UNARY):
            first = value(*rest[:2]) if rest else None
            made = first if operation == "mov" else f'unary("{operation}", {first})'
        elif operation in BINARY:
            if len(rest) == 1 or (len(rest) == 2 and " " in rest[1]):
                rest = [parts[0], *rest]
            first, second = value(rest[0]), value(*rest[1:3])
            if first and first.isdigit() and second and second.isdigit():
                made = f"op_{operation}({first}, {second})"
            else:
                made = self._sum(operation, first, second) if first and second else None
        elif operation in ("adc", "sbc") and len(rest) <= 2:
            first, second = value(rest[-2] if len(rest) == 2 else parts[0]), value(rest[-1])
            made = f'{operation}({first}, {second}, m.holds("cs", f))' if first and second else None
        elif operation in ("ubfx", "sbfx"):
            low, width = (int(each.strip("#"), 0) for each in rest[1:3])
            made = f"field({value(rest[0])}, {low}, {width}, {operation == 'sbfx'})"
        elif operation in ("mla", "mls"):
            a, b, c = (value(each) for each in rest[:3])
            made = f"op_{'add' if operation == 'mla' else 'sub'}({c}, op_mul({a}, {b}))"
        elif operation in ("smull", "umull"):
            high, a, b = register(rest[0]), value(rest[1]), value(rest[2])
            assert high is not None
            self.lines.append(f"w = product({a}, {b}, {operation == 'smull'})")
            self.set(high, "w[1]")
            made = "w[0]"
        elif operation == "movt":
            made = f"op_orr(op_and(r{target}, 65535), {int(rest[0].strip('#'), 0) << 16})"
        else:
            return False
        if first is None and operation in ("mov", "adc", "sbc", *UNARY, *BINARY):
            return False
        if made is None:
            return False
        if flags and operation == "neg":
            self.lines.append(f'f = ("sub", 0, {first})')
        if flags and operation in ("sub", "rsb", "add"):
            pair = (second, first) if operation == "rsb" else (first, second)
            self.lines.append(f'f = ("{"add" if operation == "add" else "sub"}", {pair[0]}, {pair[1]})')
        self.set(target, made)
        if operation in ("adc", "sbc"):
            self.lines += ["f = None"] if flags else []
        elif flags and operation not in ("sub", "rsb", "add", "neg"):
            self.lines.append(f'f = ("is", {f"r{target}"}, None)')
        return True

    def _choice(self, name: str, parts: list[str]) -> bool:
        """One of two values by a condition, of Armv8.1-M."""
        target, given = register(parts[0]), ["0" if part == "zr" else value(part) for part in parts[1:-1]]
        known = [each for each in given if each is not None]
        if target is None or len(known) < len(given):
            return False
        changed = _CHANGED.get(name[-3:], "{}")
        if not known:
            yes, no = str(0xFFFFFFFF if name == "csetm" else 1), "0"
        elif len(known) == 1:
            yes, no = changed.format(known[0]), known[0]
        else:
            yes, no = known[0], changed.format(known[1])
        self.lines.append(f'c = m.holds("{parts[-1]}", f)')
        self.set(target, f"meet({yes}, {no}) if c is None else {yes} if c else {no}")
        return True

    def _sum(self, operation: str, first: str, second: str) -> str:
        """Sums with numbers are what loops mostly do: in place."""
        if operation in ("add", "sub") and second.isdigit() and not first.isdigit():
            number = int(second) if operation == "add" else -int(second) & 0xFFFFFFFF
            return f"None if {first} is None else ({first} + {number}) & KEEP"
        return f"op_{operation}({first}, {second})"

    def _compare(self, name: str, parts: list[str]) -> bool:
        first, second = value(parts[0]), value(*parts[1:3])
        if first is None or second is None:
            self.lines.append("f = None")
        elif name in ("cmp", "cmn"):
            self.lines.append(f'f = ("{"sub" if name == "cmp" else "add"}", {first}, {second})')
        else:
            self.lines.append(f'f = ("is", op_{"and" if name == "tst" else "eor"}({first}, {second}), None)')
        return True

    def _several(self, name: str, parts: list[str]) -> bool:
        if parts[-1][0] != "{":
            return False
        on_stack = name in ("push", "pop")
        base = 13 if on_stack else register(parts[0].strip("!"))
        back = on_stack or parts[0].endswith("!")
        registers = listed(parts[-1])
        nbytes = 4 * len(registers)
        if base is None or not nbytes:
            return False
        down = name == "push" or "db" in name
        self.lines.append(f"a = op_sub(r{base}, {nbytes})" if down else f"a = r{base}")
        if name.startswith(("ldm", "pop")):
            self.lines.append(f"w = m.many(a, {len(registers)})")
            for number, target in enumerate(registers):
                self.set(target, f"w[{number}]")
        else:
            for number, source in enumerate(registers):
                self.lines.append(f"m.store(op_add(a, {4 * number}), r{source})")
        if back and not (base in registers and name.startswith("ldm")):
            self.set(base, "a" if down else f"op_add(a, {nbytes})")
        return True

    def _place(self, text: str, behind: list[str]) -> bool:
        """The address as `a`, and what becomes of its register."""
        inner = split(text.strip("[]!"))
        if inner[0] == "pc":
            if len(inner) > 1 and not inner[1].startswith("#"):
                return False
            by = int(inner[1].strip("#"), 0) if len(inner) > 1 else 0
            self.lines.append(f"a = {((self.at + 4) & ~3) + by}")
            return True
        base = register(inner[0])
        if base is None:
            return False
        offset = value(*inner[1:3]) if len(inner) > 1 else "0"
        self.lines.append(f"a = {self._sum('add', f'r{base}', offset or 'None')}")
        if text.endswith("!"):
            self.set(base, "a")
        elif behind:
            step = value(*behind[:2])
            self.set(base, f"op_add(r{base}, {step})")
        return True

    def _access(self, name: str, parts: list[str]) -> bool:
        count = 2 if name in ("ldrd", "strd") else 1
        targets = [register(each) for each in parts[:count]]
        if len(parts) <= count or parts[count][0] != "[" or None in targets:
            return False
        if not self._place(parts[count], parts[count + 1 :]):
            return False
        place = self.lines.index(next(line for line in self.lines if line.startswith("a = "))) + 1
        while place < len(self.lines) and self.lines[place].startswith("if a is"):
            place += 1
        before, self.lines = self.lines, []
        for number, target in enumerate(targets):
            at = f"op_add(a, {4 * number})" if number else "a"
            if name in _STORES:
                self.lines.append(f"m.kill({at}, {_STORES[name]})")
            elif name.startswith("st"):
                self.lines.append(f"m.store({at}, r{target})")
            elif name in _LOADS:
                self.lines.append(f"w{number} = m.part({at}, {_LOADS[name][0]}, {_LOADS[name][1]})")
            else:
                self.lines.append(f"w{number} = m.load({at})")
        access, self.lines = self.lines, before
        self.lines[place:place] = access
        if name.startswith("ld"):
            for number, target in enumerate(targets):
                assert target is not None
                self.set(target, f"w{number}")
        return True

    def _vector(self, name: str, parts: list[str]) -> bool:
        memory = [part for part in parts if part[0] == "["]
        if name.startswith(("vpush", "vpop", "vldm", "vstm")):
            return self._vectors_on_stack(name, parts)
        if memory:
            base_text = split(memory[0].strip("[]!"))
            base = register(base_text[0])
            if base is None and base_text[0][0] != "q":
                return False
            is_store = name.startswith("vst")
            if any(each[0] == "q" for each in base_text):  # an address for each lane
                if not is_store:
                    self._forget_vectors(parts[:1])
                if is_store:
                    self.lines.append("m.lose()" if base is None else _scattered(name, base, base_text[1:]))
                return True
            return self._vector_access(name, parts, memory[0])
        core = [register(part) for part in parts]
        if (lines := vectors.moved(name, parts, core)) is not None:
            self.lines += lines
            self.vectors.update(vectors.places(", ".join(parts)))
            self.writes.update(number for number in core if number is not None)
            return True
        self._forget_vectors(parts)
        leading = len(parts)
        for number, part in enumerate(parts):
            if (found := register(part)) is None:
                leading = min(leading, number)
            elif number < leading or name.startswith(_COUNTING):
                self.set(found, "None")
        if name == "vmrs":
            self.lines.append("f = None")
        return True

    def _forget_vectors(self, parts: list[str]) -> None:
        for place in vectors.places(", ".join(parts)):
            self.lines.append(f"R[{place}] = None")
            self.vectors.add(place)

    def _vector_access(self, name: str, parts: list[str], memory: str) -> bool:
        """One register, or several that lie interleaved."""
        if not self._place(memory, parts[parts.index(memory) + 1 :]):
            return False
        places = vectors.places(parts[0])
        whole = name in ("vldr", "vstr") or (name in _WHOLE and len(places) == 4)
        if name.startswith("vst"):
            access = [f"m.store(op_add(a, {4 * n}), R[{each}])" for n, each in enumerate(places)]
            killed = f"m.kill(a, {vectors.stored_bytes(name, parts)})"
            if whole and name != "vstr":  # of which lanes may be off
                access = [f"({', '.join(access)}) if lanes is None else {killed}"]
            access = access if whole else [killed]
        else:
            self.vectors.update(places)
            access = [f"R[{each}] = None" for each in places]
            if whole:
                on = "" if name == "vldr" else " if lanes is None else None"
                access = [f"R[{each}] = m.load(op_add(a, {4 * n})){on}" for n, each in enumerate(places)]
        at = next(n for n, line in enumerate(self.lines) if line.startswith("a = ")) + 1
        self.lines[at:at] = access
        return True

    def _vectors_on_stack(self, name: str, parts: list[str]) -> bool:
        on_stack = name in ("vpush", "vpop")
        base = 13 if on_stack else register(parts[0].strip("!"))
        places = vectors.places(parts[-1])
        if base is None or re.search(r"d(1[6-9]|[23]\d)", parts[-1]):
            return False
        nbytes = 4 * len(places)
        down = name == "vpush" or "db" in name
        self.lines.append(f"a = op_sub(r{base}, {nbytes})" if down else f"a = r{base}")
        for number, place in enumerate(places):
            if name == "vpush" or name.startswith("vstm"):
                self.lines.append(f"m.store(op_add(a, {4 * number}), R[{place}])")
            else:
                self.lines.append(f"R[{place}] = m.load(op_add(a, {4 * number}))")
                self.vectors.add(place)
        if on_stack or parts[0].endswith("!"):
            self.set(base, "a" if down else f"op_add(a, {nbytes})")
        return True

    def _unknown(self, name: str, parts: list[str]) -> None:
        self.lines.clear()
        self.writes.clear()
        self._forget_vectors(parts)
        if name.startswith(("st", "vst")):
            self.lines.append("m.lose()")
        most = 2 if name.startswith((*_TWO_RESULTS, *_TWO_SHIFTED)) else 1 if _ONE_RESULT.match(name) else len(parts)
        for number in sorted({*_named(parts[:most])}):
            self.set(number, "None")
        if name.endswith("s") or name == "msr":
            self.lines.append("f = None")


def _scattered(name: str, base: int, behind: list[str]) -> str:
    """A store to an address for each lane, whose offsets are in a vector."""
    offsets = ", ".join(f"R[{place}]" for place in vectors.places(behind[0]))
    shift = int(behind[1].rpartition("#")[2]) if len(behind) > 1 else 0
    bits, nbytes = int(name.rpartition(".")[2]), {"b": 1, "h": 2, "w": 4}.get(name[4], 8)
    return f"m.scatter(r{base}, [{offsets}], {bits}, {shift}, {nbytes})"


def _named(parts: list[str]) -> Iterator[int]:
    for part in parts:
        for word in re.findall(r"[a-z]+\d*", part):
            found = register(word)
            if found is not None and found < 15:
                yield found
