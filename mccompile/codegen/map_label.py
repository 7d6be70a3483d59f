"""Names of functions that compute one expression per element, by what a reader would call it."""

from __future__ import annotations

import re

from ..expr.functions import FUNCTIONS
from ..expr.ir import Cast, Index, Operand, Size, walk
from ..kernels.api import Call

_OF_QUANTIZING = frozenset({"add", "div", "max", "min", "mul", "round_even", "sub"})


def map_label(call: Call, first: str = "map", copy: str = "copy") -> str:
    """`first` and the outermost functions; `copy` where elements are moved as they are, `fill` where all are alike."""
    expr = call.kind.expressions()[0]
    if not any(isinstance(node, Operand | Index | Size) for node in walk(expr)):
        return "fill"
    functions = [name for name in re.findall(r"(\w+)\(", str(expr)) if name in FUNCTIONS]
    if isinstance(expr, Cast) and expr.dtype.is_integer and expr.dtype.bits <= 16 and "round_even" in functions:
        return "_".join(["quantize", *[name for name in functions if name not in _OF_QUANTIZING][:1]])
    return "_".join([first, *functions[:2]]) if functions else copy
