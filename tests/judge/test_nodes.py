"""A fixed part of `python -m tests.judge`: random nodes by the judge and by onnxruntime."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from .nodes import cases, compared, difference

COUNT = 250


def test_the_judge_and_onnxruntime_agree_on_random_nodes() -> None:
    pytest.importorskip("onnxruntime")
    words: Counter[str] = Counter()
    wrong = []
    for case in islice(cases(50), COUNT):
        word, detail = compared(case)
        words[word] += 1
        wrong += [f"{case.title}: {detail}"] if word == "differs" else []
    assert not wrong
    assert words["agrees"] > 0.75 * COUNT


def test_differences_are_seen() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert difference(x.astype(np.float64), x, 1e-6) == ""
    assert difference(x + 1e-3, x, 1e-6).startswith("off by")
    assert difference(x[:1], x, 1e-6).startswith("shape")
    assert difference(np.array([1, 2]), np.array([1, 3]), 1e-6) == "1 of 2 elements differ"
    assert difference(np.array([np.nan]), np.array([np.nan], np.float32), 1e-6) == ""
    assert difference([x], [], 1e-6) == "another sequence"
