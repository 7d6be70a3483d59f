"""read_numbers by Python: exact fractions, and the nearest number of the type."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from mccompile.base.dtypes import DType
from mccompile.kinds.read_numbers import ReadNumbers

_WORDS = {"nan": np.nan, "inf": np.inf, "infinity": np.inf, "-inf": -np.inf}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")


def oracle(kind: ReadNumbers, x: np.ndarray, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    found = [_number(text.strip().lower(), dtype) for text in x]
    wide = {"float": np.float64, "int": np.int64, "uint": np.uint64}[dtype.kind]
    numbers = np.array([0 if number is None else number for number in found], wide)
    return numbers.astype(dtype.numpy), np.array(None in found)


def _number(text: str, dtype: DType) -> float | int | None:
    if not dtype.is_float:
        inside = re.fullmatch(r"[+-]?\d+", text) and dtype.low <= int(text) <= dtype.high
        return int(text) if inside else None
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return None
    exact, type = Fraction(text), np.dtype(dtype.numpy).type
    with np.errstate(over="ignore"):
        guess = type(float(exact)) if abs(exact) < 2**1024 else type(np.inf)
    near = {np.nextafter(guess, type(-np.inf)), guess, np.nextafter(guess, type(np.inf))}
    best = min(near, key=lambda number: (abs(_fraction(number) - exact), number.tobytes()[0] & 1))
    return -0.0 if best == 0 and text.startswith("-") else float(best)


def _fraction(number: np.floating) -> Fraction:
    """Infinity counts as the number that would come after the largest one."""
    if np.isinf(number):
        return Fraction(2) ** int(np.finfo(number.dtype).maxexp) * int(np.sign(number))
    return Fraction(float(number))
