"""References compute on one thread where a test asks for no number."""

from __future__ import annotations

import pytest

from tests import small_models

onnxruntime = pytest.importorskip("onnxruntime")


def threads(*options: object) -> int:
    session = onnxruntime.InferenceSession(small_models.conv().SerializeToString(), *options)
    number: int = session.get_session_options().intra_op_num_threads
    return number


def test_a_session_has_one_thread() -> None:
    assert threads() == 1


def test_a_session_with_other_options_has_one_thread() -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    assert threads(options, ["CPUExecutionProvider"]) == 1


def test_a_session_has_the_threads_that_a_test_asks_for() -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    assert threads(options) == 2
