"""Camera frames as a form of inputs: which operator converts them to pictures, and what `check` passes in."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from ...base.dtypes import DType
from ...base.errors import Problem, WrongUse
from ...base.near import meant
from ...base.tensor import TensorType
from ...ops.camera import FORMATS, MODES, MOST_TAPS, Camera


class Form(Protocol):
    """What `InputForm` says of frames."""

    @property
    def camera(self) -> str: ...
    @property
    def resize(self) -> str: ...
    @property
    def frame(self) -> tuple[int, ...]: ...
    @property
    def crop(self) -> tuple[int, ...]: ...
    @property
    def letterbox(self) -> int | None: ...
    @property
    def nhwc(self) -> bool: ...
    @property
    def raw(self) -> bool: ...
    @property
    def dtype(self) -> DType | None: ...


def read_camera(what: str, text: str) -> Mapping[str, Any]:
    """`resize=bilinear:640x480` and `crop=X:Y:WIDTHxHEIGHT` as fields of a form; ValueError where they are none."""
    if what == "letterbox":
        (fill,) = _numbers((text or "0",), f"letterbox={text}", "114")
        if fill > 255:
            raise ValueError(f"letterbox={text} is not a byte, such as 114")
        return {"letterbox": fill}
    if what == "crop":
        x, _, rest = text.partition(":")
        y, _, size = rest.partition(":")
        return {"crop": (*_numbers((x, y), f"crop={text}", "crop=0:60:640x360"), *_size(size, f"crop={text}"))}
    mode, colon, size = text.partition(":")
    if mode not in MODES:
        close = meant(mode, MODES)
        raise ValueError(f"resize={text} is not one of {', '.join(MODES)}" + (f"; {close}" if close else ""))
    return {"resize": mode, **({"frame": _size(size, f"resize={text}")} if colon else {})}


def _size(text: str, whole: str) -> tuple[int, ...]:
    found = _numbers(tuple(text.split("x")), whole, "640x480")
    if len(found) != 2 or 0 in found:
        raise ValueError(f"{whole!r} names no width and height, such as 640x480")
    return found


def _numbers(parts: tuple[str, ...], whole: str, such: str) -> tuple[int, ...]:
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"{whole!r} are not numbers, such as {such}")
    return tuple(map(int, parts))


def camera_of(name: str, form: Form, type: TensorType) -> Camera:
    """The operator between a frame and an input of the model. Raises WrongUse."""
    channels, size = _picture(name, type)
    width, height = form.frame or size
    crop = form.crop or (0, 0, width, height)
    inner, border = size, (0, 0, 0, 0)
    if form.letterbox is not None:
        ratio = min(Fraction(size[0], crop[2]), Fraction(size[1], crop[3]))
        inner = (max(1, round(crop[2] * ratio)), max(1, round(crop[3] * ratio)))
        left, top = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
        border = (left, top, size[0] - inner[0] - left, size[1] - inner[1] - top)
    part = (crop[0], crop[1], crop[2], crop[3])
    fill = form.letterbox or 0
    camera = Camera(form.camera, width, height, part, inner, form.resize, channels, border, fill)
    what, where = f"{name!r} cannot be a frame of a camera", f"--input {name}={form.camera}"
    if form.camera not in FORMATS or form.nhwc or form.raw or form.dtype is not None:
        why = "bytes of frames lie as their format says"
        raise WrongUse(Problem(what, where, why, "leave out nhwc, raw and element types"))
    if channels == 1 and form.camera in ("rgb", "rgb565"):
        raise WrongUse(Problem(what, where, "the model takes one channel", f"hand over gray: {name}=gray"))
    halves = {"nv21": (2, 2), "nv12": (2, 2), "yuyv": (2, 1)}.get(form.camera, (1, 1))
    if width % halves[0] or height % halves[1]:
        even = f"{-(-width // halves[0]) * halves[0]}x{-(-height // halves[1]) * halves[1]}"
        fix = f"{form.resize}:{even}" if form.resize else f"{form.camera},resize=bilinear:{even}"
        why = f"{form.camera} has no frames of {width}x{height}"
        raise WrongUse(Problem(what, where, why, f"did you mean {fix}?"))
    if crop[0] + crop[2] > width or crop[1] + crop[3] > height:
        why = f"{crop[2]}x{crop[3]} at {crop[0]}:{crop[1]} is not inside of {width}x{height}"
        raise WrongUse(Problem(what, where, why, f"crop=0:0:{width}x{height}"))
    if form.resize == "area" and (crop[2] < inner[0] or crop[3] < inner[1]):
        why = f"{crop[2]}x{crop[3]} get larger"
        raise WrongUse(Problem(what, where, why, f"resize=bilinear:{width}x{height}"))
    taps = len(camera.taps(0)) * len(camera.taps(1)) if form.resize else 1
    if taps > MOST_TAPS:
        why = f"a pixel would be made of {taps} of the frame, {MOST_TAPS} are the most"
        raise WrongUse(Problem(what, where, why, f"resize=bilinear:{width}x{height}"))
    if crop[2:] != inner and not form.resize:
        why = f"the model takes {size[0]}x{size[1]}, frames give {crop[2]}x{crop[3]}"
        raise WrongUse(Problem(what, where, why, f"resize=bilinear:{width}x{height}"))
    return camera


def _picture(name: str, type: TensorType) -> tuple[int, tuple[int, int]]:
    """Channels, and width and height, of what the model takes."""
    shape = type.shape if type.is_static else ()
    for channel, row in ((1, 2), (3, 1)):
        if len(shape) == 4 and shape[0] == 1 and shape[channel] in (1, 3):
            sizes = type.static_shape
            return sizes[channel], (sizes[row + 1], sizes[row])
    why, fix = f"the model takes {type}, and frames are one picture of 1 or 3 channels", "leave out --input"
    fix += "" if type.is_static else f" {name}, or give each of its sizes one value"
    raise WrongUse(Problem(f"{name!r} cannot be a frame of a camera", "--input", why, fix))


def any_frame(camera: Camera, x: np.ndarray) -> np.ndarray:
    """A frame for what a check would hand over: the same for the same."""
    chance = np.random.default_rng(zlib.crc32(np.ascontiguousarray(x).tobytes()))
    return chance.integers(0, 256, camera.frame, dtype=np.uint8)


def seen_picture(camera: Camera, frame: np.ndarray, type: TensorType) -> np.ndarray:
    """What the model sees of a frame before it is scaled."""
    picture = camera.picture(frame)
    return picture if type.shape[1] == camera.channels else picture.transpose(0, 2, 3, 1)
