"""cvt_color: from one form of colours to another, with OpenCV's numbers: integers of 14, 15 and 20 bits for u8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.dtypes import DType, u8
from ...base.errors import Problem
from ...expr.scalar_c import literal_c
from ...ops.camera import LUMA, OF_U, OF_V, UNIT
from ..api import ImageFunction, provided, times

_LUMA = (0.299, 0.587, 0.114)  # of red, green, blue
_GRAY_BITS, _GRAY = 15, (9798, 19235, 3735)
_BITS, _OF_LUMA = 14, (4899, 9617, 1868)
# Of a difference to luma: where red's and blue's lie, their factors; and back: red of red's, green of both, blue of
# blue's; as floats and as OpenCV's integers, which are not always those rounded.
_APART: Mapping[str, tuple[tuple[int, int], Sequence[float], Sequence[int], Sequence[float], Sequence[int]]] = {
    "yuv": ((2, 1), (0.877, 0.492), (14369, 8061), (1.140, -0.581, -0.395, 2.032), (18678, -9519, -6472, 33292)),
    "ycrcb": ((1, 2), (0.713, 0.564), (11682, 9241), (1.403, -0.714, -0.344, 1.773), (22987, -11698, -5636, 29049)),
}
_BACK = ("red_red", "red_green", "blue_green", "blue_blue")
_ORDERS: Mapping[str, tuple[int, Sequence[int | None]]] = {
    "rgb2bgr": (3, (2, 1, 0)),
    "rgba2rgb": (4, (0, 1, 2)),
    "rgba2bgr": (4, (2, 1, 0)),
    "rgb2rgba": (3, (0, 1, 2, None)),
    "bgr2rgba": (3, (2, 1, 0, None)),
    "gray2rgb": (1, (0, 0, 0)),
}
_FRAMES = {"nv21": "V before U", "nv12": "U before V", "yuy2": "packed Y U Y V"}


def _codes() -> dict[str, str]:
    found = dict.fromkeys(_ORDERS, "channels in another order")
    for order in ("rgb", "bgr"):
        found[f"{order}2gray"] = "brightness"
        for form in _APART:
            found[f"{order}2{form}"], found[f"{form}2{order}"] = "brightness and what colours differ by", "back"
        found[f"{order}2hsv"] = "hue up to 180 (u8) or 360 (f32), saturation, value"
        for frame, how in _FRAMES.items():
            found[f"yuv2{order}_{frame}"] = f"a frame of a camera, {how}"
    found["yuv2gray_420"] = "the brightness of a frame of NV21 or NV12"
    return found


@provided
class CvtColor(ImageFunction):
    name = "cvt_color"
    about = "colours in another form"
    variants: ClassVar[Mapping[str, str]] = _codes()
    reads = ("width", "height")

    @property
    def helpers(self) -> Sequence[str]:
        held = self.kind in ("apart", "joined", "nv", "yuy2")
        return ("byte",) if held and self.asked.dtype is u8 else ()

    @property
    def kind(self) -> str:
        made = self.variant.partition("2")[2]
        if self.variant in _ORDERS:
            return "order"
        if "_" in made:
            return {"yuy2": "yuy2", "420": "luma"}.get(made.rpartition("_")[2], "nv")
        if made in ("gray", "hsv"):
            return made
        return "apart" if made in _APART else "joined"

    @property
    def channels(self) -> tuple[int, int]:
        """Of what is given and what is made."""
        match self.kind:
            case "order":
                given, order = _ORDERS[self.variant]
                return given, len(order)
            case "gray":
                return 3, 1
            case "nv" | "luma" | "yuy2":
                return 2 if self.kind == "yuy2" else 1, 1 if self.kind == "luma" else 3
        return 3, 3

    @property
    def form(self) -> str:
        return next((form for form in _APART if form in self.variant.partition("_")[0].split("2")), "")

    @property
    def red(self) -> int:
        return 2 if "bgr" in self.variant else 0

    def takes(self, dtype: DType) -> bool:
        return dtype is u8 or self.kind not in ("nv", "luma", "yuy2")

    def source(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return s["height"], times(s["width"], self.channels[0])

    def result(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return s["height"], times(s["width"], self.channels[1])

    def shapes(self, s: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        rows = s["height"] * 3 // 2 if self.kind in ("nv", "luma") else s["height"]
        given, made = self.channels
        return (rows, s["width"], given), (s["height"], s["width"], made)

    @property
    def even(self) -> tuple[str, ...]:
        """Sizes that are."""
        return {"nv": ("width", "height"), "luma": ("width", "height"), "yuy2": ("width",)}.get(self.kind, ())

    def wrong(self, s: Mapping[str, Any]) -> list[str]:
        return [f"{s[name]} % 2 != 0" for name in self.even if isinstance(s[name], str)]

    def refused(self) -> Problem | None:
        odd = [name for name in self.even if isinstance(size := self.sizes[name], int) and size % 2]
        if not odd or not self.asked.size:
            return None
        width, height = self.asked.size
        even = "x".join(str(size + (name in odd)) for name, size in (("width", width), ("height", height)))
        why = f"two pixels share their colours, so {' and '.join(odd)} must be even"
        what = f"{self.variant} has no frames of {width}x{height}"
        return Problem(what, "--size", why, f"did you mean --size {even}?")

    def context(self) -> Mapping[str, Any]:
        kind, floats = self.kind, self.asked.dtype is not u8
        told: dict[str, Any] = {"kind": kind, "red": self.red, "blue": 2 - self.red, "bits": _BITS}
        told |= {"inputs": self.channels[0], "outputs": self.channels[1]}

        def numbers(exact: Sequence[float], integers: Sequence[int]) -> list[str]:
            if floats:
                return [literal_c(n, self.asked.dtype) for n in exact]
            return [f"({n})" if n < 0 else str(n) for n in integers]

        match kind:
            case "order":
                told |= {"order": _ORDERS[self.variant][1], "full": "1.0f" if floats else "255"}
            case "gray":
                told |= {"factors": numbers(_LUMA, _GRAY), "half": 1 << (_GRAY_BITS - 1), "bits": _GRAY_BITS}
            case "apart" | "joined":
                (at_red, at_blue), exact, integers, back, back_integers = _APART[self.form]
                of_red, of_blue = numbers(exact, integers)
                half = 1 << (_BITS - 1)
                told |= {"at_red": at_red, "at_blue": at_blue, "of_red": of_red, "of_blue": of_blue, "half": half}
                told |= {"factors": numbers(_LUMA, _OF_LUMA), "middle": (128 << _BITS) + half}
                told |= dict(zip(_BACK, numbers(back, back_integers), strict=True))
            case "nv" | "yuy2":
                told |= {"luma": LUMA, "half": UNIT // 2, "bits": UNIT.bit_length() - 1, "v_red": OF_V[0]}
                told |= {"v_green": f"({OF_V[1]})", "u_green": f"({OF_U[1]})", "u_blue": OF_U[2]}
                told |= {"at_u": 1 if self.variant.endswith("nv21") else 0}
        return told

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        floats = x.dtype != np.uint8
        if self.kind in ("nv", "luma", "yuy2"):
            return self._of_frame(x[..., 0] if self.kind != "yuy2" else x, s["height"])
        if self.kind == "order":
            full = np.full(x.shape[:2], 1 if floats else 255, x.dtype)
            return np.stack([full if k is None else x[..., k] for k in _ORDERS[self.variant][1]], -1)
        wide = x.astype(np.float64 if floats else np.int64)
        if self.kind == "hsv":
            return self._hsv(wide, floats)
        if self.kind == "joined":
            return self._joined(wide, floats)
        r, g, b = (wide[..., k] for k in (self.red, 1, 2 - self.red))
        bits, factors = (_GRAY_BITS, _GRAY) if self.kind == "gray" else (_BITS, _OF_LUMA)
        red, green, blue = _LUMA if floats else factors
        luma = red * r + green * g + blue * b
        luma = luma if floats else (luma.astype(np.int64) + (1 << (bits - 1))) >> bits
        if self.kind == "gray":
            return np.asarray(luma, x.dtype)[..., None]
        places, exact, integers, _, _ = _APART[self.form]
        made = [luma, luma, luma]
        for place, colour, f, n in zip(places, (r, b), exact, integers, strict=True):
            half = (128 << _BITS) + (1 << (_BITS - 1))
            made[place] = (colour - luma) * f + 0.5 if floats else _byte((colour - luma) * n + half, _BITS)
        return np.stack(made, -1).astype(x.dtype)

    def _joined(self, x: np.ndarray, floats: bool) -> np.ndarray:
        places, _, _, exact, integers = _APART[self.form]
        rr, rg, bg, bb = exact if floats else integers
        luma, r, b = x[..., 0], *(x[..., k] - (0.5 if floats else 128) for k in places)
        luma = luma if floats else (luma << _BITS) + (1 << (_BITS - 1))
        made = [luma + rr * r, luma + rg * r + bg * b, luma + bb * b]
        whole = np.stack(made[::-1] if self.red else made, -1)
        return whole.astype(np.float32) if floats else _byte(whole, _BITS)

    def _hsv(self, x: np.ndarray, floats: bool) -> np.ndarray:
        r, g, b = (x[..., k] for k in (self.red, 1, 2 - self.red))
        most, apart = x.max(-1), x.max(-1) - x.min(-1)
        if floats:
            least = np.finfo(np.float32).eps
            share = 60 / (apart + least)
            others = np.where(most == g, (b - r) * share + 120, (r - g) * share + 240)
            hue = np.where(most == r, (g - b) * share, others)
            hue = np.where(hue < 0, hue + 360, hue)
            return np.stack([hue, apart / (abs(most) + least), most], -1).astype(np.float32)
        share = np.where(apart > 0, (2 * (30 << 12) + apart) // np.maximum(2 * apart, 1), 0)
        hue = np.where(most == r, g - b, np.where(most == g, b - r + 2 * apart, r - g + 4 * apart)) * share + 2048
        hue = np.where(hue < 0, hue + (180 << 12), hue) >> 12
        full = np.where(most > 0, (2 * (255 << 12) + most) // np.maximum(2 * most, 1), 0)
        return np.stack([hue, (apart * full + 2048) >> 12, most], -1).astype(np.uint8)

    def _of_frame(self, x: np.ndarray, rows: int) -> np.ndarray:
        if self.kind == "luma":
            return x[:rows, :, None]
        wide = x.astype(np.int64)
        if self.kind == "yuy2":
            luma, u, v = wide[..., 0], wide[:, 0::2, 1].repeat(2, 1), wide[:, 1::2, 1].repeat(2, 1)
        else:
            luma, chroma = wide[:rows], wide[rows:].repeat(2, 0)
            first, second = chroma[:, 0::2].repeat(2, 1), chroma[:, 1::2].repeat(2, 1)
            u, v = (second, first) if self.variant.endswith("nv21") else (first, second)
        bright = np.maximum(luma - 16, 0) * LUMA + UNIT // 2
        made = [bright + of_u * (u - 128) + of_v * (v - 128) for of_u, of_v in zip(OF_U, OF_V, strict=True)]
        return _byte(np.stack(made[::-1] if self.red else made, -1), UNIT.bit_length() - 1)


def _byte(values: np.ndarray, bits: int) -> np.ndarray:
    return np.asarray(np.clip(values >> bits, 0, 255), np.uint8)
