"""Reads scalar expressions as they print themselves: `add(x0.f32, mul(x1.f32, f32(0.5)))`."""

from __future__ import annotations

import re

from ..base.dtypes import DTYPES
from ..base.text import Reader
from .functions import FUNCTIONS
from .ir import Expr, apply, cast, index, literal, operand, size


def read(reader: Reader) -> Expr:
    """Reads one expression from the current token on."""
    word = reader.word()
    found = re.fullmatch(r"x(\d+)\.(\w+)", word)
    if found and found[2] in DTYPES:
        return operand(int(found[1]), DTYPES[found[2]])
    found = re.fullmatch(r"index(\d+)", word)
    if found:
        return index(int(found[1]))
    found = re.fullmatch(r"to(_wrap)?\.(\w+)", word)
    reader.expect("(")
    if found and found[2] in DTYPES:
        argument = read(reader)
        reader.expect(")")
        return cast(argument, DTYPES[found[2]], saturate=not found[1])
    if word == "size":
        dim = reader.dim()
        reader.expect(")")
        return size(dim)
    if word in DTYPES:
        value = reader.value()
        reader.expect(")")
        return literal(value, DTYPES[word])
    if word not in FUNCTIONS:
        raise reader.error(f"no scalar function {word!r}")
    args = [read(reader)]
    while reader.take(","):
        args.append(read(reader))
    reader.expect(")")
    return apply(word, *args)
