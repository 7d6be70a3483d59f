"""Calls of other packages, and calls that do not fit: errors say what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mccompile
from mccompile import MccError
from tests import small_models
from tests.small_models import save


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda made: made.check(run=2), "did you mean runs?"),
        (lambda made: made.check(np.zeros(3)), "data='samples.npz'"),
        (lambda made: made.check(runs=0), "runs=1"),
        (lambda made: made.check(rtol="small"), "such as rtol=0.01"),
        (lambda made: made.check(seed="a"), "such as seed=0"),
        (lambda made: made.check(runs="3"), "such as runs=3"),
        (lambda made: made.check(rtol=-1.0), "did you mean rtol=0?"),
        (lambda made: made.check(tolerance=0.1), "write rtol=0.1"),
        (lambda made: made.bench(target="native"), "leave out target"),
        (lambda made: made(np.zeros(3)), "mccompile.load(model)(x)"),
        (lambda made: mccompile.check(made), "mccompile.compile('net.onnx').check()"),
        (lambda made: mccompile.quantize(made), "quantize='samples.npz'"),
    ],
)
def test_methods_that_are_called_otherwise_say_how(
    tmp_path: Path, call: Callable[[mccompile.Compiled], object], fix: str
) -> None:
    made = mccompile.compile(save(small_models.conv(), tmp_path), target="generic")
    with pytest.raises(MccError, match=r"(?s)where .*why .*fix ") as caught:
        call(made)
    assert fix in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"), [("predict", "mccompile.load('net.onnx')(x)"), ("diff", "`mccompile diff`")]
)
def test_names_of_other_packages_lead_to_ours(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(words)):
        getattr(mccompile, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [("save", "write(folder)"), ("predict", "mccompile.load(model)(x)"), ("quantize", "quantize='samples.npz'")],
)
def test_what_is_compiled_leads_to_its_own_methods(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(words)):
        getattr(mccompile.compile(small_models.conv()), name)


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda net: net.step(np.zeros((1, 8), np.float32), "a"), "give whole numbers"),
        (lambda net: net.step(np.zeros((1, 8), np.float32), np.array([99])), "count them from 0"),
        (lambda net: net.step(np.zeros((1, 8), np.float32), np.array([1]), rate="fast"), "such as rate=0.01"),
        (lambda net: net.step(np.zeros((1, 8), np.float32), np.array([1]), lr=0.1), "leave out lr"),
        (lambda net: net.run(np.zeros((1, 8), np.float32), np.array([1])), "write run(x)"),
        (lambda net: net.save(), "add path"),
    ],
)
def test_calls_of_what_learns_say_how(call: Callable[[mccompile.Trainer], object], fix: str) -> None:
    weights = {"w": small_models.floats(0, 8, 4)}
    net = small_models.model(
        "net", [small_models.node("MatMul", "x w", "y")], [("x", (1, 8))], [("y", (1, 4))], weights
    )
    learns = mccompile.train(net, loss="cross_entropy:y")
    with pytest.raises(MccError, match=r"(?s)where .*why .*fix ") as caught:
        call(learns)
    assert fix in str(caught.value)


def test_a_model_opened_as_text_is_told_so(tmp_path: Path) -> None:
    path = save(small_models.conv(), tmp_path)
    with open(path, encoding="utf-8") as file, pytest.raises(MccError, match=r"open\(file, 'rb'\)"):
        mccompile.compile(file)


@pytest.mark.parametrize("name", ["compile", "load", "train"])
def test_classes_lead_to_what_makes_them(name: str) -> None:
    kind: Any = {"compile": mccompile.Compiled, "load": mccompile.Network, "train": mccompile.Trainer}[name]
    with pytest.raises(MccError, match=rf"(?s)where .*why .*fix .*mccompile\.{name}\('net.onnx'"):
        kind("net.onnx")


def test_what_learns_is_not_called_and_says_how_to() -> None:
    trainer = mccompile.Trainer.__new__(mccompile.Trainer)
    trainer._path = Path("net.onnx")
    with pytest.raises(MccError, match=r"run\(x\) infers"):
        trainer(np.zeros(3))


@pytest.mark.parametrize(
    ("name", "words"), [("fit", "step(x, y)"), ("predict", "run(x)"), ("state_dict", "save(file)")]
)
def test_methods_of_other_trainers_lead_to_ours(name: str, words: str) -> None:
    trainer = mccompile.Trainer.__new__(mccompile.Trainer)
    with pytest.raises(AttributeError, match=re.escape(words)):
        getattr(trainer, name)
