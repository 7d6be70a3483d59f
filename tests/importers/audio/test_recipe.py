"""What cannot be a front end is refused, with what would be one."""

from __future__ import annotations

from typing import Any

import pytest

from mccompile.base.errors import WrongUse
from mccompile.importers.audio.recipe import MFCC, STYLES, recipe


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"style": "libros"}, "there is no style 'libros'"),
        ({"mel": 3}, "there is no setting 'mel'"),
        ({"mels": "3"}, "mels cannot be '3'"),
        ({"log": "dB"}, "it cannot be 'dB'"),
        ({"hop": 0}, "hop is 0"),
        ({"hop": 500}, "--window 500"),
        ({"fft": 256}, "--fft 512"),
        ({"fft": 513}, "--fft 514"),
        ({"low": 9000.0}, "--low 0 --high 8000"),
        ({"coefficients": 41}, "--coefficients 40"),
        ({"power": 3}, "--power 2"),
        ({"delta": 3}, "--delta 1"),
        ({"delta": 1, "delta_width": 4}, "--delta-width 3"),
        ({"samples": 100}, "--samples 480"),
        ({"samples": 1000, "frames": 3}, "--samples 1120"),
        ({"samples": 100, "padding": "reflect"}, "--samples 241"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        recipe(**asked)
    assert said in str(refused.value)


@pytest.mark.parametrize("style", STYLES)
def test_styles_are_right_with_and_without_coefficients(style: str) -> None:
    assert recipe(style).features < 200
    assert style not in MFCC or recipe(style, mfcc=True).features < recipe(style).features


def test_frames_and_samples_follow_from_each_other() -> None:
    assert recipe(frames=30).samples == 29 * 320 + 480
    assert recipe(samples=29 * 320 + 480).frames == 30
    assert recipe("librosa", frames=44).frames == 44 == recipe("librosa", samples=22050).frames
    assert recipe("librosa", samples=recipe("librosa", frames=44).samples).frames == 44


def test_tensorflow_has_no_periodic_window_of_odd_length() -> None:
    assert recipe("tensorflow", window=481).window_kind == "hann-symmetric"
