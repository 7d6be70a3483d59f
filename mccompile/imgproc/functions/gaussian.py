"""gaussian: blurred by 3, 5 or 7 taps both ways, with OpenCV's fixed kernels (sigma 0); borders mirror the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.dtypes import f32, u8
from ...expr.scalar_c import literal_c
from ..api import ImageFunction, Size, provided, times

_ONE = 256
_KERNELS = {"3": (64, 128, 64), "5": (16, 64, 96, 64, 16), "7": (8, 28, 56, 72, 56, 28, 8)}  # in 1/256


@provided
class Gaussian(ImageFunction):
    name = "gaussian"
    about = "blurred"
    variants: ClassVar[Mapping[str, str]] = {size: f"{size} taps both ways" for size in _KERNELS}

    @property
    def helpers(self) -> Sequence[str]:
        return ("mirrored",)

    def scratch(self, s: Mapping[str, Any]) -> Size:
        """A row of sums, with its borders."""
        width, more = s["width"], 2 * (len(_KERNELS[self.variant]) // 2)
        whole = width + more if isinstance(width, int) else f"({width} + {more})"
        nbytes: Size = times(2 if self.asked.dtype is u8 else 4, whole, s["channels"])
        return nbytes

    def context(self) -> Mapping[str, Any]:
        kernel, wide = _KERNELS[self.variant], self.asked.dtype is not u8
        middle, channels = len(kernel) // 2, self.sizes["channels"]
        weights = [literal_c(n / _ONE, f32) if wide else f"{n}u" for n in kernel]

        def weighted(of: Sequence[str]) -> str:
            pairs = [f"{weights[n]} * ({'' if wide else '(uint32_t)'}{of[n]} + {of[-1 - n]})" for n in range(middle)]
            return " + ".join([f"{weights[middle]} * {of[middle]}", *pairs])

        row = self.source(self.c)[1]
        return {
            "taps": len(kernel),
            "middle": middle,
            "row": row,
            "line": "float" if wide else "uint16_t",
            "down": weighted([f"rows[{n}][j]" for n in range(len(kernel))]),
            "across": weighted([f"line[j{f' + {times(n, channels)}' if n else ''}]" for n in range(len(kernel))]),
            "wide": wide,
        }

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        kernel, of_bytes = _KERNELS[self.variant], x.dtype == np.uint8
        wide, middle = x.astype(np.int64 if of_bytes else np.float64), len(kernel) // 2
        for axis in (0, 1):
            size, places = x.shape[axis], np.arange(x.shape[axis])
            taken = [wide.take(mirrored(places + n - middle, size), axis) for n in range(len(kernel))]
            wide = np.asarray(np.tensordot(np.array(kernel), np.stack(taken), 1))
        return np.asarray((wide + _ONE * _ONE // 2) // (_ONE * _ONE) if of_bytes else wide / (_ONE * _ONE), x.dtype)


def mirrored(places: np.ndarray, size: int) -> np.ndarray:
    """Followed by themselves backwards, the last one once."""
    period = max(2 * size - 2, 1)
    places = abs(places) % period
    return np.where(places < size, places, period - places)
