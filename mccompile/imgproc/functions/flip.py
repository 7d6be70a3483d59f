"""flip: rows, columns or both in the other order, as OpenCV's codes 0, 1 and -1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..api import ImageFunction, less_one, provided, steps, times

_CODES = {"vertical": 0, "horizontal": 1, "both": -1}


@provided
class Flip(ImageFunction):
    name = "flip"
    about = "rows, columns or both in the other order"
    variants: ClassVar[Mapping[str, str]] = {
        "vertical": "the last row first",
        "horizontal": "the last column first",
        "both": "a half turn",
    }

    @property
    def template(self) -> str:
        return "moved"

    def context(self) -> Mapping[str, Any]:
        s, code = self.c, _CODES[self.variant]
        rows, channels = s["height"], s["channels"]
        first = times(f"({rows} - 1 - i)" if code < 1 else "i", s["x_stride"])
        if code:
            first += f" + {times(less_one(s['width']), channels)}"
        step = channels if code == 0 else f"(-{channels})"
        return {"rows": rows, "columns": s["width"], "row": self.source(s)[1], "first": first, **steps(step, channels)}

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        code = _CODES[self.variant]
        x = x[::-1] if code < 1 else x
        return x[:, ::-1] if code else x
