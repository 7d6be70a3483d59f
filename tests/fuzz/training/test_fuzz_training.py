"""The first random programs that learn; and that what is wrong is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mccompile.check.learning import Arrays, Reference
from mccompile.driver import Options
from mccompile.driver.training import train
from mccompile.frontend.judged import judged
from mccompile.measure.sparse_update import choose
from mccompile.passes.learn.optimizers import optimizer
from mccompile.passes.learn.phase_graphs import Learning
from mccompile.targets.api import Pool
from mccompile.toolchain.learning import TrainingRecord
from mccompile.toolchain.model_report import read_report
from tests.fuzz.machines import MACHINES, Build
from tests.fuzz.training import __main__ as fuzzer
from tests.fuzz.training import drawn as drawing
from tests.fuzz.training.__main__ import GOOD, OK, WRONG, come_back, compared, shorter_searches, verdict
from tests.fuzz.training.drawn import Drawn
from tests.fuzz.training.programs import SAVED, run
from tests.python.test_trainer import batches, network
from tests.thorough import some


@pytest.mark.thorough
def test_programs() -> None:
    for number in range(10):
        found, why = verdict(1, number, MACHINES[:1])
        assert found in GOOD, f"program {number}: {why}"


@pytest.mark.thorough
def test_quantized_networks_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "QUANTIZED", 1.0)
    for number in range(3):
        assert verdict(3, number, MACHINES[:1]) == (OK, "")


@some(1, "more", [{"threads": 3}, {"mem": (Pool("dtcm", 64, 0), Pool("sram", 1 << 20, 1))}])
def test_programs_of_threads_and_memories_run(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzer, "_options", lambda *_: Options(name="net", **more))
    strict = Build(MACHINES[0], "gcc", ("-O0", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"))
    monkeypatch.setattr(fuzzer, "_build", lambda *_: strict)
    for number in range(2):
        assert verdict(1, number, MACHINES[:1]) == (OK, "")


def test_weights_are_chosen_by_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzer, "AUTO_SHARE", 1.0)
    monkeypatch.setattr(fuzzer, "_options", lambda *_: Options(name="net"))
    chosen = []
    monkeypatch.setattr(fuzzer, "choose", lambda *given: chosen.append(choose(*given)) or chosen[-1])
    assert verdict(1, 1, MACHINES[:1]) == (OK, "")
    assert chosen[0].ram <= chosen[0].budget


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Drawn, TrainingRecord]:
    folder = tmp_path_factory.mktemp("learned")
    asked = Learning("cross_entropy:p", "all", optimizer("adam"), clip=0.5)
    given = tuple({"x": x, "target": y} for x, y in batches(3))
    onnx.save(network(), folder / "net.onnx")
    train(folder / "net.onnx", asked, Options(name="net")).write(folder / "out")
    drawn = Drawn(network(), asked, given)
    return drawn, run(drawn, folder / "out", read_report(folder / "out"), Build(MACHINES[0], "cc", ("-O0",)))


def _more(arrays: list[Arrays]) -> list[Arrays]:
    """By a thousandth."""
    return [{name: array * np.float32(1.001) for name, array in each.items()} for each in arrays]


def _verdict(drawn: Drawn, told: TrainingRecord) -> tuple[str, str]:
    judge = Reference(judged(drawn.model), drawn.asked)
    return compared(judge, drawn.batches, told, np.random.default_rng(0))


def test_what_is_right_is_taken(learned: tuple[Drawn, TrainingRecord]) -> None:
    drawn, told = learned
    assert _verdict(drawn, told) == (OK, "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("sums", "the gradient of"), ("losses", "the loss"), ("outputs", "p["), ("beta2", "the new")],
)
def test_what_is_wrong_is_seen(learned: tuple[Drawn, TrainingRecord], wrong: str, said: str) -> None:
    drawn, told = learned
    if wrong == "sums":
        told = replace(told, sums=_more(told.sums))
    elif wrong == "losses":
        told = replace(told, losses=[loss * 1.001 for loss in told.losses])
    elif wrong == "outputs":
        told = replace(told, outputs=_more(told.outputs))
    else:
        drawn = replace(drawn, asked=replace(drawn.asked, optimizer=optimizer("adam,beta2=0.9")))
    kind, why = _verdict(drawn, told)
    assert kind == WRONG
    assert said in why


def test_weights_that_come_back_otherwise_are_seen(tmp_path: Path) -> None:
    given = tuple({"x": x, "target": y} for x, y in batches(2))
    drawn = Drawn(network(), Learning("cross_entropy:p", "all"), given)
    model, out = tmp_path / "net.onnx", tmp_path / "out"
    onnx.save(drawn.model, model)
    with shorter_searches():
        train(model, drawn.asked, Options(name="net")).write(out)
    told = run(drawn, out, read_report(out), Build(MACHINES[0], "cc", ("-O0",)))
    assert come_back(model, out, told) is None
    assert come_back(model, out, replace(told, weights=_more(told.weights))) == (
        WRONG,
        "w1, b1, w2, b2 came back otherwise than saved",
    )
    damaged = bytearray((out / SAVED).read_bytes())
    damaged[70] ^= 1
    (out / SAVED).write_bytes(damaged)
    found = come_back(model, out, told)
    assert found is not None and found[0] == WRONG and "damaged" in found[1]
