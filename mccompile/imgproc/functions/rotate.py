"""rotate: by 90, 180 or 270 degrees clockwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..api import ImageFunction, less_one, provided, steps, times


@provided
class Rotate(ImageFunction):
    name = "rotate"
    about = "turned clockwise"
    variants: ClassVar[Mapping[str, str]] = {"90": "by a quarter", "180": "by a half", "270": "by three quarters"}

    def result(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return self.source(s) if self.variant == "180" else (s["width"], times(s["height"], s["channels"]))

    def shapes(self, s: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        whole = (s["height"], s["width"], s["channels"])
        return whole, whole if self.variant == "180" else (s["width"], s["height"], s["channels"])

    @property
    def template(self) -> str:
        return "moved"

    def context(self) -> Mapping[str, Any]:
        s = self.c
        width, height, channels, stride = (s[name] for name in ("width", "height", "channels", "x_stride"))
        first, step = {
            "90": (f"{times(less_one(height), stride)} + {times('i', channels)}", f"(-{stride})"),
            "180": (f"{times(f'({height} - 1 - i)', stride)} + {times(less_one(width), channels)}", f"(-{channels})"),
            "270": (times(f"({width} - 1 - i)", channels), stride),
        }[self.variant]
        rows, columns = (height, width) if self.variant == "180" else (width, height)
        return {"rows": rows, "columns": columns, "row": "", "first": first, **steps(step, channels)}

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        return np.rot90(x, -int(self.variant) // 90)
