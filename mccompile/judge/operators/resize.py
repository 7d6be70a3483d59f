"""Interpolation between elements: Resize and what samples images."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from ..whole import next_to

HALF = Fraction(1, 2)


class Axis:
    """One axis that is resized. Scales are rational: what was given, or the quotient of two lengths."""

    def __init__(self, at: NodeSite, size: int, out: int, scale: Fraction, start: float, end: float) -> None:
        self.at, self.size, self.out, self.scale = at, size, out, scale
        self.start, self.end = Fraction(start), Fraction(end)
        self.how = at.attr("coordinate_transformation_mode", "half_pixel") if at.version > 10 else "asymmetric"

    def place(self, n: int) -> Fraction:
        """x_original, as the standard writes it."""
        x, last = Fraction(n), self.size - 1
        if self.how == "half_pixel":
            return (x + HALF) / self.scale - HALF
        if self.how == "half_pixel_symmetric":
            adjustment = self.out / (self.scale * self.size)
            return Fraction(self.size, 2) * (1 - adjustment) + (x + HALF) / self.scale - HALF
        if self.how == "pytorch_half_pixel":
            return (x + HALF) / self.scale - HALF if self.out > 1 else Fraction(0)
        if self.how == "align_corners":
            return x * last / (self.out - 1) if self.out > 1 else Fraction(0)
        if self.how == "asymmetric":
            return x / self.scale
        if self.how == "tf_half_pixel_for_nn":
            return (x + HALF) / self.scale
        if self.how == "tf_crop_and_resize":
            if self.out == 1:
                return HALF * (self.start + self.end) * last
            return self.start * last + x * (self.end - self.start) * last / (self.out - 1)
        raise NoWitness(f"coordinate_transformation_mode {self.how}")

    def matrix(self) -> Array:
        """What elements of the axis weigh in those of the result."""
        found = np.zeros((self.out, self.size))
        for n in range(self.out):
            for index, weight in self.weights(self.place(n)):
                found[n, min(max(index, 0), self.size - 1)] += weight
        return found

    def weights(self, place: Fraction) -> list[tuple[int, float]]:
        mode = self.at.attr("mode", "nearest")
        if mode == "nearest":
            return [(self.nearest(place), 1.0)]
        down = self.at.attr("antialias", 0) and self.scale < 1
        stretch = 1 / self.scale if down else Fraction(1)
        reach = (2 if mode == "cubic" else 1) * stretch
        indices = range(floor(place - reach), ceil(place + reach) + 1)
        curve = self.cubic if mode == "cubic" else _linear
        taken = [(index, curve(abs(float((index - place) / stretch)))) for index in indices]
        if self.at.attr("exclude_outside", 0):
            taken = [(index, weight) for index, weight in taken if 0 <= index < self.size]
        total = sum(weight for _, weight in taken)
        return [(index, weight / total) for index, weight in taken] if total else taken

    def nearest(self, place: Fraction) -> int:
        if self.at.version < 11:
            return floor(place) if self.scale >= 1 else ceil(place)
        how = self.at.attr("nearest_mode", "round_prefer_floor")
        if how == "round_prefer_floor":
            return ceil(place - HALF)
        return {"round_prefer_ceil": floor(place + HALF), "floor": floor(place), "ceil": ceil(place)}[how]

    def cubic(self, distance: float) -> float:
        a = self.at.attr("cubic_coeff_a", -0.75)
        if distance <= 1:
            return float((a + 2) * distance**3 - (a + 3) * distance**2 + 1)
        return float(a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a) if distance < 2 else 0.0


def _linear(distance: float) -> float:
    return max(1 - distance, 0.0)


@judges("Resize", "Upsample")
def resize(at: NodeSite) -> Array:
    x = at[0]
    axes = [axis % x.ndim for axis in at.attr("axes") or range(x.ndim)]
    found, outside = x.astype(np.float64), np.zeros(x.shape, bool)
    for number, axis in _resized(at, axes):
        matrix = number.matrix()
        found = np.moveaxis(np.tensordot(matrix, found, ([1], [axis])), 0, axis)
        outside = (
            np.take(outside, np.zeros(number.out, np.int64), axis) if x.shape[axis] else np.zeros(found.shape, bool)
        )
        if number.how == "tf_crop_and_resize":
            places = [number.place(n) for n in range(number.out)]
            out = np.array([p < 0 or p > number.size - 1 for p in places])
            outside = outside | out.reshape([-1 if n == axis else 1 for n in range(x.ndim)])
    found = np.where(outside, at.attr("extrapolation_value", 0.0), found)
    if x.dtype.kind in "iu":
        size = float(np.max(np.abs(x.astype(np.float64)), initial=0))
        return next_to(at, found, x.dtype.name, size, "ONNX does not say how interpolated integers are rounded")
    return found


def _resized(at: NodeSite, axes: list[int]) -> list[tuple[Axis, int]]:
    x = at[0]
    lengths = [x.shape[axis] for axis in axes]
    roi = [0.0] * len(axes) + [1.0] * len(axes)
    crop = at.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    if crop:
        roi = [float(n) for n in at[1]]
    old = at.node.op == "Upsample" or at.version == 10
    given = (at.get(1, at.attr("scales")) if old else at.get(2)) if not at.has(3) or at[3].size == 0 else None
    if given is not None and np.size(given):
        scales = [_fraction(float(each)) for each in np.asarray(given).reshape(-1)]
        spans = [Fraction(e) - Fraction(s) for s, e in zip(roi[: len(axes)], roi[len(axes) :], strict=True)]
        exact = [Fraction(float(np.float32(each))) for each in np.asarray(given).reshape(-1)]
        outs = [floor(n * max(s, e) * span) for n, s, e, span in zip(lengths, scales, exact, spans, strict=True)]
    else:
        wanted = at.ints(3, "sizes") or []
        scales = [Fraction(w, max(n, 1)) for w, n in zip(wanted, lengths, strict=True)]
        policy = at.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(scales) if policy == "not_larger" else max(scales)
            scales = [one] * len(scales)
        outs = [floor(s * n + HALF) for s, n in zip(scales, lengths, strict=True)]
    parts = zip(lengths, outs, scales, roi[: len(axes)], roi[len(axes) :], strict=True)
    made = [Axis(at, *part) for part in parts]
    return [(each, axis) for each, axis in zip(made, axes, strict=True) if crop or each.scale != 1]


def _fraction(scale: float) -> Fraction:
    """What rounds to a scale in float32 and has the smallest denominator: 1.7 rather than 1.7000000477."""
    for digits in (10, 100, 1000, 10000):
        near = Fraction(scale).limit_denominator(digits)
        if np.float32(float(near)) == np.float32(scale):
            return near
    return Fraction(scale)


# -- sampling at places that are computed


@judges("AffineGrid")
def affine_grid(at: NodeSite) -> Array:
    theta, sizes, corners = at[0], at.ints(1, "size") or [], at.attr("align_corners", 0)
    axes = []
    for size in sizes[2:]:
        if corners and size == 1:
            raise NoWitness("one element is both corners")
        numbers = np.arange(size)
        axes.append(2 * numbers / (size - 1) - 1 if corners else (2 * numbers + 1) / size - 1)
    grids = np.meshgrid(*axes, indexing="ij")[::-1]
    points = np.stack([*grids, np.ones(sizes[2:])], -1)
    return np.einsum("nij,...j->n...i", theta, points)


@judges("GridSample", "com.microsoft::GridSample")
def grid_sample(at: NodeSite) -> Array:
    x, grid = at[0], at[1]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(at.attr("mode", "linear"), at.attr("mode", "linear"))
    padding, corners = at.attr("padding_mode", "zeros"), bool(at.attr("align_corners", 0))
    rank = x.ndim - 2
    if mode == "cubic" and rank != 2:
        raise NoWitness("cubic samples of other than images")
    outs = grid.shape[1:-1]
    found = np.zeros((*x.shape[:2], *outs))
    for n in range(x.shape[0]):
        places = [_unnormalized(grid[n, ..., rank - 1 - axis], x.shape[2 + axis], corners) for axis in range(rank)]
        found[n] = _sampled(x[n], places, mode, padding, corners)
    return found


def _unnormalized(x: Array, size: int, corners: bool) -> Array:
    return (x + 1) / 2 * (size - 1) if corners else ((x + 1) * size - 1) / 2


def _sampled(planes: Array, places: list[Array], mode: str, padding: str, corners: bool) -> Array:
    taps: list[list[tuple[Array, Array]]] = []
    for axis, place in enumerate(places):
        size = planes.shape[1 + axis]
        if mode != "cubic" and padding != "zeros":
            place = _inside(place, size, padding, corners)
        if mode == "nearest":
            taps.append([(np.rint(place), np.ones_like(place))])
            continue
        first = np.floor(place)
        part = place - first
        if mode == "linear":
            taps.append([(first, 1 - part), (first + 1, part)])
        else:
            taps.append([(first + k - 1, _cubic(np.abs(part - (k - 1)))) for k in range(4)])
    found = np.zeros((planes.shape[0], *places[0].shape))

    def add(axis: int, index: tuple[Array, ...], weight: Any) -> None:
        nonlocal found
        if axis == len(places):
            found = found + planes[(slice(None), *index)] * weight
            return
        size = planes.shape[1 + axis]
        for position, share in taps[axis]:
            inside = (position >= 0) & (position <= size - 1)
            if padding != "zeros":
                position = np.clip(np.rint(_inside(position, size, padding, corners)), 0, size - 1)
                inside = np.ones_like(inside)
            at = np.where(inside, position, 0).astype(np.int64)
            add(axis + 1, (*index, at), weight * np.where(inside, share, 0))

    add(0, (), 1.0)
    return found


def _inside(place: Array, size: int, padding: str, corners: bool) -> Array:
    if padding == "border":
        return np.clip(place, 0, size - 1)
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return np.zeros_like(place)
    rest = np.mod(place - low, 2 * span)
    return (
        np.clip(low + np.minimum(rest, 2 * span - rest), 0, size - 1)
        if not corners
        else low + np.minimum(rest, 2 * span - rest)
    )


def _cubic(distance: Array, a: float = -0.75) -> Array:
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return np.where(distance <= 1, near, a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a)


@judges("RoiAlign")
def roi_align(at: NodeSite) -> Array:
    x, rois, batches = at[0], at[1], at[2]
    height, width = at.attr("output_height", 1), at.attr("output_width", 1)
    half = (
        at.attr("coordinate_transformation_mode", "half_pixel" if at.version >= 16 else "output_half_pixel")
        == "half_pixel"
    )
    if at.attr("mode", "avg") != "avg":
        raise NoWitness("ONNX does not say what RoiAlign takes the maximum of")
    found = np.zeros((len(rois), x.shape[1], height, width))
    for n, (roi, batch) in enumerate(zip(rois, batches, strict=True)):
        left, top, right, bottom = roi * at.attr("spatial_scale", 1.0) - (0.5 if half else 0.0)
        tall, wide = bottom - top, right - left
        if not half:
            tall, wide = max(tall, 1.0), max(wide, 1.0)
        ratio = at.attr("sampling_ratio", 0)
        rows, cols = (ratio, ratio) if ratio > 0 else (ceil(tall / height), ceil(wide / width))
        y = top + (np.arange(height * rows) + 0.5) * tall / height / max(rows, 1)
        c = left + (np.arange(width * cols) + 0.5) * wide / width / max(cols, 1)
        samples = _clamped(x[int(batch)], y, c)
        parts = samples.reshape(x.shape[1], height, rows, width, cols)
        found[n] = parts.mean((2, 4)) if rows and cols else 0
    return found


def _clamped(planes: Array, y: Array, x: Array) -> Array:
    """Between elements; points within one element of the image read its edge, those further out are 0."""

    def axis(places: Array, size: int) -> Array:
        matrix = np.zeros((len(places), size))
        for n, place in enumerate(places):
            if -1 <= place <= size:
                inside = min(max(place, 0.0), size - 1.0)
                low = floor(inside)
                matrix[n, low] += 1 - (inside - low)
                matrix[n, min(low + 1, size - 1)] += inside - low
        return matrix

    return np.einsum("ih,chw,jw->cij", axis(y, planes.shape[1]), planes, axis(x, planes.shape[2]))
