"""The front end in integers gives what audio_microfrontend is defined to give, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mccompile
from mccompile.base.errors import WrongUse
from mccompile.frontend.load import load_proto
from mccompile.importers.audio.recipe import recipe
from tests.importers.audio import microfrontend
from tests.importers.audio.definitions import sound
from tests.thorough import some

SAMPLES, HOP = 2080, 320  # six frames
CHANCE = np.random.default_rng(4)
SOUNDS = {
    "voice": sound(SAMPLES, 16000),
    "quiet": CHANCE.integers(-3, 4, SAMPLES).astype(np.int16),
    "loud": CHANCE.integers(-32768, 32768, SAMPLES).astype(np.int16),
    "square": np.where(np.arange(SAMPLES) % 200 < 100, -32768, 32767).astype(np.int16),
    "nothing": np.zeros(SAMPLES, np.int16),
}


@pytest.fixture(scope="module")
def compiled() -> Any:
    return mccompile.load(mccompile.audio_frontend("microfrontend", samples=SAMPLES))


@some(2, "name", SOUNDS)
def test_features(name: str, compiled: Any) -> None:
    expected = microfrontend.features(SOUNDS[name], 480, HOP)
    (got,) = compiled(SOUNDS[name][None])
    np.testing.assert_array_equal(np.round(got[0] * 25.6), expected)
    assert name == "nothing" or len(np.unique(expected)) > 9


def test_bytes_are_rounded_as_examples_do() -> None:
    made = mccompile.audio_frontend("microfrontend", samples=SAMPLES, quantized=(26 / 256, -128))
    (got,) = mccompile.load(made)(SOUNDS["voice"][None])
    expected = (microfrontend.features(SOUNDS["voice"], 480, HOP) * 256 + 333) // 666 - 128
    np.testing.assert_array_equal(got[0], np.clip(expected, -128, 127))


def test_there_are_no_floats() -> None:
    made = mccompile.audio_frontend("microfrontend", samples=SAMPLES, quantized=(26 / 256, -128))
    assert not any(value.type.dtype.is_float for value in load_proto(made).values())


def test_noise_goes_on_from_frame_to_frame() -> None:
    made = mccompile.audio_frontend("microfrontend", frames=2)
    front = mccompile.load(made, stream="samples=1,hop=320,edge=warm")
    x, got = SOUNDS["voice"], []
    expected = microfrontend.features(np.concatenate([np.zeros(160, np.int16), x]), 480, HOP)
    for start in range(0, SAMPLES - HOP + 1, HOP):
        got.append(front(x[None, start : start + HOP])[0][0, -1])
    np.testing.assert_array_equal(np.round(np.array(got) * 25.6), expected[: len(got)])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"mfcc": True}, "leave out --mfcc"),
        ({"delta": 1}, "leave out --delta"),
        ({"fft": 500}, "--fft 512"),
        ({"log": "db"}, "--log pcan"),
        ({"mels": 0}, "--mels 40"),
        ({"high": 8000.0}, "--high 7500"),
        ({"style": "plain", "log": "pcan"}, "--style microfrontend"),
    ],
)
def test_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        recipe(**{"style": "microfrontend", **asked})
    assert said in str(refused.value)
