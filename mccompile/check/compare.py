"""Compares a result with its reference, element by element.

Invariant: NaN equals NaN and an infinity equals itself; integers, bools and strings must be equal; a float may be off
by `rtol` of its reference, and by `atol` more, where both the absolute amount and the millionth part of the largest
reference count: a sum of numbers that cancel out is no more exact than its terms. Of models that compute with narrower
floats the caller says a larger part; integers of 8 and 16 bits may be off by `steps`, where the caller says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.records import dataclass

RTOL, ATOL = 1e-3, 1e-7
OF_LARGEST = 1e-6


@dataclass(frozen=True)
class Comparison:
    name: str
    max_abs: float  # the largest difference
    max_rel: float  # the same over the largest reference value
    mismatches: int  # elements outside of the tolerance
    why: str = ""  # where type or shape differ, so that nothing else can be compared
    excess: float = 0.0  # the largest difference over what is allowed of its element; of integers the difference

    @property
    def ok(self) -> bool:
        return self.mismatches == 0 and not self.why


def compare(
    name: str,
    got: np.ndarray,
    want: np.ndarray,
    rtol: float = RTOL,
    atol: float = ATOL,
    of_largest: float = OF_LARGEST,
    steps: int = 0,
) -> Comparison:
    """How far `got` is from `want`."""
    if got.shape != want.shape or got.dtype != want.dtype:
        why = f"it is {got.dtype}{list(got.shape)}, the reference is {want.dtype}{list(want.shape)}"
        return Comparison(name, float("inf"), float("inf"), max(want.size, 1), why)
    if want.size == 0:
        return Comparison(name, 0.0, 0.0, 0)
    if want.dtype.kind in "OSU":
        wrong = sum(_text(a) != _text(b) for a, b in zip(got.reshape(-1), want.reshape(-1), strict=True))
        return Comparison(name, float(wrong > 0), float(wrong > 0), wrong, excess=float(wrong > 0))
    if want.dtype.kind in "iub":
        return _integers(name, got, want, steps if want.dtype.itemsize < 4 and want.dtype.kind != "b" else 0)
    if want.dtype.kind == "c":
        return _floats(name, np.stack([got.real, got.imag]), np.stack([want.real, want.imag]), rtol, atol, of_largest)
    return _floats(name, got.astype(np.float64), want.astype(np.float64), rtol, atol, of_largest)


def compare_values(
    name: str,
    got: Any,
    want: Any,
    rtol: float = RTOL,
    atol: float = ATOL,
    of_largest: float = OF_LARGEST,
    steps: int = 0,
) -> Comparison:
    """The same for what may be a list of arrays, or None: the worst of all elements."""
    if isinstance(got, np.ndarray) and isinstance(want, np.ndarray):
        return compare(name, got, want, rtol, atol, of_largest, steps)
    if not isinstance(got, list) or not isinstance(want, list) or len(got) != len(want):
        why = "" if got is None and want is None else f"it is {_shown(got)}, the reference is {_shown(want)}"
        return Comparison(name, 0.0, 0.0, 0) if not why else Comparison(name, float("inf"), float("inf"), 1, why)
    pairs = enumerate(zip(got, want, strict=True))
    parts = [compare(f"{name}[{number}]", a, np.asarray(b), rtol, atol, of_largest, steps) for number, (a, b) in pairs]
    return Comparison(
        name,
        max((part.max_abs for part in parts), default=0.0),
        max((part.max_rel for part in parts), default=0.0),
        sum(part.mismatches for part in parts),
        next((f"{part.name}: {part.why}" for part in parts if part.why), ""),
        max((part.excess for part in parts), default=0.0),
    )


def _shown(value: Any) -> str:
    return f"a list of {len(value)}" if isinstance(value, list) else "absent" if value is None else "a tensor"


def _integers(name: str, got: np.ndarray, want: np.ndarray, steps: int) -> Comparison:
    wrong = got != want
    if not wrong.any():
        return Comparison(name, 0.0, 0.0, 0)
    pairs = [
        (int(a), int(b)) for a, b in zip(got[wrong], want[wrong], strict=True)
    ]  # 64-bit ones would not fit a float
    largest = max(abs(int(want.max())), abs(int(want.min())))
    most = max(abs(a - b) for a, b in pairs)
    beyond = sum(abs(a - b) > steps for a, b in pairs)
    return Comparison(name, float(most), most / largest if largest else float(most), beyond, excess=float(most))


def _floats(name: str, got: np.ndarray, want: np.ndarray, rtol: float, atol: float, of_largest: float) -> Comparison:
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.isfinite(want)
    largest = float(np.max(np.abs(want[finite]), initial=0.0))
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(same, 0.0, np.abs(got - want))
    difference = np.where(np.isnan(difference), np.inf, difference)
    allowed = np.where(finite, atol + of_largest * largest + rtol * np.abs(np.where(finite, want, 0.0)), 0.0)
    most = float(np.max(difference))
    mismatches = int(np.count_nonzero(difference > allowed))
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = float(np.max(np.where(difference > 0, difference / allowed, 0.0)))
    return Comparison(name, most, most / largest if largest else most, mismatches, excess=excess)


def _text(value: object) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)
