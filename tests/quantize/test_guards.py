"""Data that cannot be what a network was made for is refused, and what is unlikely is said with the figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from mccompile.base.errors import BadFile, MccWarning, UnsupportedModel
from mccompile.base.quantizing import Recipe
from mccompile.driver import Options, compile
from mccompile.measure.quantization import quantize
from mccompile.quantize.guards import check_test_set
from mccompile.quantize.samples import Samples
from tests.small_models import floats, model, node, save
from tests.thorough import some

pytest.importorskip("onnxruntime")
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
COUNT = 30  # pictures, with which weights stay as they are
QUICK = Recipe("minmax", equalise=False)  # data is looked at before anything is made of it


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    with np.load(DIGITS / "pictures.npz") as stored:
        return np.float32(stored["pixels"][:COUNT, None] / 16)


def quantized(folder: Path, file: Path = DIGITS / "digits.onnx", **arrays: np.ndarray) -> None:
    np.savez(folder / "samples.npz", **arrays)
    quantize(file, folder / "int8.onnx", folder / "samples.npz", Options(), QUICK)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda x: x * 240, r"23\d times as large as those that stem/BatchNormalization was trained on"),
        (lambda x: x / 255, r"2[56]\d times smaller than those"),
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
        compile(DIGITS / "digits.onnx", Options(quantize=tmp_path / "samples.npz", recipe=QUICK))


@pytest.mark.parametrize(
    ("change", "fix"),
    [
        (lambda x: {"image": np.full_like(x, np.nan)}, "every sample has some"),
        (
            lambda x: {"image": np.where(np.arange(COUNT)[:, None, None, None] == 3, np.nan, x)},
            f"the other {COUNT - 1} samples",
        ),
        (
            lambda x: {"image": np.full(x.shape, "a")},
            "store the numbers that the model is to be given: image as float32",
        ),
        (lambda x: {"image": x.astype(str)}, r"a\['image'\] = a\['image'\]\.astype\('float32'\)"),
        (lambda x: {"image": x, "y": np.ones(COUNT)}, r"a\['y'\] = a\['y'\]\.astype\('int64'\)"),
        (lambda x: {"image": x, "y": np.full(COUNT, 0.5)}, "leave them out"),
    ],
    ids=["all NaN", "one NaN", "text", "numbers as text", "whole labels", "labels of a half"],
)
def test_what_is_told_to_do_can_be_done(
    change: Callable[[np.ndarray], dict[str, np.ndarray]], fix: str, pictures: np.ndarray, tmp_path: Path
) -> None:
    arrays = {
        name: np.float32(each) if name == "image" and each.dtype.kind == "f" else each
        for name, each in change(pictures).items()
    }
    with pytest.raises(BadFile, match=rf"fix\s.*{fix}"):
        quantized(tmp_path, **arrays)


def test_labels_of_no_class_are_refused(pictures: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="has 10 scores per sample; the label of sample 3 is 10"):
        quantized(tmp_path, image=pictures, labels=np.where(np.arange(COUNT) == 3, 10, 9))


def test_arrays_under_other_names_are_refused(pictures: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"it has foo; the model takes image(.|\n)*a\['image'\] = a.pop"):
        quantized(tmp_path, foo=pictures)


@pytest.mark.parametrize(
    ("arrays", "figure"),
    [
        (lambda x: {"image": x * 5}, r"4\.\d* times as large as"),
        (lambda x: {"image": x[:3]}, "ranges come from 3 samples"),
        (lambda x: {"image": x, "more": x}, "the model has no input more"),
    ],
)
def test_what_is_unlikely_is_a_warning(
    arrays: Callable[[np.ndarray], dict[str, np.ndarray]], figure: str, pictures: np.ndarray, tmp_path: Path
) -> None:
    with pytest.warns(MccWarning, match=figure) as found:
        quantized(tmp_path, **arrays(pictures))
    assert {warning.filename for warning in found if warning.category is MccWarning} == {__file__}


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


def scaled(op: str, folder: Path) -> tuple[Path, np.ndarray]:
    """A network that standardizes what it reads, and what it was made for."""
    chance, mean = np.random.default_rng(0), np.float32([13, 2.3, 746, 5, 100, 19])
    deviation = mean / np.float32(6)
    constants = {"m": mean, "d": 1 / deviation if op == "Mul" else deviation, "w": np.eye(6, 3, dtype=np.float32)}
    nodes = [node("Sub", "x m", "s"), node(op, "s d", "z"), node("MatMul", "z w", "y")]
    file = save(model("scaled", nodes, [("x", (1, 6))], [("y", (1, 3))], constants), folder)
    return file, np.float32(chance.normal(mean, deviation, (24, 6)))


@pytest.mark.parametrize("op", ["Div", "Mul"])
def test_a_network_that_standardizes_tells_of_its_units(op: str, tmp_path: Path) -> None:
    file, x = scaled(op, tmp_path)
    with pytest.raises(BadFile, match=r"x is 1\.4\de\+03 deviations away from the mean that s/Sub subtracts; 1 in"):
        quantized(tmp_path, file, x=x * 240)
    with pytest.warns(MccWarning, match=r"x is 5\.\d* deviations away .*: are the samples in the units"):
        quantized(tmp_path, file, x=x / 10)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("op", ["Div", "Mul"])
def test_what_is_standardized_as_in_training_goes_through(op: str, tmp_path: Path) -> None:
    file, x = scaled(op, tmp_path)
    quantized(tmp_path, file, x=x)


@pytest.mark.filterwarnings("error::UserWarning")
def test_data_as_in_training_goes_through_without_a_word(pictures: np.ndarray, tmp_path: Path) -> None:
    quantized(tmp_path, image=pictures)


def test_a_test_set_of_another_range_is_a_warning(pictures: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", image=pictures)
    np.savez(tmp_path / "test.npz", image=pictures * 15)
    files = (tmp_path / "int8.onnx", tmp_path / "samples.npz")
    with pytest.warns(MccWarning, match="image is 0 to 1 in the calibration data, 0 to 15 in the test set"):
        quantize(DIGITS / "digits.onnx", *files, Options(), QUICK, tmp_path / "test.npz")


def held(part: str, x: np.ndarray) -> np.ndarray:
    x = x.copy()
    if part == "half":
        x[:, :, 4:] = 0
    elif part == "third":
        x[..., 5:] = 0
    elif part == "corner":
        x[:, :, :4, :4] = 0
    elif part == "every other":
        x.reshape(len(x), -1)[:, ::2] = 0
    else:
        x *= np.random.default_rng(0).random(x.shape) < 0.5
    return x


@some(2, "part", ["half", "third", "corner", "every other", "any half of each"])
def test_pixels_held_at_0_move_means_away_from_those_of_training(
    part: str, pictures: np.ndarray, tmp_path: Path
) -> None:
    with pytest.warns(MccWarning, match=r"means of \d+ of 16 channels are up to 0\.\d\d deviations away"):
        quantized(tmp_path, image=held(part, pictures))


@pytest.mark.parametrize(
    ("change", "figure"),
    [
        (np.s_[:, 2], r"64 of 192 values of x are the same in all 20 samples, 64 of them 0, .* all of 2 along axis 1:"),
        (np.s_[:, :, 4:], r"96 of 192 values .* all of 4 to 7 along axis 2:"),
        (np.s_[:, :, :3, :3], "27 of 192 values of x are the same"),
    ],
)
def test_without_statistics_values_that_never_move_are_said(
    change: tuple[slice | int, ...], figure: str, tmp_path: Path
) -> None:
    chance = np.random.default_rng(0)
    constants = {"w": np.float32(chance.standard_normal((4, 3, 3, 3))), "b": np.float32(chance.standard_normal(4))}
    net = model("net", [node("Conv", "x w b", "y")], [("x", (1, 3, 8, 8))], [("y", (1, 4, 6, 6))], constants)
    x = np.float32(chance.uniform(0, 1, (20, 3, 8, 8)))
    x[change] = 0
    with pytest.warns(MccWarning, match=figure):
        quantized(tmp_path, save(net, tmp_path), x=x)


def test_values_that_move_in_the_test_set_alone_are_said(pictures: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", image=held("half", pictures))
    np.savez(tmp_path / "test.npz", image=pictures)
    files = (tmp_path / "int8.onnx", tmp_path / "samples.npz")
    with pytest.warns(MccWarning, match=r"2\d of 64 values of image .* move in the test set"):
        quantize(DIGITS / "digits.onnx", *files, Options(), QUICK, tmp_path / "test.npz")


def drawn(count: int = 24) -> np.ndarray:
    """Strokes in the middle of pictures, like handwritten digits."""
    chance, found = np.random.default_rng(0), np.zeros((count, 1, 28, 28), np.float32)
    for picture in found:
        for y, x in np.clip(chance.normal(13, 4, (40, 2)), 5, 21).astype(int):
            picture[0, y : y + 2, x : x + 2] = chance.uniform(0.5, 1)
    return found


def without_statistics(folder: Path) -> Path:
    chance = np.random.default_rng(0)
    constants = {"w": np.float32(chance.standard_normal((4, 1, 3, 3))), "b": np.float32(chance.standard_normal(4))}
    net = model("net", [node("Conv", "x w b", "y")], [("x", (1, 1, 28, 28))], [("y", (1, 4, 26, 26))], constants)
    return save(net, folder)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("ground", [0.0, -0.42])
def test_a_margin_around_what_moves_is_no_news(ground: float, tmp_path: Path) -> None:
    quantized(tmp_path, without_statistics(tmp_path), x=drawn() + np.float32(ground))


@pytest.mark.parametrize(
    "part", [np.s_[..., 19:], np.s_[..., :14], np.s_[..., :14, :14], np.s_[..., ::2], np.s_[..., 10:18, 10:18]]
)
def test_a_part_that_is_held_is_said_beside_a_margin(part: tuple[slice, ...], tmp_path: Path) -> None:
    x = drawn()
    x[part] = 0
    with pytest.warns(MccWarning, match=r"\d+ of 784 values of x are the same in all 24 samples"):
        quantized(tmp_path, without_statistics(tmp_path), x=x)


def test_labels_that_are_shifted_are_said_with_the_accuracy(tmp_path: Path) -> None:
    with np.load(DIGITS / "pictures.npz") as stored:
        images, labels = np.float32(stored["pixels"][:COUNT, None] / 16), stored["labels"][:COUNT]
    kept = labels > 0
    said = r"gives \d\.\d\d% right answers, guesses among 9 classes 11\.11%: with labels one more it would be (9|100)"
    with pytest.warns(MccWarning, match=said):
        quantized(tmp_path, image=images[kept], labels=labels[kept] - 1)


def test_labels_of_other_samples_are_said_with_the_accuracy(pictures: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", image=pictures, labels=np.random.default_rng(0).integers(0, 10, len(pictures)))
    with pytest.warns(MccWarning, match="are labels and preprocessing those of training?"):
        compile(DIGITS / "digits.onnx", Options(quantize=tmp_path / "samples.npz", recipe=QUICK))


def test_samples_that_are_in_the_test_set_are_counted(pictures: np.ndarray) -> None:
    feeds = [{"image": picture[None]} for picture in pictures]
    with pytest.warns(MccWarning, match="4 of 12 calibration samples are in the test set too"):
        check_test_set(Samples(feeds[:12]), Samples(feeds[8:]))


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(dynamic=True)])
def test_a_network_without_layers_is_said_to_have_nothing_to_quantize(recipe: Recipe, tmp_path: Path) -> None:
    waves = save(
        model("waves", [node("Sin", "x", "s"), node("Cos", "s", "y")], [("x", (1, 8))], [("y", (1, 8))]), tmp_path
    )
    np.savez(tmp_path / "waves.npz", x=floats(0, 16, 1, 8))
    with pytest.raises(UnsupportedModel, match=r"(?s)nothing to quantize.*Cos, Sin compute in floats.*fix"):
        quantize(waves, tmp_path / "q.onnx", tmp_path / "waves.npz", Options(), recipe)


def test_a_layer_whose_first_result_nobody_takes_reads_an_input(tmp_path: Path) -> None:
    weights = {"w": floats(1, 1, 12, 3), "r": floats(2, 1, 12, 4), "v": floats(3, 1, 4, 2)}
    gru = helper.make_node("GRU", ["x", "w", "r"], ["", "h"], hidden_size=4)
    made = model("moves", [gru, node("MatMul", "h v", "y")], [("x", (5, 1, 3))], [("y", (1, 1, 2))], weights)
    file = save(made, tmp_path)
    np.savez(tmp_path / "moves.npz", x=floats(0, 16, 5, 1, 3))
    assert quantize(file, tmp_path / "q.onnx", tmp_path / "moves.npz", Options(), Recipe("minmax")).quality.outputs


def test_a_network_that_was_not_trained_is_led_past_samples(tmp_path: Path) -> None:
    still = {"w": floats(1, 4, 2, 3, 3), "one": np.ones(4, np.float32), "v": np.full(4, 1e-5, np.float32)}
    nodes = [node("Conv", "x w", "c"), node("BatchNormalization", "c one one one v", "y")]
    made = save(model("net", nodes, [("x", (1, 2, 8, 8))], [("y", (1, 4, 6, 6))], still), tmp_path)
    np.savez(tmp_path / "noise.npz", x=floats(0, 16, 1, 2, 8, 8))
    with pytest.raises(BadFile, match="--weights-only 8"):
        quantize(made, tmp_path / "q.onnx", tmp_path / "noise.npz", Options(), Recipe())
    assert quantize(made, tmp_path / "q.onnx", None, Options(), Recipe(weights_only=8)).after
