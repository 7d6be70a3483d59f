"""gaussian: exactly OpenCV's bytes, at borders too."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import DTYPES
from mccompile.imgproc.trials import picture
from tests.imgproc.built import built


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("taps", [3, 5, 7])
def test_pictures_are_those_of_opencv(taps: int, dtype: str) -> None:
    cv2 = pytest.importorskip("cv2")
    made = built("gaussian", dtype)
    for width, height in ((1, 1), (1, 6), (5, 1), (2, 3), (4, 4), (23, 14), (50, 31)):
        for channels in (1, 2, 3, 4):
            x = picture((height, width, channels), DTYPES[dtype])
            sizes = {"width": width, "height": height, "channels": channels}
            got = made(f"gaussian_{taps}", x, sizes, gap=height % 4)
            wanted = made.functions[f"gaussian_{taps}"].reference(x, sizes)
            theirs = cv2.GaussianBlur(x, (taps, taps), 0).reshape(got.shape)
            if dtype == "u8":
                np.testing.assert_array_equal(got, wanted)
                np.testing.assert_array_equal(got, theirs)
            else:
                np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-5)
                np.testing.assert_allclose(got, theirs, rtol=0, atol=3e-5)


def test_sizes_in_the_code_give_the_same() -> None:
    made = built("gaussian", size=(2, 9), channels=3)
    for symbol, fn in made.functions.items():
        sizes = fn.trial()
        x = picture((9, 2, 3), DTYPES["u8"])
        np.testing.assert_array_equal(made(symbol, x, sizes), fn.reference(x, sizes))
