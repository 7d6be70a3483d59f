"""Sets of characters, as integers whose bits are code points, and what Unicode says of characters.

What is asked is Python's `unicodedata`, with what `younger.py` adds.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count

import numpy as np

from . import younger

COUNT = 0x110000
ALL = (1 << COUNT) - 1
_SPACES = (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)


def those(codes: Iterable[int]) -> int:
    found = 0
    for code in codes:
        found |= 1 << code
    return found


def between(first: int, last: int) -> int:
    return (1 << (last + 1)) - (1 << first)


@cache
def _categories() -> Mapping[str, int]:
    numbers = defaultdict[str, int](count().__next__)  # of names: small ones are compared sooner than names
    found = bytearray(map(numbers.__getitem__, map(unicodedata.category, map(chr, range(COUNT)))))
    for name, code in younger.categories():
        if found[code] == numbers["Cn"]:
            found[code] = numbers[name]
    each = np.frombuffer(found, np.uint8)
    masks = {name: np.packbits(each == number, bitorder="little") for name, number in sorted(numbers.items())}
    return {name: int.from_bytes(mask.tobytes(), "little") for name, mask in masks.items()}


@cache
def category(name: str) -> int:
    """Those of a general category (`Lu`) or of a group of them (`L`)."""
    found = 0
    for own, mask in _categories().items():
        found |= mask if own.startswith(name) else 0
    return found


@cache
def spaces() -> int:
    return those(_SPACES)


@cache
def _other_cases() -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for code in range(COUNT):
        if (folded := chr(code).casefold()) != chr(code):
            found.setdefault(folded, []).append(code)
    return found


def in_any_case(character: str) -> int:
    """All that are the same letter."""
    folded = character.casefold()
    return those([ord(folded), *_other_cases().get(folded, ())] if len(folded) == 1 else [ord(character)])


@cache
def _moved_by_nfc() -> tuple[str, str]:
    """ASCII characters that others become in NFC, and those that a mark behind them makes others of."""
    become, composed = set[str](), set[str]()
    for code in range(0x80, COUNT):
        parts = unicodedata.decomposition(chr(code))
        if parts and not parts.startswith("<"):
            first = chr(int(parts.split()[0], 16))
            (composed if " " in parts else become).add(first)
    return "".join(filter(str.isascii, become)), "".join(filter(str.isascii, composed))


def stays_in_nfc(text: str) -> bool:
    """Does this text stand in the same places of a text before NFC and behind it?"""
    become, composed = _moved_by_nfc()
    return text.isascii() and not any(each in become for each in text) and text[-1] not in composed


def bits(mask: int) -> bytes:
    """One byte for each code point: is it in the set?"""
    return bytes(bytearray(f"{mask:0{COUNT}b}".encode())[::-1]).translate(bytes(max(0, n - 48) for n in range(256)))


def classes(sets: Iterable[int]) -> list[int]:
    """Disjoint sets that all characters belong to, of which each of `sets` is made."""
    found = [ALL]
    for each in sets:
        found = [part for whole in found for part in (whole & each, whole & ~each) if part]
    return found
