"""Counts the instructions that a program for WebAssembly executes: a copy of it does that itself.

In the copy, every stretch of code that is entered only at its first instruction begins by adding the number of its
instructions to a global variable. The function `board_count_begin` sets it to zero, `board_count_end` moves it into
the last of three globals, which move up for that; they are exported as `board_count_0` and so on.

Invariant: exact, and the same under every engine. What counts is what a machine with registers would execute: not what
gives the code its structure (block, loop, else, end), does nothing (nop), or only says what other instructions work on
(local variables, constants, drop), which engines turn into registers and numbers within instructions.
"""

from __future__ import annotations

from mccompile.base.errors import CheckFailed, Problem
from mccompile.base.records import dataclass

MAGIC = b"\0asm"
COUNTS = 3
_CUSTOM, _IMPORTS, _GLOBALS, _EXPORTS, _CODE = 0, 2, 6, 7, 10
_I64, _MUTABLE, _FUNCTION, _GLOBAL = 0x7E, 1, 0, 3
_END, _I64_CONST, _I64_ADD, _GLOBAL_GET, _GLOBAL_SET = 0x0B, 0x42, 0x7C, 0x23, 0x24
_VECTOR = 0xFD
# nop, block, loop, else, end; drop, local.get, local.set, local.tee, and constants of every type
_NOT_COUNTED = {0x01, 0x02, 0x03, 0x05, _END, 0x1A, 0x20, 0x21, 0x22, 0x41, 0x42, 0x43, 0x44, _VECTOR + (12 << 8)}
# Code behind these may be reached from elsewhere, not at all, or after another function was counted: unreachable, loop,
# if, else, end, br, br_if, br_table, return, call, call_indirect.
_SPLITS = {0x00, 0x03, 0x04, 0x05, _END, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11}

# How many numbers (LEB128) follow an instruction; for the rest see _Reader.instruction.
_NUMBERS = {0x02: 1, 0x03: 1, 0x04: 1, 0x0C: 1, 0x0D: 1, 0x10: 1, 0x11: 2, 0xD0: 1, 0xD2: 1}
_NUMBERS |= dict.fromkeys(range(0x20, 0x27), 1)  # variables and tables
_NUMBERS |= dict.fromkeys(range(0x28, 0x3F), 2)  # loads and stores
_NUMBERS |= {0x3F: 1, 0x40: 1, 0x41: 1, 0x42: 1}
_BYTES = {0x43: 4, 0x44: 8}
_PLAIN = {0x00, 0x01, 0x05, _END, 0x0F, 0x1A, 0x1B, 0xD1, *range(0x45, 0xC5)}
_BULK_NUMBERS = {8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}  # behind 0xFC; conversions: none


def with_counters(program: bytes) -> bytes:
    """The program, which then counts."""
    sections = _sections(program)
    imported = _Reader(sections.get(_IMPORTS, b"\0")).imported()
    functions = _function_names(program)
    missing = [name for name in ("board_count_begin", "board_count_end") if name not in functions]
    if missing:
        raise CheckFailed(Problem(f"the program names no function {', '.join(missing)}", "counting instructions"))
    defined, variables = _Reader(sections.get(_GLOBALS, b"\0")).entries()
    counter = imported.globals + defined
    results = range(counter + 1, counter + 1 + COUNTS)
    fresh = bytes([_I64, _MUTABLE, _I64_CONST, 0, _END]) * (1 + COUNTS)
    exported, exports = _Reader(sections[_EXPORTS]).entries()
    for number, place in enumerate(results):
        name = f"board_count_{number}".encode()
        exports += _number(len(name)) + name + bytes([_GLOBAL]) + _number(place)
    shifts = [(into, of) for into, of in zip(results, [*results[1:], counter], strict=True)]
    instead = {
        functions["board_count_begin"] - imported.functions: bytes([_I64_CONST, 0, _GLOBAL_SET]) + _number(counter),
        functions["board_count_end"] - imported.functions: b"".join(
            bytes([_GLOBAL_GET]) + _number(of) + bytes([_GLOBAL_SET]) + _number(into) for into, of in shifts
        ),
    }
    bodies = _Reader(sections[_CODE]).bodies()
    code = _number(len(bodies))
    for index, body in enumerate(bodies):
        new = b"\0" + instead[index] + bytes([_END]) if index in instead else _counting(body, counter)
        code += _number(len(new)) + new
    sections |= {
        _GLOBALS: _number(defined + 1 + COUNTS) + variables + fresh,
        _EXPORTS: _number(exported + COUNTS) + exports,
        _CODE: code,
    }
    order = sorted(sections, key=lambda kind: 9.5 if kind == 12 else kind)  # the count of data stands in front of code
    parts = (bytes([kind]) + _number(len(sections[kind])) + sections[kind] for kind in order)
    return program[:8] + b"".join(parts)


