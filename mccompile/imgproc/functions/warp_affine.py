"""warp_affine: OpenCV's INTER_LINEAR under a matrix of 2x3, which says where pixels of the source go.

Positions are exact in 1/2**32 along rows. Of bytes, they are rounded to 1/1024 before pixels are mixed; with 5 bits
they are cut to 1/32, in OpenCV 4's steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.dtypes import u8
from ..api import ImageFunction, less_one, provided, times
from .gaussian import mirrored

_HELPERS = {"constant": "outside", "replicate": "clamped", "reflect": "reflected", "reflect101": "mirrored"}
_FAR = 1 << 20  # pixels: further out nothing is looked for
_ONE = 1 << 32
_BITS = 10  # behind the point of a position of bytes
_BYTES = """{{
    const int32_t over = (a[@] << {bits}) + (b[@] - a[@]) * u, under = (c[@] << {bits}) + (d[@] - c[@]) * u;
    to[@] = (uint8_t)(((over << {bits}) + (under - over) * v + (1 << ({all} - 1))) >> {all});
}}"""
_FLOATS = """{
    const float over = a[@] * (1.0f - u) + b[@] * u, under = c[@] * (1.0f - u) + d[@] * u;
    to[@] = over * (1.0f - v) + under * v;
}"""


@provided
class WarpAffine(ImageFunction):
    name = "warp_affine"
    about = "moved, turned and scaled by a matrix [a, b, c, d, e, f]: x' = a x + b y + c, y' = d x + e y + f"
    variants: ClassVar[Mapping[str, str]] = {
        "constant": "`fill` is what lies outside",
        "replicate": "the nearest pixel lies outside",
        "reflect": "outside the picture is backwards, its last pixel twice",
        "reflect101": "outside the picture is backwards, its last pixel once",
    }
    reads = ("width", "height", "to_width", "to_height", "channels", "fraction")

    @property
    def helpers(self) -> Sequence[str]:
        return ("inverse", _HELPERS[self.variant])

    @property
    def extras(self) -> Mapping[str, str]:
        found = {"matrix": "const double *matrix"}
        fill = "uint8_t fill" if self.asked.dtype is u8 else "float fill"
        return found | ({"fill": fill} if self.variant == "constant" else {})

    def result(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return s["to_height"], times(s["to_width"], s["channels"])

    def shapes(self, s: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return (s["height"], s["width"], s["channels"]), (s["to_height"], s["to_width"], s["channels"])

    def context(self) -> Mapping[str, Any]:
        bits = self.asked.fraction
        channels = self.sizes["channels"]
        told: dict[str, Any] = {"wide": self.asked.dtype is not u8, "place": _HELPERS[self.variant], "far": _FAR}
        told |= {"bits": bits, "cut": _BITS - bits, "half": 1 << (2 * bits - 1), "constant": self.variant == "constant"}
        told |= {"less_one": less_one, "mixed": _FLOATS if told["wide"] else _BYTES.format(bits=bits, all=2 * bits)}
        return told | {"at_column": times("column", channels), "most": channels if isinstance(channels, int) else 4}

    def tried(self, s: Mapping[str, int]) -> Mapping[str, Any]:
        across, down = (s[f"to_{side}"] / s[side] for side in ("width", "height"))
        matrix = (across * 1.1, -0.3 * across, 0.25, 0.2 * down, down * 0.9, -0.5)
        fill = {} if self.variant != "constant" else {"fill": 114 if self.asked.dtype is u8 else 0.5}
        return {"matrix": matrix, **fill}

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        height, width = x.shape[:2]
        of_bytes = x.dtype == np.uint8
        inner = [_fixed(n) for n in inverse(extras["matrix"])]
        columns, rows = np.arange(s["to_width"], dtype=np.int64), np.arange(s["to_height"], dtype=np.int64)[:, None]
        places, shares = list[np.ndarray](), list[np.ndarray]()
        for across, down, offset in (inner[:3], inner[3:]):
            place, bits = self._along(columns * across, rows * down + offset)
            places.append(place >> bits)
            share = place & ((1 << bits) - 1)
            shares.append((share if of_bytes else (share >> 8) / 2.0**24)[..., None])
        (column, row), (right, below) = places, shares
        fill = extras.get("fill", 0)
        wide = x.astype(np.int64 if of_bytes else np.float64)

        def pixel(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            taken = np.asarray(wide[self._place(i, height), self._place(j, width)])
            if self.variant != "constant":
                return taken
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            return np.where(inside[..., None], taken, fill)

        one = 1 << self.asked.fraction if of_bytes else 1.0
        top, bottom = (pixel(i, column) * (one - right) + pixel(i, column + 1) * right for i in (row, row + 1))
        mixed = top * (one - below) + bottom * below
        return np.asarray((mixed + one * one // 2) // (one * one) if of_bytes else mixed, x.dtype)

    def _along(self, along: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, int]:
        """Positions of 1/2**32 as they are used, and how many bits these have behind the point."""
        if self.asked.dtype is not u8:
            return along + begin, 32
        half, shift, cut = 1 << (31 - _BITS), 32 - _BITS, _BITS - self.asked.fraction
        if not cut:
            return (along + begin + half) >> shift, _BITS
        return (((along + half) >> shift) + ((begin + half) >> shift) + (1 << (cut - 1))) >> cut, self.asked.fraction

    def _place(self, i: np.ndarray, size: int) -> np.ndarray:
        if self.variant == "reflect":
            i = np.where(i < 0, -1 - i, i) % (2 * size)
            return np.where(i < size, i, 2 * size - 1 - i)
        return mirrored(i, size) if self.variant == "reflect101" else np.clip(i, 0, size - 1)


def inverse(matrix: Sequence[float]) -> list[float]:
    """Where pixels of the result come from."""
    a, b, c, d, e, f = matrix
    whole = a * e - b * d
    scale = 1 / whole
    a, b, d, e = e * scale, -b * scale, -d * scale, a * scale
    return [a, b, -a * c - b * f, d, e, -d * c - e * f]


def _fixed(number: float) -> int:
    raised = number * _ONE
    return int(raised + (0.5 if raised >= 0 else -0.5))
