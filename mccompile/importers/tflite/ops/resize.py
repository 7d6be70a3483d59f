"""Pictures in another size."""

from __future__ import annotations

from typing import Any

from ....graph.ir import Invalid, Unsupported
from ..onnx_nodes import first_order, last_order
from ..site import Site, converts


@converts("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(site: Site) -> None:
    bilinear = site.name == "RESIZE_BILINEAR"
    options = site.options("ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions")
    corners, centres = options["AlignCorners"], options["HalfPixelCenters"]
    if site.rank(0) != 4 or not site.is_known(1) or len(site.numbers(1)) != 2:
        raise Invalid(f"an input {list(site.dims(0))} is resized")
    if corners and centres:
        raise Unsupported("it has align_corners and half_pixel_centers at once")
    height, width = site.numbers(1)
    how: dict[str, Any] = {"axes": (2, 3)}
    how["coordinate_transformation_mode"] = "align_corners" if corners else "half_pixel" if centres else "asymmetric"
    how |= {"mode": "linear"} if bilinear else {"mode": "nearest", "nearest_mode": _nearest(corners or centres)}
    sizes = site.ints(height, width)
    if bilinear:
        site.give(site.op("Resize", site.first(0), "", "", sizes, **how), channels_first=True)
    else:
        made = site.op("Resize", site.moved(0, first_order(4)), "", "", sizes, **how)
        site.store(site.requantized(site.transposed(made, last_order(4))))


def _nearest(rounded: int) -> str:
    """Halves go up; centres of pixels are half a pixel further in ONNX."""
    return "round_prefer_ceil" if rounded else "floor"
