"""cvt_color: every code is OpenCV's within one step, and C gives the bits of the definition in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import DTYPES, f32, u8
from mccompile.imgproc.api import ImageOptions, functions
from mccompile.imgproc.trials import picture
from tests.imgproc.built import built
from tests.thorough import some

CVT = functions()["cvt_color"]
FLOATS = sorted(code for code in CVT.variants if "_" not in code)


def code_of(variant: str) -> str:
    given, _, made = variant.partition("2")
    form, _, frame = made.partition("_")
    names = {"ycrcb": "YCrCb"}
    whole = f"COLOR_{names.get(given, given.upper())}2{names.get(form, form.upper())}"
    return whole + (f"_{frame.upper()}" if frame else "")


def cases(variant: str, dtype: str) -> list[np.ndarray]:
    """Noise, and where it is small all that is black, white, gray or pure."""
    fn = CVT(variant, ImageOptions(DTYPES[dtype]))
    found = []
    for width, height in ((2, 2), (14, 10), (130, 66)):
        (shape, _), chance = fn.shapes({"width": width, "height": height}), np.random.default_rng(width)
        found.append(picture(shape, DTYPES[dtype]))
        pure = chance.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), shape)
        found.append(pure if dtype == "u8" else (pure / np.float32(255)).astype(np.float32))
    return found


@some(8, "variant", CVT.variants)
def test_bytes_are_those_of_opencv_within_one_step(variant: str) -> None:
    cv2 = pytest.importorskip("cv2")
    made = built("cvt_color")
    for x in cases(variant, "u8"):
        symbol = f"cvt_color_{variant}"
        rows = x.shape[0] * 2 // 3 if made.functions[symbol].even == ("width", "height") else x.shape[0]
        sizes = {"width": x.shape[1], "height": rows}
        got = made(symbol, x, sizes, gap=3).astype(int)
        np.testing.assert_array_equal(got, made.functions[symbol].reference(x, sizes))
        wanted = cv2.cvtColor(x, getattr(cv2, code_of(variant))).astype(int).reshape(got.shape)
        apart = abs(got - wanted)
        if variant.endswith("hsv"):
            apart[..., 0] = np.minimum(apart[..., 0], 180 - apart[..., 0])
        assert apart.max() <= 1


@some(6, "variant", FLOATS)
def test_floats_are_those_of_opencv(variant: str) -> None:
    cv2 = pytest.importorskip("cv2")
    made = built("cvt_color", "f32")
    for x in cases(variant, "f32"):
        sizes = {"width": x.shape[1], "height": x.shape[0]}
        got = made(f"cvt_color_{variant}", x, sizes)
        wanted = cv2.cvtColor(x, getattr(cv2, code_of(variant))).reshape(got.shape)
        for part in (wanted, made.functions[f"cvt_color_{variant}"].reference(x, sizes)):
            np.testing.assert_allclose(got, part, rtol=0, atol=3e-5 * max(1, float(abs(wanted).max())))


def test_codes_in_bytes_alone_are_left_out_of_floats() -> None:
    made = built("cvt_color", "f32").functions.values()
    assert {fn.variant for fn in made} == set(FLOATS)
    assert all(fn.takes(u8) and fn.takes(f32) for fn in made)
