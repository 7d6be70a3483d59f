"""warp_affine: OpenCV's pixels within one step under all borders; with 5 bits those of OpenCV 4, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.imgproc.built import built

BORDERS = {
    "constant": "BORDER_CONSTANT",
    "replicate": "BORDER_REPLICATE",
    "reflect": "BORDER_REFLECT",
    "reflect101": "BORDER_REFLECT_101",
}


def matrices(chance: np.random.Generator, width: int, height: int) -> list[tuple[float, ...]]:
    """Turned, scaled and moved; sheared; the same; half as large; far away."""
    turn, scale = chance.uniform(-3, 3), chance.uniform(0.4, 2)
    c, s = scale * np.cos(turn), scale * np.sin(turn)
    x, y = chance.uniform(-9, width), chance.uniform(-9, height)
    sheared = (1.0, 0.25, -1.5, -0.125, 0.8, 2.25)
    return [(c, -s, x, s, c, y), sheared, (1, 0, 0, 0, 1, 0), (0.5, 0, 0, 0, 0.5, 0), (1, 0, 900.5, 0, 1, -700.25)]


def cases() -> list[tuple[np.ndarray, tuple[int, int], tuple[float, ...]]]:
    chance = np.random.default_rng(5)
    found = []
    for width, height, to_width, to_height in ((1, 1, 4, 3), (2, 9, 7, 5), (31, 22, 24, 33), (17, 40, 17, 40)):
        for channels in (1, 2, 3, 4):
            x = chance.integers(0, 256, (height, width, channels), dtype=np.uint8)
            found += [(x, (to_width, to_height), matrix) for matrix in matrices(chance, width, height)]
    return found


def of_opencv_4(channels: int) -> bool:
    """Does the OpenCV that is installed take its older way, with positions in 1/32?"""
    cv2 = pytest.importorskip("cv2")
    version = tuple(map(int, cv2.__version__.split(".")[:2]))
    return version <= (4, 10) or channels == 2


def theirs(x: np.ndarray, to: tuple[int, int], matrix: tuple[float, ...], border: str) -> np.ndarray:
    cv2 = pytest.importorskip("cv2")
    mode, fill = getattr(cv2, BORDERS[border]), (0.45 if x.dtype == np.float32 else 114,) * 4
    made = cv2.warpAffine(x, np.array(matrix, float).reshape(2, 3), to, None, cv2.INTER_LINEAR, mode, fill)
    return np.asarray(made).reshape(to[1], to[0], -1)


@pytest.mark.parametrize("fraction", [10, 5])
@pytest.mark.parametrize("border", BORDERS)
def test_bytes_are_those_of_opencv(border: str, fraction: int) -> None:
    made = built("warp_affine", fraction=fraction)
    fill = {"fill": 114} if border == "constant" else {}
    for x, to, matrix in cases():
        sizes = dict(width=x.shape[1], height=x.shape[0], to_width=to[0], to_height=to[1], channels=x.shape[2])
        got = made(f"warp_affine_{border}", x, sizes, gap=1, matrix=tuple(matrix), **fill).astype(int)
        wanted = made.functions[f"warp_affine_{border}"].reference(x, sizes, matrix=matrix, **fill)
        np.testing.assert_array_equal(got, wanted)
        if of_opencv_4(x.shape[2]) == (fraction == 5):
            apart = abs(got - theirs(x, to, matrix, border)).max()
            assert apart <= (fraction == 10), (border, x.shape, to, matrix, apart)


@pytest.mark.parametrize("border", BORDERS)
def test_floats_are_mixed_in_exact_places(border: str) -> None:
    made = built("warp_affine", "f32")
    fill = {"fill": 0.45} if border == "constant" else {}
    for x, to, matrix in cases():
        wide = (x / np.float32(255)).astype(np.float32)
        sizes = dict(width=x.shape[1], height=x.shape[0], to_width=to[0], to_height=to[1], channels=x.shape[2])
        got = made(f"warp_affine_{border}", wide, sizes, matrix=tuple(matrix), **fill)
        wanted = made.functions[f"warp_affine_{border}"].reference(wide, sizes, matrix=matrix, **fill)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-5)
        if not of_opencv_4(x.shape[2]):  # whose places are floats
            np.testing.assert_allclose(got, theirs(wide, to, matrix, border), rtol=0, atol=2e-3)


@pytest.mark.parametrize("matrix", [(1, 2, 0, 2, 4, 0), (0,) * 6, (float("nan"), 0, 0, 0, 1, 0), (1e-6, 0, 0, 0, 1, 0)])
def test_a_matrix_without_a_way_back_is_refused(matrix: tuple[float, ...]) -> None:
    sizes = dict(width=4, height=4, to_width=4, to_height=4, channels=1)
    x, numbers = np.zeros((4, 4, 1), np.uint8), tuple(map(float, matrix))
    with pytest.raises(AssertionError, match="status 3"):
        built("warp_affine")("warp_affine_replicate", x, sizes, matrix=numbers)


def test_sizes_in_the_code_give_the_same() -> None:
    made = built("warp_affine", size=(9, 8), to=(6, 11), channels=3)
    for symbol, fn in made.functions.items():
        sizes, x = fn.trial(), np.random.default_rng(1).integers(0, 256, (8, 9, 3), dtype=np.uint8)
        extras = fn.tried(sizes)
        np.testing.assert_array_equal(made(symbol, x, sizes, **extras), fn.reference(x, sizes, **extras))
