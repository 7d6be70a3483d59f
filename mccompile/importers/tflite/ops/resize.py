"""Pictures in another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.ir import Invalid, Unsupported
from ..onnx_nodes import first_order, last_order
from ..site import Site, converts


@converts("RESIZE_BILINEAR")
def _bilinear(site: Site) -> None:
    corners, centres, height, width = _asked(site, "ResizeBilinearOptions")
    if corners and centres:
        raise Invalid("it has align_corners and half_pixel_centers at once")
    how = {"axes": (2, 3), "mode": "linear", "coordinate_transformation_mode": _mode(corners, centres)}
    sizes = site.ints(height, width)
    site.give(site.op("Resize", site.first(0), "", "", sizes, **how), channels_first=True)


@converts("RESIZE_NEAREST_NEIGHBOR")
def _nearest(site: Site) -> None:
    """As ONNX's Resize along axes where that takes the same elements: it has no coordinates for corners and centres at
    once, and those of LiteRT are rounded to float32."""
    corners, centres, *sizes = _asked(site, "ResizeNearestNeighborOptions")
    made, left = site.stored(0), dict[int, int]()
    for axis, out in enumerate(sizes, 1):
        size = site.dims(0)[axis]
        places = None if not size or not out else _own_places(size, out, corners, centres)
        if places is None:
            left[axis] = out
        else:
            made = site.op("Gather", made, site.constant(places), axis=axis)
    if left and corners and centres:
        raise Unsupported("it has align_corners and half_pixel_centers at once, and an input of an open size")
    if left:
        how: dict[str, Any] = {
            "mode": "nearest",
            "nearest_mode": "round_prefer_ceil" if corners or centres else "floor",
        }
        axes = [first_order(4).index(axis) for axis in left]
        how |= {"axes": axes, "coordinate_transformation_mode": _mode(corners, centres)}
        moved = site.moved(0, first_order(4)) if len(left) == len(sizes) else site.transposed(made, first_order(4))
        made = site.transposed(site.op("Resize", moved, "", "", site.ints(*left.values()), **how), last_order(4))
    site.store(site.requantized(made))


def _asked(site: Site, options: str) -> tuple[bool, bool, int, int]:
    """Are corners aligned, do pixels have centres, and the size of the result."""
    if site.rank(0) != 4 or not site.is_known(1) or len(site.numbers(1)) != 2:
        raise Invalid(f"an input {list(site.dims(0))} is resized")
    found = site.options(options)
    height, width = site.numbers(1)
    return bool(found["AlignCorners"]), bool(found["HalfPixelCenters"]), height, width


def _mode(corners: bool, centres: bool) -> str:
    return "align_corners" if corners else "half_pixel" if centres else "asymmetric"


def _own_places(size: int, out: int, corners: bool, centres: bool) -> np.ndarray | None:
    """The element that LiteRT takes, for each of the result; None where ONNX's Resize takes the same."""
    places = _places(size, out, corners, centres)
    if corners and centres:
        return places
    return None if np.array_equal(places, _places_of_onnx(size, out, corners, centres)) else places


def _places(size: int, out: int, corners: bool, centres: bool) -> np.ndarray:
    """LiteRT's: coordinates are products of floats; halves go up."""
    f32 = np.float32
    scale = f32(size - 1) / f32(out - 1) if corners and out > 1 else f32(size) / f32(out)
    places = (np.arange(out, dtype=f32) + f32(0.5 if centres else 0)) * scale
    return _inside(np.floor(places.astype(np.float64) + (0.5 if corners else 0)), size)


def _places_of_onnx(size: int, out: int, corners: bool, centres: bool) -> np.ndarray:
    """Those of ONNX's Resize; what it rounds is exact."""
    x = np.arange(out)
    if corners:
        return (2 * x * (size - 1) + out - 1) // (2 * (out - 1)) if out > 1 else x
    if centres:
        return (2 * x + 1) * size // (2 * out)
    places = x.astype(np.float32) / (np.float32(out) / np.float32(size))
    return _inside(np.floor(places), size)


def _inside(places: np.ndarray, size: int) -> np.ndarray:
    found: np.ndarray = np.minimum(places, size - 1).astype(np.int64)
    return found
