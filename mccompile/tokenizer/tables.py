"""The tables of a tokenizer as arrays of C."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ..base.records import dataclass
from . import characters, younger
from .automaton import Automaton, in_pages
from .description import Tokenizer

_ON_A_LINE = 12


@dataclass(frozen=True)
class Table:
    name: str
    type: str
    numbers: Sequence[int] | Sequence[float]

    @property
    def lines(self) -> Sequence[str]:
        texts = [repr(number) for number in self.numbers] or ["0"]
        rows = [", ".join(texts[at : at + _ON_A_LINE]) for at in range(0, len(texts), _ON_A_LINE)]
        return [f"{row}," for row in rows[:-1]] + rows[-1:]

    @property
    def bytes(self) -> int:
        return len(self.numbers) * {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "double": 8}[self.type]


def count(of: Tokenizer) -> int:
    return max(of.texts) + 1


def vocabulary(of: Tokenizer) -> list[Table]:
    texts = [of.texts.get(token, b"") for token in range(count(of))]
    pairs = sorted(of.merges)
    firsts = [0] * (count(of) + 1)
    for left, _ in pairs:
        firsts[left + 1] += 1
    looked_up = sorted(of.words, key=lambda token: of.texts[token]) if of.whole or not of.of_bytes else []
    scores = [Table("scores", "double", [float(score) for score in of.scores])] if of.scores else []
    return [
        *scores,
        Table("texts", "uint8_t", b"".join(texts)),
        Table("starts", "uint32_t", [0, *accumulate(map(len, texts))]),
        Table("sorted", "uint32_t", looked_up),
        Table("pairs", "uint32_t", [*accumulate(firsts)]),
        Table("rights", "uint32_t", [right for _, right in pairs]),
        Table("ranks", "uint32_t", [of.merges[pair][0] for pair in pairs]),
        Table("made", "uint32_t", [of.merges[pair][1] for pair in pairs]),
        Table("byte_tokens", "uint32_t", of.byte_tokens),
        Table("added", "uint32_t", [each.token for each in of.added]),
        Table("added_ways", "uint8_t", [each.ways for each in of.added]),
    ]


def of_split(number: int | str, of: Automaton) -> list[Table]:
    return [
        Table(f"pages_{number}", "uint16_t", of.pages),
        Table(f"classes_{number}", "uint8_t", of.classes),
        Table(f"moves_{number}", "uint16_t", of.moves),
    ]


def nfc() -> list[Table]:
    later = younger.unknown_to_normalization()
    combining = bytes(0 if code in later else unicodedata.combining(chr(code)) for code in range(characters.COUNT))
    pages, classes = in_pages(combining)
    whole: dict[int, list[int]] = {}
    pairs: dict[tuple[int, int], int] = {}
    for code in range(characters.COUNT):
        told = unicodedata.decomposition(chr(code))
        if not told or told.startswith("<") or code in later:
            continue
        parts = [int(part, 16) for part in told.split()]
        whole[code] = [*map(ord, unicodedata.normalize("NFD", chr(code)))]
        if len(parts) == 2 and unicodedata.normalize("NFC", chr(code)) == chr(code):
            pairs[parts[0], parts[1]] = code
    return [
        Table("nfc_pages", "uint16_t", pages),
        Table("nfc_classes", "uint8_t", classes),
        Table("nfc_whole", "uint32_t", [*whole]),
        Table("nfc_ends", "uint16_t", [*accumulate(map(len, whole.values()))]),
        Table("nfc_parts", "uint32_t", [part for parts in whole.values() for part in parts]),
        Table("nfc_firsts", "uint32_t", [first for first, _ in sorted(pairs)]),
        Table("nfc_seconds", "uint32_t", [second for _, second in sorted(pairs)]),
        Table("nfc_composed", "uint32_t", [pairs[pair] for pair in sorted(pairs)]),
    ]


def total(tables: Iterable[Table]) -> int:
    return sum(table.bytes for table in tables)
