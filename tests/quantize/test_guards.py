"""Data that cannot be what a network was made for is refused, and what is unlikely is said with the figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import BadFile, MccWarning
from mccompile.base.quantizing import Recipe
from mccompile.driver import Options, compile
from mccompile.measure.quantization import quantize
from tests.small_models import model, node, save

pytest.importorskip("onnxruntime")
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    with np.load(DIGITS / "pictures.npz") as stored:
        return np.float32(stored["pixels"][:40, None] / 16)


def quantized(folder: Path, file: Path = DIGITS / "digits.onnx", **arrays: np.ndarray) -> None:
    np.savez(folder / "samples.npz", **arrays)
    quantize(file, folder / "int8.onnx", folder / "samples.npz", Options(), Recipe(equalise=False))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda x: x * 240, "236 times as large as those that stem/BatchNormalization was trained on"),
        (lambda x: x / 255, "259 times smaller than those"),
        (lambda x: x * 0, "every value of image is 0"),
        (lambda x: np.where(x > 0.9, np.nan, x), "values of image are NaN or infinite"),
        (lambda x: np.where(x > 0.9, np.inf, x), "values of image are NaN or infinite"),
    ],
)
def test_data_of_something_else_is_refused(
    change: Callable[[np.ndarray], np.ndarray], why: str, pictures: np.ndarray, tmp_path: Path
) -> None:
    np.savez(tmp_path / "samples.npz", image=np.float32(change(pictures)))
    with pytest.raises(BadFile, match=why):
        compile(DIGITS / "digits.onnx", Options(quantize=tmp_path / "samples.npz", recipe=Recipe(equalise=False)))


def test_arrays_under_other_names_are_refused(pictures: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"it has foo; the model takes image(.|\n)*image="):
        quantized(tmp_path, foo=pictures)


@pytest.mark.parametrize(
    ("arrays", "figure"),
    [
        (lambda x: {"image": x * 5}, r"4\.9\d times as large as"),
        (lambda x: {"image": x[:3]}, "ranges come from 3 samples"),
        (lambda x: {"image": x, "more": x}, "the model has no input more"),
    ],
)
def test_what_is_unlikely_is_a_warning(
    arrays: Callable[[np.ndarray], dict[str, np.ndarray]], figure: str, pictures: np.ndarray, tmp_path: Path
) -> None:
    with pytest.warns(MccWarning, match=figure):
        quantized(tmp_path, **arrays(pictures))


@pytest.mark.parametrize(
    ("scale", "figure"),
    [(300, r"biases are at most 0\.\d% of the activations"), (0.001, "are they smaller than those")],
)
def test_without_statistics_biases_tell_of_the_scale(scale: float, figure: str, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    w, b = chance.standard_normal((4, 1, 3, 3)), chance.standard_normal(4)
    net = model(
        "net",
        [node("Conv", "x w b", "y")],
        [("x", (1, 1, 8, 8))],
        [("y", (1, 4, 6, 6))],
        {"w": np.float32(w), "b": np.float32(b)},
    )
    x = np.float32(chance.uniform(0, 1, (20, 1, 8, 8)))
    file = save(net, tmp_path)
    with pytest.warns(MccWarning, match=figure):
        quantized(tmp_path, file, x=x * np.float32(scale))


@pytest.mark.filterwarnings("error::UserWarning")
def test_data_as_in_training_goes_through_without_a_word(pictures: np.ndarray, tmp_path: Path) -> None:
    quantized(tmp_path, image=pictures)


def test_a_test_set_of_another_range_is_a_warning(pictures: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", image=pictures)
    np.savez(tmp_path / "test.npz", image=pictures * 15)
    files = (tmp_path / "int8.onnx", tmp_path / "samples.npz")
    with pytest.warns(MccWarning, match="image is 0 to 1 in the calibration data, 0 to 15 in the test set"):
        quantize(DIGITS / "digits.onnx", *files, Options(), Recipe(equalise=False), tmp_path / "test.npz")
