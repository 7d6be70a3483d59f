"""resize: OpenCV's INTER_LINEAR (weights of 11 bits), INTER_NEAREST and INTER_AREA.

Where both sides get smaller, area is the mean of what lies in a pixel, in whole numbers; else it is linear between
other places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import Any, ClassVar

import numpy as np

from ...base.dtypes import f32, u8
from ...base.errors import Problem
from ...expr.scalar_c import literal_c
from ...ops.rules.samples import enlarged, inside, linear, nearest
from ..api import ImageFunction, Size, each, less_one, provided, term, times

_ONE = 1 << 11  # the share of all
_MOST = (2**32 - 1) // 256  # weights of a mean of bytes, summed in 32 bits
# Of four pixels at once, in the steps of two rows.
_BYTES = """{{
    const uint32_t first = ({low}) >> 4, second = ({high}) >> 4;
    to[@] = (uint8_t)((((first * ({one} - down)) >> 16) + ((second * down) >> 16) + 2) >> 2);
}}"""
_FLOATS = "to[@] = ({low}) * (1.0f - down) + ({high}) * down;"
_Places = Callable[[int, int], tuple[np.ndarray, np.ndarray]]


@provided
class Resize(ImageFunction):
    name = "resize"
    about = "another size"
    variants: ClassVar[Mapping[str, str]] = {
        "bilinear": "between four pixels",
        "nearest": "one pixel",
        "area": "the mean of what lies in a pixel, or between four where a side gets larger",
    }
    reads = ("width", "height", "to_width", "to_height", "channels")

    @property
    def template(self) -> str:
        return "resize_nearest" if self.variant == "nearest" else "resize"

    @property
    def is_mean(self) -> bool | None:
        """Is it the mean of what lies in a pixel? None: that depends on arguments."""
        if self.variant != "area":
            return False
        smaller = [a >= b for a, b in self.sides if isinstance(a, int) and isinstance(b, int)]
        return False if False in smaller else True if len(smaller) == 2 else None

    @property
    def is_direct(self) -> bool:
        """Are all sizes known, and rows no more than before? Then few rows serve twice, and none are kept."""
        known = all(isinstance(size, int) for side in self.sides for size in side)
        return known and self.is_mean is False and int(self.sides[1][0]) >= int(self.sides[1][1])

    @property
    def sides(self) -> tuple[tuple[Size, Size], tuple[Size, Size]]:
        s = self.sizes
        return (s["width"], s["to_width"]), (s["height"], s["to_height"])

    @property
    def helpers(self) -> Sequence[str]:
        known = [all(isinstance(size, int) for size in side) for side in self.sides]
        if self.variant == "nearest":
            return () if all(known) else ("nearest",)
        if self.is_mean is True:
            return ()
        return ("tap",) if all(known) else ("tap", "tap_of")

    def result(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return s["to_height"], times(s["to_width"], s["channels"])

    def shapes(self, s: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return (s["height"], s["width"], s["channels"]), (s["to_height"], s["to_width"], s["channels"])

    def scratch(self, s: Mapping[str, Any]) -> Size:
        """What is known of columns, where that is not a table; two rows of the result before they are mixed, if any."""
        if self.is_mean is True or (self.is_direct and self.variant != "nearest"):
            return 0
        across = all(isinstance(size, int) for size in self.sides[0])
        if self.variant == "nearest":
            nbytes: Size = 0 if across else times(4, s["to_width"])
            return nbytes
        wide = self.asked.dtype is not u8
        rows = times(8 if wide else 4, s["to_width"], s["channels"])
        if across:
            nbytes = rows
            return nbytes
        columns = times(8 if wide else 4, s["to_width"])
        return columns + rows if isinstance(rows, int) and isinstance(columns, int) else f"{columns} + {rows}"

    @property
    def weights(self) -> Size:
        """How many weights the mean of bytes in a pixel has; 0 where none is made."""
        if self.is_mean is False or self.asked.dtype is not u8:
            return 0
        (across, _), (down, _) = (_units(*side) for side in self.sides)
        weights: Size = times(across, down)
        return weights

    def wrong(self, s: Mapping[str, Any]) -> list[str]:
        (across, _), (down, _) = (_units(*side) for side in self.sides)
        return [f"{across} > {_MOST} / {down}"] if isinstance(self.weights, str) else []

    def refused(self) -> Problem | None:
        if isinstance(self.weights, str) or self.weights <= _MOST:
            return None
        why = f"a mean has up to {self.weights} weights, {_MOST} are the most in 32 bits"
        return Problem("resize=area cannot make these sizes", "--size", why, "did you mean resize=bilinear?")

    def context(self) -> Mapping[str, Any]:
        (width, _), (height, _) = self.sides
        s, channels = self.c, self.sizes["channels"]
        wide = self.asked.dtype is not u8
        if self.variant == "nearest":
            return {"columns": _both(self.sides[0], nearest), "rows": _both(self.sides[1], nearest)}
        step = "next" if isinstance(width, str) else channels if width > 1 else 0
        one = "1.0f" if wide else f"{_ONE}u"
        low, high = (f"{of}[@] * ({one} - share) + {of}[{step} + @] * share" for of in ("pixel", "other"))
        told: dict[str, Any] = {
            "mean": self.is_mean,
            "wide": wide,
            "one": _ONE,
            "area": int(self.variant == "area"),
            "next": step,
            "row": term(self.result(s)[1]),
            "last_row": less_one(height),
            "line": "float" if wide else "uint16_t",
            "share": "float" if wide else "uint32_t",
            "sum": "float" if wide else "uint32_t",
            "mixed": f"made[@] = {low if wide else f'(uint16_t)(({low}) >> 4)'};",
            "at_once": _FLOATS.format(low=low, high=high) if wide else _BYTES.format(low=low, high=high, one=one),
            "direct": self.is_direct,
            "own": each(1 if isinstance(channels, str) else channels),
            "at_k": "k + " if isinstance(channels, str) else "",
            "columns": None,
            "rows": None,
        }
        told |= {f"at_{place}": times(place, channels) for place in ("first", "last", "column")}
        if self.is_mean is not True:
            told["columns"] = _both(self.sides[0], lambda a, b: self._taps(a, b, True))
            told["rows"] = _both(self.sides[1], lambda a, b: self._taps(a, b, False))
        (across, cut_across), (down, cut_down) = (_units(*side) for side in self.sides)
        told |= {"across": across, "cut_across": cut_across, "down": down, "cut_down": cut_down}
        return told | {"whole": times(across, down)}

    def _taps(self, size: int, out: int, column: bool) -> list[str]:
        """Of C: the first of two elements, and the share of the second."""
        first, share = (enlarged if self.variant == "area" else linear)(size, out)
        if column:
            first, share = _column(first, share, size)
        shares = [literal_c(n, f32) if isinstance(n, float) else str(n) for n in self._weights(share).tolist()]
        return [f"{{{at}, {share}}}" for at, share in zip(first.tolist(), shares, strict=True)]

    def _weights(self, share: np.ndarray) -> np.ndarray:
        if self.asked.dtype is not u8:
            return share
        return np.asarray(np.floor(share * np.float32(_ONE) + np.float32(0.5)), np.int64)

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        width, height, to_width, to_height = (s[name] for name in ("width", "height", "to_width", "to_height"))
        if self.variant == "nearest":
            return np.asarray(x[nearest(height, to_height)][:, nearest(width, to_width)])
        if self.variant == "area" and to_width <= width and to_height <= height:
            return _mean(x, to_width, to_height)
        of_bytes = x.dtype == np.uint8
        places: _Places = enlarged if self.variant == "area" else linear
        first, share = _column(*places(width, to_width), width)
        low, high = x[:, first], x[:, np.minimum(first + 1, width - 1)]
        top, down = places(height, to_height)
        rows = [np.clip(top + n, 0, height - 1) for n in (0, 1)]
        across, down = self._weights(share)[:, None], self._weights(down)[:, None, None]
        if not of_bytes:
            lines = low * (1 - across.astype(np.float64)) + high * across
            return np.asarray(lines[rows[0]] * (1 - down) + lines[rows[1]] * down, np.float32)
        lines = (low.astype(np.int64) * (_ONE - across) + high.astype(np.int64) * across) >> 4
        above, below = lines[rows[0]] * (_ONE - down) >> 16, lines[rows[1]] * down >> 16
        return np.asarray((above + below + 2) >> 2, np.uint8)


def _column(first: np.ndarray, share: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """So that the second element is always inside: the last one has all of the share."""
    first, share = inside(first, share, size)
    last = (first == size - 1) & (size > 1)
    return np.where(last, size - 2, first), np.where(last, np.float32(1), share)


def _both(side: tuple[Size, Size], table: Callable[[int, int], Any]) -> Any:
    size, out = side
    if not isinstance(size, int) or not isinstance(out, int):
        return None
    found = table(size, out)
    return found.tolist() if isinstance(found, np.ndarray) else found


def _units(size: Size, out: Size) -> tuple[Size, Size]:
    """How many units a pixel of the result has, and one of the source."""
    if not isinstance(size, int) or not isinstance(out, int):
        return size, out
    shared = gcd(size, out)
    return size // shared, out // shared


def _mean(x: np.ndarray, to_width: int, to_height: int) -> np.ndarray:
    height, width = x.shape[:2]
    of_bytes = x.dtype == np.uint8
    across, down = _shares(width, to_width), _shares(height, to_height)
    if of_bytes:
        across, down = across.astype(np.int64), down.astype(np.int64)
    total = int(across[0].sum() * down[0].sum())
    sums = np.einsum("oh,hwc,pw->opc", down, x.astype(down.dtype), across, optimize=True)
    return np.asarray((sums + total // 2) // total if of_bytes else sums / total, x.dtype)


def _shares(size: int, out: int) -> np.ndarray:
    """Units that a pixel of the result (row) shares with one of the source (column)."""
    whole, cut = (int(each) for each in _units(size, out))
    begin, edges = np.arange(out)[:, None] * whole, np.arange(size)[None] * cut
    return np.asarray(np.maximum(np.minimum(begin + whole, edges + cut) - np.maximum(begin, edges), 0), np.float64)
