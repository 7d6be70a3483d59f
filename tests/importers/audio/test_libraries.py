"""Compiled front ends with a library's defaults give what the library gave (libraries.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mccompile
from tests.importers.audio.definitions import sound
from tests.importers.audio.libraries import SAMPLES, STORED

CLOSE = 1e-4  # of the largest feature
STEP = 2.0  # of int8, in the units of features
DEFAULTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "librosa_mfcc": ("librosa", {"mfcc": True}, 22050),
    "keras_mel": ("keras", {}, 16000),
    "keras_mfcc": ("keras", {"mfcc": True, "dct": "ortho"}, 16000),
}


def made(name: str, **more: Any) -> np.ndarray:
    style, settings, rate = DEFAULTS[name]
    front = mccompile.audio_frontend(style, samples=SAMPLES, features_first=True, **settings, **more)
    return np.asarray(mccompile.load(front)(sound(SAMPLES, rate)[None])[0][0])


@pytest.mark.parametrize("name", DEFAULTS)
def test_floats(name: str) -> None:
    expected = np.load(STORED)[name]
    np.testing.assert_allclose(made(name), expected, rtol=0, atol=CLOSE * np.abs(expected).max())


@pytest.mark.parametrize("name", DEFAULTS)
def test_bytes(name: str) -> None:
    got = made(name, quantized=(STEP, 5))
    expected = np.clip(np.round(np.load(STORED)[name] / STEP) + 5, -128, 127)
    assert got.dtype == np.int8 and np.abs(got - expected).max() <= 1


def test_integers() -> None:
    """A logarithm of the C library that the features were made with is rounded to the wrong side, so one weight of
    all filters is another one."""
    front = mccompile.audio_frontend("microfrontend", samples=SAMPLES, hop=160)
    (got,) = mccompile.load(front)(sound(SAMPLES, 16000)[None])
    expected = np.load(STORED)["microfrontend"]
    apart = np.abs(np.round(got[0] * 25.6) - expected)
    assert apart.max() <= 1 and (apart != 0).sum() <= 2
