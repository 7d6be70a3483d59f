"""resize: C gives the bits of the definition, which is OpenCV's within one step, up and down, from one pixel on."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import DTYPES
from mccompile.imgproc.trials import picture
from tests.imgproc.built import built
from tests.thorough import some

MODES = {"bilinear": "INTER_LINEAR", "nearest": "INTER_NEAREST", "area": "INTER_AREA"}
SIZES = (  # width and height, of the source and of the result
    ((1, 1), (1, 1)),
    ((1, 1), (5, 3)),
    ((7, 5), (1, 1)),
    ((13, 11), (13, 11)),
    ((8, 6), (4, 3)),
    ((9, 12), (3, 4)),
    ((29, 17), (11, 13)),
    ((11, 13), (29, 17)),
    ((31, 6), (7, 23)),
    ((2, 40), (40, 2)),
    ((64, 48), (63, 47)),
    ((49, 98), (7, 14)),
    ((160, 120), (96, 96)),
)


def drawn(source: tuple[int, int], channels: int, dtype: str) -> np.ndarray:
    chance = np.random.default_rng(source[0] * 7 + channels)
    x = chance.integers(0, 256, (source[1], source[0], channels), dtype=np.uint8)
    return x if dtype == "u8" else (x / np.float32(255)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("mode", MODES)
def test_pictures_are_those_of_opencv_within_one_step(mode: str, dtype: str) -> None:
    cv2 = pytest.importorskip("cv2")
    made = built("resize", dtype)
    for (width, height), (to_width, to_height) in SIZES:
        for channels in (1, 2, 3, 4):
            x = drawn((width, height), channels, dtype)
            sizes = dict(width=width, height=height, to_width=to_width, to_height=to_height, channels=channels)
            got = made(f"resize_{mode}", x, sizes, gap=channels)
            wanted = made.functions[f"resize_{mode}"].reference(x, sizes)
            theirs = cv2.resize(x, (to_width, to_height), interpolation=getattr(cv2, MODES[mode])).reshape(got.shape)
            where = f"{mode} {width}x{height} -> {to_width}x{to_height}, {channels} channels"
            if dtype == "u8":
                np.testing.assert_array_equal(got, wanted, where)
                assert abs(got.astype(int) - theirs).max() <= (mode != "nearest"), where
            else:
                np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-5, err_msg=where)
                np.testing.assert_allclose(got, theirs, rtol=0, atol=3e-5, err_msg=where)


def test_nearest_takes_the_pixel_that_opencv_takes() -> None:
    """Also where a place is a whole number but for what doubles round."""
    cv2 = pytest.importorskip("cv2")
    made = built("resize")
    for width in range(1, 130, 7):
        x = np.arange(width, dtype=np.uint8).reshape(1, width, 1)
        for to_width in range(1, 250, 11):
            sizes = dict(width=width, height=1, to_width=to_width, to_height=1, channels=1)
            theirs = cv2.resize(x, (to_width, 1), interpolation=cv2.INTER_NEAREST)
            np.testing.assert_array_equal(made("resize_nearest", x, sizes)[..., 0], theirs)
            np.testing.assert_array_equal(made.functions["resize_nearest"].reference(x, sizes)[..., 0], theirs)


@some(1, "dtype", ["u8", "f32"])
@pytest.mark.parametrize(
    "known",
    [
        {"size": (29, 18), "to": (12, 9), "channels": 3},
        {"size": (12, 18), "to": (29, 9), "channels": 1},
        {"size": (12, 9), "to": (10, 18), "channels": 3},
        {"size": (29, 18), "channels": 3, "strided": True},
        {"to": (12, 9), "channels": 2},
        {"size": (1, 1), "to": (4, 4), "channels": 4},
    ],
)
def test_sizes_in_the_code_give_the_same(known: dict[str, object], dtype: str) -> None:
    made, free = built("resize", dtype, **known), built("resize", dtype)
    for symbol, fn in made.functions.items():
        sizes = {**fn.trial()}
        x = picture(fn.shapes(sizes)[0], DTYPES[dtype])
        gap = 3 if known.get("strided") else 0
        np.testing.assert_array_equal(made(symbol, x, sizes, gap), free(symbol, x, sizes), symbol)
