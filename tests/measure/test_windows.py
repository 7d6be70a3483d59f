"""Windows of streams: what a push gives of what a reference makes of the whole window."""

from __future__ import annotations

import numpy as np

from mccompile.base.streaming import Streamed, StreamedOutput
from mccompile.measure.windows import given_by_push

STREAMED = Streamed({"x": 2}, 33, 2, 1, (StreamedOutput("y", 2, 16, 1, 0), StreamedOutput("z", None, 0, 0, 0)))


def test_a_push_gives_its_own_elements() -> None:
    results = {"y": np.arange(34).reshape(1, 2, 17), "z": np.arange(3)}
    found = given_by_push(STREAMED, results)
    assert found["y"].tolist() == [[[16], [33]]]
    assert found["z"] is results["z"]


def test_what_a_reference_makes_too_short_differs_by_its_shape() -> None:
    """onnx.reference counts one window less than the standard where padding is SAME_LOWER."""
    assert given_by_push(STREAMED, {"y": np.zeros((1, 2, 16))})["y"].shape == (1, 2, 0)
