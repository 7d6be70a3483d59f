"""The memory of an abstract execution: words of the stack and of the model's struct by address, and what is constant
in the program's image. Other memory (tensors, weights) is unknown.

Invariant: a store through a pointer stays in the object that the pointer was made from; where that is not known either,
all words are forgotten.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from .loops import Trial
from .values import ALIGNED, KEEP, LOADED, MODEL, OBJECT, SOMEWHERE, STACK, TURNS, Flags, Value, add, holds, meet, of


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
    def __init__(self, image: Image, loaded: dict[int, int], aligned: int = 0) -> None:
        self.image = image
        self.aligned = aligned  # so many words at the beginning of the model's struct are addresses at multiples of 8
        self.words: dict[int, Value] = {}
        self.is_lost = False  # anything may have been written
        self.trial: Trial | None = None  # of the turn of a loop that is tried
        self.loaded = loaded  # objects whose addresses lie in the model's struct; one table for all copies

    def copy(self) -> Memory:
        made = Memory(self.image, self.loaded, self.aligned)
        made.words, made.is_lost, made.trial = dict(self.words), self.is_lost, self.trial
        return made

    def holds(self, condition: str, flags: Flags) -> bool | None:
        return holds(condition, flags) if self.trial is None else self.trial.holds(condition, flags)

    def meet(self, other: Memory) -> None:
        """What is known on both paths."""
        self.is_lost |= other.is_lost
        ours, theirs = self.words, other.words
        for address in {*ours, *theirs}:
            ours[address] = meet(self.load(address), other.load(address))

    def load(self, address: Value) -> Value:
        """A word."""
        if address is None or address & 3 or _is_vague(address):
            return None
        if not of(address):
            return self.image.read(address, 4)
        if address in self.words:
            return self.words[address]
        if of(address) == MODEL and not self.is_lost:
            first = ALIGNED if address < MODEL + 4 * self.aligned else LOADED
            return self.loaded.setdefault(address, first + len(self.loaded)) << OBJECT
        return None

    def part(self, address: Value, nbytes: int, with_sign: bool) -> Value:
        """Less than a word."""
        if address is None or address >> 32:
            return None
        found = self.image.read(address, nbytes)
        if found is not None and with_sign and found >> (8 * nbytes - 1):
            found |= -1 << 8 * nbytes & 0xFFFFFFFF
        return found

    def store(self, address: Value, value: Value) -> None:
        if address is None:
            self.lose()
        elif of(address) in (STACK, MODEL):
            if address & 3 or _is_vague(address):
                self.kill(address, 4)
            else:
                self.words[address] = value

    def kill(self, address: Value, nbytes: int) -> None:
        """Nothing is known of these bytes."""
        if address is None:
            self.lose()
        elif of(address) not in (STACK, MODEL):
            return
        elif _is_vague(address):
            start = of(address)  # where the frame begins: what lies above may be written as well
            for at in [start, *(each for each in self.words if of(each) == start)]:
                self.words[at] = None
            self.is_lost |= start == MODEL
        else:
            for at in range(address & ~3, address + nbytes, 4):
                self.words[at & KEEP] = None

    def scatter(self, base: Value, offsets: Sequence[Value], bits: int, shift: int, nbytes: int) -> None:
        """Nothing is known of the bytes at offsets of so many bits each, which stand in words."""
        known = [word for word in offsets if word is not None and not word >> 32]
        if len(known) < len(offsets) or bits > 32:
            self.kill(add(base, None), 4)
            return
        for word in known:
            for low in range(0, 32, bits):
                self.kill(add(base, (word >> low & (1 << bits) - 1) << shift), nbytes)

    def lose(self) -> None:
        self.words = {address: None for address in self.words if of(address) == MODEL}
        self.is_lost = True

    def many(self, address: Value, count: int) -> Sequence[Value]:
        return [None if address is None else self.load((address + 4 * n) & KEEP) for n in range(count)]


def _is_vague(address: int) -> bool:
    """Whether it is somewhere, or another one in each turn of a loop."""
    return bool(address & SOMEWHERE) or address >> TURNS != 0
