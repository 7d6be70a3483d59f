"""flip, rotate and roi: every pixel lies where OpenCV puts it."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import DTYPES
from mccompile.imgproc.trials import picture
from tests.imgproc.built import built

SHAPES = ((1, 1), (1, 7), (9, 1), (13, 8), (31, 17))
CODES = {
    "flip_vertical": ("flip", 0),
    "flip_horizontal": ("flip", 1),
    "flip_both": ("flip", -1),
    "rotate_90": ("rotate", "ROTATE_90_CLOCKWISE"),
    "rotate_180": ("rotate", "ROTATE_180"),
    "rotate_270": ("rotate", "ROTATE_90_COUNTERCLOCKWISE"),
}


@pytest.mark.parametrize("symbol", CODES)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_pixels_lie_where_opencv_puts_them(symbol: str, dtype: str) -> None:
    cv2 = pytest.importorskip("cv2")
    made = built("flip,rotate,roi", dtype)
    name, code = CODES[symbol]
    for width, height in SHAPES:
        for channels in (1, 2, 3, 4):
            x = picture((height, width, channels), DTYPES[dtype])
            wanted = getattr(cv2, name)(x, getattr(cv2, code) if isinstance(code, str) else code)
            sizes = {"width": width, "height": height, "channels": channels}
            got = made(symbol, x, sizes, gap=width % 5)
            np.testing.assert_array_equal(got, wanted.reshape(got.shape))
            np.testing.assert_array_equal(got, made.functions[symbol].reference(x, sizes))


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_part_is_copied(dtype: str) -> None:
    x = picture((9, 12, 3), DTYPES[dtype])
    for left, top, width, height in ((0, 0, 12, 9), (11, 8, 1, 1), (3, 2, 5, 7)):
        sizes = {"width": 12, "height": 9, "to_width": width, "to_height": height, "channels": 3}
        got = built("flip,rotate,roi", dtype)("roi", x, sizes, gap=2, left=left, top=top)
        np.testing.assert_array_equal(got, x[top : top + height, left : left + width])


def test_sizes_in_the_code_give_the_same() -> None:
    x = picture((6, 5, 1), DTYPES["u8"])
    made = built("rotate,flip", size=(5, 6), channels=1)
    for symbol, fn in made.functions.items():
        sizes = {"width": 5, "height": 6, "channels": 1}
        assert list(fn.given) == [] and (made(symbol, x, sizes) == fn.reference(x, sizes)).all()
