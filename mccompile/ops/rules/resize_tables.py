"""Where resizing reads along one axis, and with which weights: numbers that follow from sizes and attributes alone.

Invariant: coordinates are computed in float32 in the order in which onnxruntime computes them, so that "nearest" falls
on the same element; those that are rounded are exact, so that halves are halves. Positions lie inside of the axis.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...base.records import dataclass
from ..api import Invalid

f32 = np.float32
COORDINATE_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """One resized axis."""

    axis: int
    size: int
    out: int
    scale: float  # as given, or out / size; in float32
    start: float = 0.0  # region of interest, in parts of the axis
    end: float = 1.0
    ratio: Fraction | None = None  # the scale before it was rounded to float32, where that is known

    @property
    def exact(self) -> Fraction:
        """The scale as it is meant: what rounds to the given one, of sizes first."""
        if self.ratio is not None:
            return self.ratio
        meant = Fraction(self.out, max(self.size, 1))
        asked = f32(meant.numerator) / f32(meant.denominator)
        return meant if meant and asked == f32(self.scale) else simplest(self.scale)


def simplest(scale: float) -> Fraction:
    """The scale that was rounded to float32: 1.3 rather than 1.2999999523, by which halves would be none."""
    near = (Fraction(scale).limit_denominator(10**digits) for digits in range(1, 5))
    return next((each for each in near if f32(float(each)) == f32(scale)), Fraction(scale))


def coordinates(mode: str, axis: Axis) -> np.ndarray:
    """Per element of the result, its place on the axis of the input; float32."""
    x = np.arange(axis.out, dtype=f32)
    scale, size, out = f32(axis.scale), f32(axis.size), f32(axis.out)
    half = (x + f32(0.5)) / scale - f32(0.5)
    match mode:
        case "half_pixel":
            return half
        case "half_pixel_symmetric":
            adjustment = out / (scale * size)
            return size / f32(2) * (f32(1) - adjustment) + (x + f32(0.5)) / scale - f32(0.5)
        case "pytorch_half_pixel":
            return half if axis.out > 1 else np.zeros_like(x)
        case "asymmetric":
            return x / scale
        case "tf_half_pixel_for_nn":
            return (x + f32(0.5)) / scale
        case "align_corners":
            # the length of the result, whole also where a scale asks for parts of an element
            return np.zeros_like(x) if axis.out == 1 else x * (size - f32(1)) / (out - f32(1))
        case "tf_crop_and_resize":
            start, end = f32(axis.start), f32(axis.end)
            if axis.out == 1:
                return np.full_like(x, f32(0.5) * (start + end) * (size - f32(1)))
            return start * (size - f32(1)) + x * (end - start) * (size - f32(1)) / (out - f32(1))
    raise Invalid(f"coordinate_transformation_mode {mode!r} is not {', '.join(COORDINATE_MODES)}")


def exact_coordinates(mode: str, axis: Axis) -> np.ndarray:
    """The same for coordinates that are rounded: one float64 division of integers (sizes below 2**24), which gives a
    half only where the quotient is one."""
    if mode == "tf_crop_and_resize":
        return coordinates(mode, axis)
    x = np.arange(axis.out, dtype=np.float64)
    times, parts = (float(n) for n in (axis.exact.denominator, axis.exact.numerator))
    match mode:
        case "half_pixel_symmetric":
            return (2 * x + 1 - axis.out) * times / (2 * parts) + (axis.size - 1) / 2
        case "asymmetric":
            return x * times / parts
        case "tf_half_pixel_for_nn":
            return (2 * x + 1) * times / (2 * parts)
        case "align_corners":
            return np.zeros_like(x) if axis.out == 1 else x * (axis.size - 1) / (axis.out - 1)
    if mode == "pytorch_half_pixel" and axis.out == 1:
        return np.zeros_like(x)
    return (2 * x + 1) * times / (2 * parts) - 0.5


def nearest(places: np.ndarray, axis: Axis, mode: str) -> np.ndarray:
    """The element next to each coordinate."""
    places = places.astype(np.float64)  # adding a half is exact then
    match mode:
        case "round_prefer_floor":
            found = np.ceil(places - 0.5)
        case "round_prefer_ceil":
            found = np.floor(places + 0.5)
        case "floor":
            found = np.floor(places)
        case "ceil":
            found = np.ceil(places)
        case "simple":  # opset 10 and before
            found = np.ceil(places) if axis.scale < 1 else np.floor(places)
        case _:
            raise Invalid(f"nearest_mode {mode!r} is not round_prefer_floor, round_prefer_ceil, floor or ceil")
    return np.clip(found, 0, axis.size - 1).astype(np.int32)


def taps(
    places: np.ndarray, axis: Axis, mode: str, coefficient: float, exclude_outside: bool, antialias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Positions i32[out, taps] and weights f64[out, taps] of linear or cubic interpolation."""
    x = places.astype(np.float64)
    stretch = max(1.0, 1.0 / axis.scale) if antialias else 1.0
    radius = (2.0 if mode == "cubic" else 1.0) * stretch
    first = np.floor(x - radius).astype(np.int64) + 1
    count = int(np.ceil(2 * radius)) + (1 if antialias and stretch > 1 else 0)
    index = first[:, None] + np.arange(count)
    distance = np.abs(index - x[:, None]) / stretch
    weights = _cubic(distance, coefficient) if mode == "cubic" else np.maximum(1 - distance, 0)
    if exclude_outside:
        weights = np.where((index < 0) | (index >= axis.size), 0, weights)
    if exclude_outside or antialias:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return np.clip(index, 0, axis.size - 1).astype(np.int32), weights


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def inside(places: np.ndarray, axis: Axis) -> tuple[int, int]:
    """The first element of the result that lies on the input, and the first after it that does not."""
    found = np.flatnonzero((places >= 0) & (places <= axis.size - 1))
    return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)
