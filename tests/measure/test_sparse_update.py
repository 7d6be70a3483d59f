"""`--learn auto`: samples and a budget decide what learns; it fits, and is worth more than what else would fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import mccompile
from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.cli import run
from mccompile.driver import Options
from mccompile.measure.sparse_update import TRIES, Candidate, choose, most_that_fit
from mccompile.passes.learn.phase_graphs import Learning
from tests.python.test_trainer import SHAPES, batches, first_weights, network

BUDGET = 600  # the last layer and b1 fit, w1 does not


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    onnx.save(network(), folder / "net.onnx")
    given = batches(5)
    np.savez(
        folder / "samples.npz", x=np.concatenate([x for x, _ in given]), target=np.concatenate([y for _, y in given])
    )
    return [str(folder / "net.onnx"), "--loss", "cross_entropy:p", "--data", str(folder / "samples.npz")]


def information_of_b2() -> float:
    """What the gradient of the last bias is, from the definition."""
    w, found = first_weights(), []
    for x, y in batches(5):
        s = np.maximum(x @ w["w1"] + w["b1"], 0) @ w["w2"] + w["b2"]
        p = np.exp(s) / np.exp(s).sum(1, keepdims=True)
        found.append(((p - np.eye(3)[y]).mean(0) ** 2).sum())
    return float(np.mean(found))


def test_what_fits_is_chosen_by_what_samples_show(words: list[str]) -> None:
    options = Options(budget={"ram": BUDGET})
    found = choose(Path(words[0]), Learning("cross_entropy:p", "auto"), options, Path(words[-1]))
    assert {each.name for each in found.chosen} == {"w2", "b1", "b2"}
    assert [each.name for each in found.rest] == ["w1"]
    assert found.batches == 5
    assert found.ram <= BUDGET
    worth = {each.name: each.worth for each in found.chosen}
    assert worth["b2"] == pytest.approx(information_of_b2(), rel=1e-5)


def test_the_command_learns_that_and_tells_why(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["train", *words, "--learn", "auto", "--budget", f"ram={BUDGET}", "-o", str(tmp_path / "out")]
    assert run(asked) == 0
    said = capsys.readouterr().out
    assert "auto     3 of 4 weights learn" in said
    assert "frozen" in said
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["arena_bytes"] <= BUDGET
    assert set(report["learning"]["learn"].split(",")) == {"w2", "b1", "b2"}
    assert run(["check", *words, "--learn", "auto", "--budget", f"ram={BUDGET}"]) == 0
    assert "target" not in capsys.readouterr().err  # which is no array too many


def test_a_trainer_in_python_chooses_too(words: list[str]) -> None:
    net = mccompile.train(
        words[0], loss="cross_entropy:p", learn="auto", data=words[-1], target="native", budget={"ram": 4000}
    )
    assert set(net.weights()) == set(SHAPES)


@pytest.mark.parametrize(
    ("left_out", "added", "fix"),
    [
        ("--data", "--learn auto --budget ram=600", "add --data samples.npz"),
        ("", "--learn auto", "add --budget ram=64K"),
        ("", "--learn all", "leave out --data"),
    ],
)
def test_what_is_missing_is_said(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], left_out: str, added: str, fix: str
) -> None:
    asked = words[: words.index(left_out)] if left_out else words
    assert run(["train", *asked, *added.split(), "-o", str(tmp_path / "out")]) == 2
    assert fix in capsys.readouterr().err


def test_what_cannot_fit_is_refused_as_in_training(words: list[str], tmp_path: Path) -> None:
    assert run(["train", *words, "--learn", "auto", "--budget", "ram=100", "-o", str(tmp_path / "out")]) == 1


def candidates(*parts: tuple[str, int, int, float]) -> list[Candidate]:
    """Names, layers, elements and what they are worth."""
    return [
        Candidate(name, name, place, TensorType(f32, (count, 1) if name[0] == "w" else (count,)), worth, 4 * count)
        for name, place, count, worth in parts
    ]


def needed(chosen: Sequence[Candidate], read: Sequence[int]) -> int:
    """By a planner that keeps what layers read."""
    first = min(each.place for each in chosen)
    matrix = any(each.place == first and each.type.rank > 1 for each in chosen)
    return sum(read[first if matrix else first + 1 :]) + sum(each.bytes for each in chosen)


@pytest.mark.parametrize(
    ("budget", "recomputes", "best"),
    [
        (2600, False, {"w2", "b2", "w3"}),  # a gradient that goes to b0 would keep what all layers read
        (3600, False, {"b0", "w2", "b2", "w3"}),
        (450, True, {"b0", "w2", "b2", "w3"}),
        (60, True, {"b0", "b2", "w3"}),
    ],
)
def test_sets_are_made_for_what_planners_keep(budget: int, recomputes: bool, best: set[str]) -> None:
    found = candidates(("b0", 0, 1, 1.0), ("w2", 2, 100, 50.0), ("b2", 2, 1, 0.5), ("w3", 3, 10, 5.0))
    read, tried = [1000] * 4, list[Sequence[Candidate]]()

    def plan(chosen: Sequence[Candidate]) -> object:
        tried.append(chosen)
        return "fits" if needed(chosen, [0] * 4 if recomputes else read) <= budget else None

    chosen, point = most_that_fit(found, read, plan)
    assert point is not None
    assert {each.name for each in chosen} == best
    assert len(tried) <= 2 * TRIES
    assert most_that_fit(found, read, lambda _: None) == ([], None)


def test_what_fits_may_be_a_small_part_of_all() -> None:
    """Some biases fit, and no matrix does, of whatever size."""
    found = candidates(*((f"{k}{at}", at, 4 if k == "b" else 30 << at, 1.0) for at in range(21) for k in "wb"))
    read = [0] * 21
    chosen, _ = most_that_fit(found, read, lambda some: "fits" if needed(some, read) <= 100 else None)
    assert len(chosen) >= 5