def _counting(body: bytes, counter: int) -> bytes:
    """A function's body, counting."""
    reader = _Reader(body)
    reader.skip_locals()
    out, begin, count = bytearray(body[: reader.at]), reader.at, 0
    while reader.at < len(body):
        opcode = reader.instruction()
        count += opcode not in _NOT_COUNTED
        if opcode in _SPLITS:
            if count:
                out += bytes([_GLOBAL_GET]) + _number(counter) + bytes([_I64_CONST]) + _signed(count)
                out += bytes([_I64_ADD, _GLOBAL_SET]) + _number(counter)
            out += body[begin : reader.at]
            begin, count = reader.at, 0
    return bytes(out)


def _sections(program: bytes) -> dict[int, bytes]:
    """By kind, without those that say nothing of what is executed."""
    return {kind: contents for kind, contents in _all_sections(program) if kind != _CUSTOM}


def _function_names(program: bytes) -> dict[str, int]:
    """From the linker's section `name`, the part with the names of functions."""
    for kind, contents in _all_sections(program):
        reader = _Reader(contents)
        if kind != _CUSTOM or reader.take(reader.number()) != b"name":
            continue
        while reader.at < len(contents):
            part, size = reader.byte(), reader.number()
            if part == 1:
                entries = [(reader.number(), reader.take(reader.number())) for _ in range(reader.number())]
                return {name.decode(): index for index, name in entries}
            reader.take(size)
    return {}


def _all_sections(program: bytes) -> list[tuple[int, bytes]]:
    if program[:4] != MAGIC:
        raise CheckFailed(Problem("this is no program for WebAssembly", "counting instructions"))
    reader, found = _Reader(program, 8), []
    while reader.at < len(program):
        found.append((reader.byte(), reader.take(reader.number())))
    return found


@dataclass(frozen=True)
class _Imported:
    functions: int
    globals: int


class _Reader:
    """Reads from a place on; `at` is what comes next."""

    def __init__(self, contents: bytes, at: int = 0) -> None:
        self.contents, self.at = contents, at

    def byte(self) -> int:
        self.at += 1
        return self.contents[self.at - 1]

    def take(self, count: int) -> bytes:
        self.at += count
        return self.contents[self.at - count : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def entries(self) -> tuple[int, bytes]:
        """How many entries, and all of them."""
        return self.number(), self.contents[self.at :]

    def imported(self) -> _Imported:
        kinds = []
        for _ in range(self.number()):
            self.take(self.number())
            self.take(self.number())
            kinds.append(self.byte())
            if kinds[-1] == _FUNCTION:
                self.number()
            elif kinds[-1] == _GLOBAL:
                self.take(2)
            else:  # a table has the type of its elements first
                self.take(kinds[-1] == 1)
                for _ in range(1 + (self.byte() & 1)):
                    self.number()
        return _Imported(kinds.count(_FUNCTION), kinds.count(_GLOBAL))

    def bodies(self) -> list[bytes]:
        return [self.take(self.number()) for _ in range(self.number())]

    def skip_locals(self) -> None:
        for _ in range(self.number()):
            self.number()
            self.byte()

    def instruction(self) -> int:
        """Its opcode, for vectors with the second one behind it; what belongs to it is skipped."""
        at = self.at
        opcode = self.byte()
        numbers = _NUMBERS.get(opcode, 0)
        if opcode in _BYTES:
            self.take(_BYTES[opcode])
        elif opcode == 0x0E:  # br_table
            numbers = self.number() + 1
        elif opcode == 0x1C:  # select with types
            self.take(self.number())
        elif opcode == 0xFC:
            numbers = _BULK_NUMBERS.get(self.number(), 0)
        elif opcode == _VECTOR:
            vector = self.number()
            numbers = self._skip_vector_operands(vector)
            opcode += vector << 8
        elif not numbers and opcode not in _PLAIN:
            raise CheckFailed(Problem(f"unknown instruction 0x{opcode:02x}", f"counting instructions, at byte {at}"))
        for _ in range(numbers):
            self.number()
        return opcode

    def _skip_vector_operands(self, opcode: int) -> int:
        """Numbers that follow; bytes are skipped."""
        if opcode in (12, 13):  # constants, shuffles
            self.take(16)
        elif 21 <= opcode <= 34:  # one lane
            self.byte()
        elif 84 <= opcode <= 91:  # one lane from or to memory
            self.number()
            self.number()
            self.byte()
        return 2 if opcode <= 11 or opcode in (92, 93) else 0


def _number(value: int, least: int = 0x80) -> bytes:
    out = bytearray()
    while value >= least:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _signed(value: int) -> bytes:
    """Of a number that is not negative: the highest of its bits must not look like a sign."""
    return _number(value, 0x40)
