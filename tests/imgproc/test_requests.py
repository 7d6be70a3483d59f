"""What is asked for becomes functions, or is refused with a fix."""

from __future__ import annotations

import pytest

from mccompile.base.errors import WrongUse
from mccompile.imgproc.api import functions
from mccompile.imgproc.requests import asked_for, chosen, read_size


def test_a_name_is_all_its_variants_and_each_comes_once() -> None:
    symbols = [fn.symbol for fn in chosen(["rotate=180", "rotate", "roi"], asked_for())]
    assert symbols == ["rotate_180", "rotate_90", "rotate_270", "roi"]


def test_sizes_that_are_not_known_are_arguments() -> None:
    (fn,) = chosen(["roi"], asked_for(to=(8, 6), channels=3))
    assert fn.given == ["width", "height"] and fn.c["y_stride"] == 24 and fn.c["x_stride"] == "x_stride"
    (fn,) = chosen(["roi"], asked_for(size=(9, 9), to=(8, 6), channels=3, strided=True))
    assert fn.given == [] and fn.c["y_stride"] == "y_stride"


def test_a_mean_that_32_bits_may_not_hold_is_checked_at_run_time() -> None:
    (fn,) = chosen(["resize=area"], asked_for(to=(8, 6)))
    assert fn.wrong(fn.c) == ["width > 16777215 / height"]
    for known in ({"size": (640, 480)}, {"to": (8, 6), "dtype": "f32"}, {"size": (6400, 4800), "to": (64, 48)}):
        (fn,) = chosen(["resize=area"], asked_for(**known))  # type: ignore[arg-type]
        assert fn.wrong(fn.c) == []


def test_every_variant_says_what_it_is() -> None:
    for cls in functions().values():
        assert cls.about and cls.variants and all(cls.variants.values())


@pytest.mark.parametrize(
    ("names", "how", "why"),
    [
        ("flop", {}, "did you mean flip"),
        ("", {}, "no image function ''"),
        ("rotate=45", {}, "it can be 90, 180, 270"),
        ("roi=2", {}, "it has no variants"),
        ("flip", {"to": (4, 4)}, "leave out --to"),
        ("cvt_color", {"channels": 3}, "leave out --channels"),
        ("flip", {"channels": 5}, "did you mean --channels 4"),
        ("flip", {"channels": 0}, "did you mean --channels 1"),
        ("warp_affine", {"fraction": 4}, "did you mean --fraction 5"),
        ("warp_affine", {"fraction": 5, "dtype": "f32"}, "leave out --fraction"),
        ("flip", {"fraction": 5}, "leave out --fraction"),
        ("resize=area", {"size": (32767, 32767), "to": (32766, 1000)}, "did you mean resize=bilinear"),
        ("resize=area", {"size": (5000, 4000)}, "did you mean resize=bilinear"),
        ("flip", {"size": (0, 4)}, "did you mean --size 1x4"),
        ("flip", {"size": (4, 40000)}, "did you mean --size 4x32767"),
        ("flip", {"dtype": "f16"}, "did you mean --dtype"),
        ("cvt_color=yuv2rgb_nv21", {"dtype": "f32"}, "leave out --dtype"),
        ("cvt_color=yuv2rgb_nv21", {"size": (31, 21)}, "did you mean --size 32x22"),
        ("cvt_color=yuv2rgb_yuy2", {"size": (31, 21)}, "did you mean --size 32x21"),
        ("roi", {"size": (4, 4), "to": (4, 5)}, "did you mean --to 4x4"),
    ],
)
def test_what_cannot_be_is_refused(names: str, how: dict[str, object], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        chosen(names.split(","), asked_for(**how))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["320", "320*240", "x"])
def test_a_size_is_two_numbers(text: str) -> None:
    with pytest.raises(WrongUse, match="did you mean --size 3"):
        read_size(text, "--size")
    assert read_size("96x64", "--size") == (96, 64)
