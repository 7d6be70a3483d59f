"""Unique C identifiers from arbitrary text."""

from __future__ import annotations

import re
from collections.abc import Iterable

_C_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
_Bool _Complex
"""
_CPP_WORDS = """
and asm bool catch class delete explicit export false friend mutable namespace new not operator or private
protected public template this throw true try typename using virtual xor
"""
# Macros of the standard library: a program that pastes names together would paste what they stand for.
_MACROS = "eof errno huge_val infinity linux nan null stderr stdin stdout unix"
# A C++ program may include the header, so both kinds of words are taken.
C_KEYWORDS = frozenset(_C_WORDS.split() + _CPP_WORDS.split() + _MACROS.split())


def c_identifier(text: str) -> str:
    """`text` with everything that C does not allow in a name replaced."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"
    if name[0].isdigit() or name.lower() in C_KEYWORDS:
        name = f"x{name}" if name[0].isdigit() else f"{name}_"
    return name


def snake_case(text: str) -> str:
    """`ConvTranspose` as files are called: `conv_transpose`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", text).lower()


def readable(text: str) -> str:
    """`text` without the stand-ins that Python has for bytes of a file's name that are not text in the locale: as UTF-8
    where it is that, with question marks where it is not."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")


def new_name(text: str, taken: set[str]) -> str:
    """`text`, or with a number behind it, as none of the names `taken` is; from now on it is one of them."""
    name, number = text, 1
    while name in taken:
        number += 1
        name = f"{text}_{number}"
    taken.add(name)
    return name


class Names:
    """Gives each asker a name of its own: `in/put:0` and `in.put-0` become `in_put_0` and `in_put_0_2`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken: set[str] = {name.lower() for name in taken}

    def take(self, text: str) -> str:
        lower = text.lower()  # the same name serves a macro in capitals
        return text + new_name(lower, self._taken).removeprefix(lower)
