"""Texts that tokenizers have trouble with, many at a time: scripts at random, and pieces of odd ones in a row."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import Generator

from tests.tokenizer.built import WORDS

_SCRIPTS = (0, 0x80, 0x300, 0x900, 0xAC00, 0x1F300)  # where they begin
_MOST = 24  # characters of a text of scripts, pieces of another
_BLANKS = " ,   ,\t,\v\f,\r,\r\n,\n, \n ,\u00a0,\u1680,\u180e,\u2003,\u3000,\u2028,\u2029,\u200b,\ufeff,▁,▁▁,\x85"
_MARKS = "e\u0301 a\u0323\u0302 a\u0302\u0323 \u1e9b\u0323 q\u0307\u0323 \u0301 o\u0308\u0304\u0308\u0304\u0308"
_FORMS = "\u212b \u2126 \ufb01 \u2460 \u3392 \uff21\uff11 \ufb1d \U0001d15e 0 12 123 1234567890"
_HANGUL = "\u1100\u1161 \u1100\u1161\u11a8 \uac00\u11a8 \uac01\u11a8 \u1112\u1175\u1175 \ud7a3"
_EMOJI = "👨\u200d👩\u200d👧 👍🏽 🇩🇪🇫🇷🇯 ❤\ufe0f 1\ufe0f\u20e3 🏴\U000e0067\U000e007f \u200d \ufe0f"
_CONTROLS = "\x00 \x01\x02 \x1b[0m \x7f \x9f \u202e \u00ad \ue000 \ufffd \uffff \U0001fffe \U0010ffff \u0378"
_SPECIAL = "<|end|> <|end|><|end|> <|END|> <|tool|> <s <s> </s> <unk> <| <0x00> <0xFF> <0xE2><0x96><0x81> <0xE2>"
_SIGNS = "\u0344 \u0958 \u0661\u0662 \u00b2 \u2155 \u17f0"
_CASES = "'s 'S '\u017f \u2019s 'll ' don't I'VE ABCdef \u01c5 \u0130 straße Ω ǆ a b é 日本 ไทย אב العربية हिन्दी"
_JOINED = " ".join((_MARKS, _FORMS, _HANGUL, _EMOJI, _CONTROLS, _SPECIAL, _SIGNS, _CASES))
_ODD = [*WORDS, *_BLANKS.split(","), "<|end|> ", " <|end|>", *_JOINED.split(" ")]
_LONG = ("a", " ", "9", "\n", "é", "▁", "ab ", "日", "🙂", "e\u0301", "\u1100\u1161", "!?", "<0x41>", "\r\n", "\x00")


@cache
def _lines() -> np.ndarray:
    """Of the documentation: prose in English and Chinese, tables, programs."""
    pages = sorted((Path(__file__).parents[3] / "docs").rglob("*.md"))
    return np.array([line for page in pages for line in page.read_text().splitlines() if line], object)


def drawn(chance: Generator, count: int) -> list[str]:
    """A fifth lines of documents, two fifths odd pieces, one in a hundred long, two fifths characters of all planes."""
    few = count // 5
    return [*chance.choice(_lines(), few), *_pieces(chance, 2 * few), *_characters(chance, count - 3 * few)]


def _pieces(chance: Generator, count: int) -> list[str]:
    pool = np.array(_ODD, object)
    lengths = chance.integers(0, _MOST, count)
    drawn = iter(pool[chance.integers(0, len(pool), int(lengths.sum()))])
    made = ["".join(next(drawn) for _ in range(length)) for length in lengths]
    for place in range(0, count, 100):
        made[place] += str(chance.choice(_LONG)) * int(chance.integers(1, 3000))
    return made


def _characters(chance: Generator, count: int) -> list[str]:
    """Each text of one or two scripts; surrogates are not characters."""
    anywhere = chance.integers(0, 0x110000, (count, 2))
    which = chance.integers(0, len(_SCRIPTS) + 1, (count, 2))
    begins = np.where(which < len(_SCRIPTS), np.array((*_SCRIPTS, 0))[which], anywhere)
    sides, lengths = chance.integers(0, 2, (count, _MOST)), chance.integers(0, _MOST, count)
    points = np.take_along_axis(begins, sides, 1) + chance.integers(0, 160, (count, _MOST))
    points = np.minimum(points, 0x10FFFF).astype("<u4")
    kept = (np.arange(_MOST) < lengths[:, None]) & ((points < 0xD800) | (points > 0xDFFF))
    return [row[keep].tobytes().decode("utf-32-le") for row, keep in zip(points, kept, strict=True)]
