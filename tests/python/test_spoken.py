"""Errors of the package in Python's words: what is told can be pasted into the call."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import mccompile
from mccompile import MccError
from tests import small_models


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_models.save(small_models.conv(), tmp_path_factory.mktemp("spoken"))


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"target": "nativ"}, 'did you mean target="native"?'),
        ({"prefer": "speed"}, 'did you mean prefer="time"?'),
        ({"dims": {"batch": 4}}, 'leave out dims={"batch": 4}'),
        ({"shapes": {"x": (2, 2, 6, 6)}}, 'leave out shapes={"x": (2, 2, 6, 6)}'),
        ({"budget": {"ram": 10}}, 'allow it: budget={"ram": '),
        ({"device": "cuda"}, "did you mean target?"),
        ({"batch_size": 4}, "did you mean dims?"),
        ({"out_dir": "o"}, "compile(...).write(FOLDER) names a folder"),
    ],
)
def test_options_are_keywords(keywords: dict[str, object], says: str, conv: Path) -> None:
    with pytest.raises(MccError) as refused:
        mccompile.compile(conv, **keywords)
    assert says in str(refused.value) and " --" not in str(refused.value).partition("fix")[2].partition(" (or ")[0]


def test_what_came_from_memory_is_no_temporary_file() -> None:
    with pytest.raises(MccError) as refused:
        mccompile.load(b"no model")
    assert "<bytes> is not an ONNX model" in str(refused.value) and "model.onnx" not in str(refused.value)


def test_an_open_file_is_a_model(conv: Path) -> None:
    assert mccompile.compile(BytesIO(conv.read_bytes())).files == mccompile.compile(conv.read_bytes()).files


@pytest.mark.parametrize(("model", "why"), [(None, "it is None"), (5, "it is an int"), ("graph", "it is a graph")])
def test_what_is_no_model_is_named(model: object, why: str) -> None:
    with pytest.raises(MccError, match=why):
        mccompile.load(small_models.conv().graph if model == "graph" else model)


def test_calls_that_do_not_fit_are_mended(conv: Path) -> None:
    net = mccompile.load(conv, target="generic")
    x = np.zeros((1, 2, 6, 6), np.float32)
    with pytest.raises(MccError, match=r"x\.transpose\(0, 3, 1, 2\)"):
        net(x.transpose(0, 2, 3, 1))
    with pytest.raises(MccError, match=r"x\.transpose\(3, 0, 1, 2\)"):  # the batch is the last axis
        net(x.transpose(1, 2, 3, 0))
    with pytest.raises(MccError, match=r"1 at a time"):
        net(np.zeros((4, 2, 6, 6), np.float32))
    with pytest.raises(AttributeError, match=r"call it, as in net\(x\)"):
        net.predict(x)
