"""Compiled front ends give what the libraries define."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mccompile
from tests.importers.audio.definitions import cosines, decibels, filters, sound, spectra

RATE, SAMPLES = 16000, 4000
CLOSE = 1e-4  # of the largest feature
HALF = np.sqrt(0.5)


def librosa(x: np.ndarray) -> np.ndarray:
    mels = spectra(x, 500, 160, 512, "constant") @ filters(RATE, 512, 40, 0, 8000, "librosa")
    return cosines(decibels(mels), 13, HALF)


def torchaudio(x: np.ndarray) -> np.ndarray:
    mels = spectra(x, 400, 200, 400, "reflect") @ filters(RATE, 400, 23, 0, 8000, "torchaudio")
    return cosines(decibels(mels), 23, HALF)


def tensorflow(x: np.ndarray) -> np.ndarray:
    mels = np.sqrt(spectra(x, 640, 320, 1024)) @ filters(RATE, 1024, 40, 80, 7600, "tensorflow")
    return cosines(np.log(mels + 1e-6), 13, 1)


def keras(x: np.ndarray) -> np.ndarray:
    return decibels(spectra(x, 512, 256, 512, "reflect") @ filters(RATE, 512, 32, 20, 8000, "tensorflow"))


def pcen(x: np.ndarray) -> np.ndarray:
    mels = spectra(x, 512, 256, 512, "constant") @ filters(RATE, 512, 20, 0, 8000, "librosa")
    time = 0.4 * RATE / 256
    part = (np.sqrt(1 + 4 * time**2) - 1) / (2 * time**2)
    smooth, found = np.ones(20), []
    for frame in mels:
        smooth = (1 - part) * smooth + part * frame
        found.append((frame / (1e-6 + smooth) ** 0.98 + 2) ** 0.5 - 2**0.5)
    return np.array(found)


def plain(x: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(spectra(x, 480, 320, 512) @ filters(RATE, 512, 40, 0, 8000, "torchaudio"), 1e-6))


STYLES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], dict[str, Any]]] = {
    "librosa": (librosa, {"window": 500, "hop": 160, "fft": 512, "mels": 40, "coefficients": 13}),
    "torchaudio": (torchaudio, {"mels": 23, "coefficients": 23}),
    "tensorflow": (tensorflow, {"window": 640, "hop": 320, "mels": 40, "coefficients": 13}),
    "keras": (keras, {"window": 512, "hop": 256, "fft": 512, "mels": 32}),
    "librosa pcen": (pcen, {"window": 512, "hop": 256, "fft": 512, "mels": 20, "log": "pcen", "top_db": 0.0}),
    "plain": (plain, {}),
}


@pytest.mark.parametrize("name", STYLES)
def test_features_are_those_of_the_library(name: str) -> None:
    wanted, settings = STYLES[name]
    x = sound(SAMPLES, RATE)
    front = mccompile.audio_frontend(name.split()[0], rate=RATE, samples=SAMPLES, **settings)
    (got,) = mccompile.load(front)(x[None])
    expected = wanted(x)
    assert got.shape == (1, *expected.shape)
    np.testing.assert_allclose(got[0], expected, rtol=0, atol=CLOSE * np.abs(expected).max())


def test_quantized_features_are_within_a_step() -> None:
    x = sound(SAMPLES, RATE)
    settings: dict[str, Any] = STYLES["tensorflow"][1]
    front = mccompile.audio_frontend("tensorflow", samples=SAMPLES, quantized=(0.4, -5), **settings)
    (got,) = mccompile.load(front)(x[None])
    expected = np.clip(np.round(tensorflow(x) / 0.4) - 5, -128, 127)
    assert got.dtype == np.int8 and len(np.unique(expected)) > 20
    assert np.abs(got[0] - expected).max() <= 1


def test_floats_are_the_same_samples() -> None:
    x = sound(SAMPLES, RATE)
    front = mccompile.audio_frontend(samples=SAMPLES, samples_type="float32", features_first=True)
    (got,) = mccompile.load(front)((x / 32768).astype(np.float32)[None])
    np.testing.assert_allclose(got[0].T, plain(x), rtol=0, atol=1e-3)


def test_changes_go_on_at_the_ends_as_lines_do() -> None:
    """What rises evenly changes evenly, and does not bend."""
    from mccompile.importers.audio.front_end_tables import changes
    from mccompile.importers.audio.recipe import recipe

    asked = recipe("librosa", frames=20, delta=2)
    line = np.arange(20.0)
    np.testing.assert_allclose(changes(asked, 1) @ line, np.ones(20), atol=1e-12)
    np.testing.assert_allclose(changes(asked, 2) @ line, np.zeros(20), atol=1e-12)
    np.testing.assert_allclose(changes(asked, 2) @ line**2, np.full(20, 2), atol=1e-11)
    repeated = changes(recipe("torchaudio", frames=20, delta=1), 1) @ line
    np.testing.assert_allclose(repeated[2:-2], np.ones(16), atol=1e-12)
    assert repeated[0] == pytest.approx((1 * 1 + 2 * 2) / 10)
