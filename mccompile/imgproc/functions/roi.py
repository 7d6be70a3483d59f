"""roi: a part of a picture, copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...base.errors import Problem
from ..api import ImageFunction, provided, steps, times


@provided
class Roi(ImageFunction):
    name = "roi"
    about = "a part of a picture: column `left` and row `top` are its first"
    variants: ClassVar[Mapping[str, str]] = {"": "copied"}
    reads = ("width", "height", "to_width", "to_height", "channels")

    def result(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return s["to_height"], times(s["to_width"], s["channels"])

    def shapes(self, s: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return (s["height"], s["width"], s["channels"]), (s["to_height"], s["to_width"], s["channels"])

    def wrong(self, s: Mapping[str, Any]) -> list[str]:
        pairs = (("left", "to_width", "width"), ("top", "to_height", "height"))
        return [f"{first} < 0 || {s[part]} > {s[whole]} - {first}" for first, part, whole in pairs]

    def refused(self) -> Problem | None:
        if self.asked.size is None or self.asked.to is None:
            return None
        (width, height), (w, h) = self.asked.to, self.asked.size
        if width <= w and height <= h:
            return None
        why, fix = f"a part of {width}x{height} is not inside of {w}x{h}", f"did you mean --to {w}x{h}?"
        return Problem("roi cannot be larger than its picture", "--to", why, fix)

    @property
    def extras(self) -> Mapping[str, str]:
        return {"left": "mcc_index left", "top": "mcc_index top"}

    @property
    def template(self) -> str:
        return "moved"

    def context(self) -> Mapping[str, Any]:
        s, channels = self.c, self.c["channels"]
        first = f"{times('(top + i)', s['x_stride'])} + {times('left', channels)}"
        sizes = {"rows": s["to_height"], "columns": s["to_width"], "row": self.result(s)[1]}
        return {**sizes, "first": first, **steps(channels, channels)}

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        left, top = extras["left"], extras["top"]
        return x[top : top + s["to_height"], left : left + s["to_width"]]

    def trial(self) -> dict[str, int]:
        found, known = super().trial(), self.asked
        for axis, name in enumerate(("width", "height")):
            if known.size is None:
                found[name] = max(found[name], found[f"to_{name}"])
            elif known.to is None:
                found[f"to_{name}"] = min(known.size[axis], found[f"to_{name}"])
        return found

    def tried(self, s: Mapping[str, int]) -> Mapping[str, Any]:
        return {"left": min(3, s["width"] - s["to_width"]), "top": min(2, s["height"] - s["to_height"])}
