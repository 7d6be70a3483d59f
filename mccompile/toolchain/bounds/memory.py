"""The memory of an abstract execution: words of the stack and of the model's struct by address, and what is constant
in the program's image. Other memory (tensors, weights) is unknown.

Invariant: a store through a pointer stays in the object that the pointer was made from; where that is not known either,
all words are forgotten.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from .values import KEEP, OBJECT, Value

STACK, MODEL, RETURN, SAVED = 1, 2, 3, 4  # objects; from SAVED on what callers want to find in registers again
LOADED = 32


class Image:
    """The sections of an ELF file (32 bits, little-endian) that no program writes."""

    def __init__(self, program: Path) -> None:
        contents = program.read_bytes()
        at = struct.unpack_from("<I", contents, 32)[0]
        size, count = struct.unpack_from("<HH", contents, 46)
        self.parts: list[tuple[int, bytes]] = []
        for number in range(count):
            kind, flags, start, offset, length = struct.unpack_from("<5I", contents, at + size * number + 4)
            if kind == 1 and flags & 3 == 2 and length:  # PROGBITS, loaded, not writable
                self.parts.append((start, contents[offset : offset + length]))

    def read(self, address: int, nbytes: int) -> Value:
        for start, contents in self.parts:
            if start <= address <= start + len(contents) - nbytes:
                return int.from_bytes(contents[address - start : address - start + nbytes], "little")
        return None


class Memory:
    def __init__(self, image: Image, loaded: dict[int, int]) -> None:
        self.image = image
        self.words: dict[int, Value] = {}
        self.is_lost = False  # anything may have been written
        self.loaded = loaded  # objects whose addresses lie in the model's struct; one table for all copies

    def copy(self) -> Memory:
        made = Memory(self.image, self.loaded)
        made.words, made.is_lost = dict(self.words), self.is_lost
        return made

    def meet(self, other: Memory) -> None:
        """What is known on both paths."""
        self.is_lost |= other.is_lost
        ours, theirs = self.words, other.words
        for address in {*ours, *theirs}:
            if self.load(address) != other.load(address):
                ours[address] = None
            elif address not in ours:
                ours[address] = theirs[address]

    def load(self, address: Value) -> Value:
        """A word."""
        if address is None or address & 3:
            return None
        if not address >> OBJECT:
            return self.image.read(address, 4)
        if address in self.words:
            return self.words[address]
        if address >> OBJECT == MODEL and not self.is_lost:
            return self.loaded.setdefault(address, LOADED + len(self.loaded)) << OBJECT
        return None

    def part(self, address: Value, nbytes: int, with_sign: bool) -> Value:
        """Less than a word."""
        if address is None or address >> OBJECT:
            return None
        found = self.image.read(address, nbytes)
        if found is not None and with_sign and found >> (8 * nbytes - 1):
            found |= -1 << 8 * nbytes & 0xFFFFFFFF
        return found

    def store(self, address: Value, value: Value) -> None:
        if address is None:
            self.lose()
        elif address >> OBJECT in (STACK, MODEL):
            if address & 3:
                self.kill(address, 4)
            else:
                self.words[address] = value

    def kill(self, address: Value, nbytes: int) -> None:
        if address is None:
            self.lose()
        elif address >> OBJECT in (STACK, MODEL):
            for at in range(address & ~3, address + nbytes, 4):
                self.words[at & KEEP] = None

    def lose(self) -> None:
        self.words = {address: None for address in self.words if address >> OBJECT == MODEL}
        self.is_lost = True

    def many(self, address: Value, count: int) -> Sequence[Value]:
        return [None if address is None else self.load((address + 4 * n) & KEEP) for n in range(count)]
