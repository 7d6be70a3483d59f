"""A network of microWakeWord wakes on its word, spoken by a synthesizer: with `WAKE_WORD=okay_nabu.tflite`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.wake_word import LOUDEST, RATE, at_rate, heard, running, spoken, voices
from mccompile.toolchain.tools import missing

NETWORK = os.environ.get("WAKE_WORD", "")
CUTOFF, LOW = 0.9, 0.2


@pytest.mark.parametrize("rate", [8000, 22050, 44100])
def test_a_tone_keeps_its_height_and_its_size(rate: int) -> None:
    tone = np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    wanted = np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)
    np.testing.assert_allclose(at_rate(tone, rate)[200:-200], wanted[200:-200], atol=0.02)


@pytest.mark.skipif(not voices(), reason="needs flite or espeak-ng")
def test_what_is_spoken_is_loud_enough() -> None:
    samples = spoken(voices()[0], "okay nabu")
    assert samples.dtype == np.int16 and 2.7 < len(samples) / RATE < 6
    assert 0.9 * LOUDEST < np.abs(samples).max() < 1.1 * LOUDEST


@pytest.mark.skipif(
    bool(missing(["arm-none-eabi-gcc", "qemu-system-arm", "cmake", "flite"])) or not NETWORK,
    reason="nothing speaks here, or WAKE_WORD names no okay_nabu.tflite",
)
def test_it_wakes_on_its_word_on_an_emulated_board() -> None:
    with running(Path(NETWORK), "nucleo_f446re", True) as models:
        assert heard(models, spoken("flite rms", "okay nabu")) > CUTOFF
        assert heard(models, spoken("flite rms", "hello world")) < LOW
