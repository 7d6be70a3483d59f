"""The prefix of all names in C of a model, which most of its files are called after."""

from __future__ import annotations

from ..base.names import c_identifier

# Files called after these would stand in the way of a header of C or of the runtime, or of main.c.
_HEADERS = """
    alloca assert complex ctype endian errno features fenv float inttypes iso646 limits locale main math setjmp
    signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string strings tgmath threads time uchar
    unistd wchar wctype
"""


def c_prefix(name: str) -> str:
    prefix = c_identifier(name).lower()
    return f"{prefix}_net" if prefix in _HEADERS.split() or prefix.startswith("mcc") else prefix
