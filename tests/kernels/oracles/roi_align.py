"""What aligned regions mean: sample by sample, in the element type of the operands as the standard's reference does."""

from __future__ import annotations

import math

import numpy as np

from mccompile.kinds.roi_align import RoiAlign


def oracle(kind: RoiAlign, x: np.ndarray, rois: np.ndarray, batches: np.ndarray) -> np.ndarray:
    work = np.float64 if x.dtype == np.float64 else np.float32
    result = np.zeros((len(rois), x.shape[1], kind.rows, kind.columns), np.float64)
    for r, (roi, batch) in enumerate(zip(rois.astype(work), batches, strict=True)):
        index = int(batch) + (len(x) if batch < 0 else 0)
        image = x[min(max(index, 0), len(x) - 1)].astype(np.float64)
        left, top, right, bottom = roi * work(kind.scale) - work(0.5 if kind.half_pixel else 0)
        width, height = right - left, bottom - top
        if not kind.half_pixel:
            width, height = max(width, work(1)), max(height, work(1))
        bins = height / work(kind.rows), width / work(kind.columns)
        counts = [kind.sampling or max(math.ceil(size), 0) for size in bins]
        for row, column in np.ndindex(kind.rows, kind.columns):
            samples = [
                _sample(
                    kind,
                    image,
                    top + work(row) * bins[0] + (work(i) + work(0.5)) * bins[0] / work(counts[0]),
                    left + work(column) * bins[1] + (work(j) + work(0.5)) * bins[1] / work(counts[1]),
                )
                for i, j in np.ndindex(*counts)
            ]
            if samples:
                result[r, :, row, column] = np.max(samples, axis=0) if kind.largest else np.mean(samples, axis=0)
    return result.astype(x.dtype)


def _sample(kind: RoiAlign, image: np.ndarray, v: np.floating, u: np.floating) -> np.ndarray:
    _, height, width = image.shape
    if not (-1 <= v <= height and -1 <= u <= width):
        return np.zeros(len(image))
    v0, v1, v_part = _around(float(v), height)
    u0, u1, u_part = _around(float(u), width)
    parts = [
        (1 - v_part) * (1 - u_part) * image[:, v0, u0],
        (1 - v_part) * u_part * image[:, v0, u1],
        v_part * (1 - u_part) * image[:, v1, u0],
        v_part * u_part * image[:, v1, u1],
    ]
    return np.max(parts, axis=0) if kind.largest else np.sum(parts, axis=0)


def _around(place: float, size: int) -> tuple[int, int, float]:
    place = max(place, 0.0)
    low = int(place)
    return (size - 1, size - 1, 0.0) if low >= size - 1 else (low, low + 1, place - low)
