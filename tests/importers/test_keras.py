"""Keras 3 models: from object to C to equal numbers.

`make importers` runs this where the extra `keras` is installed, and nothing else."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError

os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("torch", reason="the extra keras is not installed; `make importers` runs this")
keras = pytest.importorskip("keras", reason="the extra keras is not installed; `make importers` runs this")

IMAGES = np.random.default_rng(3).random((3, 6, 6, 1), np.float32)


@pytest.fixture(scope="module")
def model() -> Any:
    keras.utils.set_random_seed(1)
    layers = keras.layers
    found = keras.Sequential(
        [
            keras.Input((6, 6, 1), name="image"),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.MaxPool2D(),
            layers.Flatten(),
            layers.Dense(3, activation="softmax", name="scores"),
        ]
    )
    found.compile("adam", "sparse_categorical_crossentropy")
    found.fit(np.repeat(IMAGES, 4, 0), np.arange(12) % 3, epochs=2, verbose=0)
    return found


def agree(got: np.ndarray, model: Any, x: np.ndarray) -> None:
    wanted = keras.ops.convert_to_numpy(model(x))
    assert np.abs(got - wanted).max() <= 3e-5 * np.abs(wanted).max()


def test_a_model_becomes_c_with_equal_results(model: Any) -> None:
    compiled = mccompile.load(model)
    assert compiled.input_names == ("image",)
    agree(compiled(IMAGES)[0], model, IMAGES)
    agree(mccompile.load(model, dims={"batch": 1})(IMAGES[:1])["scores"], model, IMAGES[:1])


def test_a_saved_model_needs_no_trust(model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.keras"
    model.save(path)
    agree(mccompile.load(path)(IMAGES)[0], model, IMAGES)
    assert cli.run(["check", str(path), "--dim", "batch=1"]) == 0
    assert cli.run(["check", str(path)]) == 3
    assert "add --dim batch=1" in capsys.readouterr().err


def test_models_of_several_inputs() -> None:
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    model = keras.Model([left, right], keras.layers.Dense(2)(keras.layers.Add()([left, right])))
    x = np.ones((1, 4), np.float32)
    agree(mccompile.load(model)(left=x, right=2 * x)[0], model, [x, 2 * x])


def test_a_model_that_has_no_inputs_yet_takes_an_example() -> None:
    class Twice(keras.Model):  # type: ignore[name-defined, misc]
        def call(self, x: Any) -> Any:
            return 2 * x

    x = np.ones((1, 4), np.float32)
    with pytest.raises(MccError, match="does not say what its inputs are"):
        mccompile.compile(Twice())
    agree(mccompile.load(Twice(), args=x)(x)[0], Twice(), x)


def test_layers_that_are_code_are_refused_without_trust(tmp_path: Path) -> None:
    path = tmp_path / "net.keras"
    model = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x: 2 * x)])
    model.save(path)
    with pytest.raises(MccError, match="it names what is not of Keras: Lambda"):
        mccompile.compile(path)
    x = np.ones((1, 4), np.float32)
    agree(mccompile.load(path, trust=True)(x)[0], model, x)


def test_objects_of_other_modules_are_refused_without_trust(model: Any, tmp_path: Path) -> None:
    path, changed = tmp_path / "net.keras", tmp_path / "changed.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(changed, "w") as other:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "config.json":
                config = json.loads(data)
                config["config"]["layers"][1]["module"] = "os"
                data = json.dumps(config).encode()
            other.writestr(name, data)
    with pytest.raises(MccError, match=r"what is not of Keras: os\.Conv2D"):
        mccompile.compile(changed)
    with pytest.raises(MccError, match=r"Keras cannot load changed\.keras"):
        mccompile.compile(changed, trust=True)


@pytest.mark.parametrize(("backend", "said"), [("", "torch"), ("numpy", "asks for the backend numpy")])
def test_a_backend_that_is_there_is_chosen(
    backend: str, said: str, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mccompile.importers.keras import _imported

    (tmp_path / "keras.json").write_text('{"backend": "tensorflow"}', encoding="utf-8")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("KERAS_BACKEND", backend)
    if not backend:
        monkeypatch.delenv("KERAS_BACKEND")
        assert _imported("") is keras and os.environ["KERAS_BACKEND"] == said
        return
    with pytest.raises(MccError, match=said):
        _imported("net.keras")


def test_files_of_the_older_format_need_trust(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "net.h5"
    model.save(path)
    with pytest.raises(MccError, match=r"older format \(HDF5\)"):
        mccompile.compile(path)
    agree(mccompile.load(path, trust=True)(IMAGES)[0], model, IMAGES)
