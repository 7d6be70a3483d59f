"""Image functions for what stands in front of a network."""

from __future__ import annotations

from collections.abc import Sequence

from ..imgproc.package import Library, library
from ..imgproc.requests import asked_for, chosen


def image_functions(
    functions: str | Sequence[str],
    *,
    size: tuple[int, int] | None = None,
    to: tuple[int, int] | None = None,
    channels: int | None = None,
    dtype: str = "u8",
    strided: bool = False,
    fraction: int | None = None,
    target: str = "generic",
    name: str = "imgproc",
) -> Library:
    """A small library of image functions in C, as `mccompile imgproc` writes it.

    `functions` are named as there: `"flip,cvt_color=yuv2rgb_nv21"`, or a list of such. `size` and `to` are width and
    height of the source and of the result; what is None becomes an argument of the functions. The files are in
    `.files`, and `.write("out")` writes them."""
    texts = functions.split(",") if isinstance(functions, str) else functions
    return library(chosen(texts, asked_for(dtype, size, to, channels, strided, fraction)), target, name)
