"""Measurements: told apart by what decides, merged in any order, believed in place of models, and never needed."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from mccompile import __version__
from mccompile.base.dtypes import f32, i8
from mccompile.base.errors import BadFile
from mccompile.driver import Options
from mccompile.expr.ir import apply, operand
from mccompile.kernels.api import Needs
from mccompile.kernels.identity import identity
from mccompile.kernels.measurements import BOARD, Database, Key, Measured, Measurement, machine_of, target_name
from mccompile.kinds.map import Map
from mccompile.measure.tuning.candidates import Candidates
from mccompile.program.ir import Buffer, Call, View
from mccompile.targets import api
from tests import small_models
from tests.small_quantized import convolutions

KIND = Map(apply("add", operand(0, f32), operand(1, f32)))
M4 = api.load("cortex-m4")
OPTIONS = Options(target="cortex-m4")
NET = convolutions(8, [(4, 3, 1), (0, 3, 1)])


def call(one: View, other: View, kind: Map = KIND) -> Call:
    return Call(kind, (one, other), (Buffer("y", one.buffer.dtype, (4, 8)).whole(),))


def whole(name: str) -> View:
    return Buffer(name, f32, (4, 8)).whole()


def test_the_identity_is_what_decides() -> None:
    turned = View(Buffer("t", f32, (8, 4)), (4, 8), (1, 4))
    bytes = View(Buffer("b", i8, (4, 8)), (4, 8), (8, 1))
    calls = [
        call(whole("a"), whole("b")),
        call(turned, whole("b")),
        call(whole("a"), replace(whole("b"), offset=3)),
        call(whole("a"), replace(whole("b"), strides=(0, 1))),
        call(bytes, bytes, Map(apply("add", operand(0, i8), operand(1, i8)))),
        call(whole("a"), whole("b"), Map(apply("mul", operand(0, f32), operand(1, f32)))),
    ]
    assert len({identity(each, Needs()) for each in calls}) == len(calls)
    assert identity(call(whole("c"), whole("d")), Needs()) == identity(calls[0], Needs())
    assert identity(calls[1], Needs(dense=frozenset({0}))) == identity(calls[0], Needs())


def row(call: str = "c", figure: float = 10, model: float = 1, **key: str) -> Measurement:
    usual = {"version": "v", "blocks": "()", "target": target_name(M4), "machine": "emulated", "compiler": "gcc 12"}
    return Measurement(Key(call=call, **{"kernel": "k", **usual, **key}), figure, "instructions", model)


def test_files_are_merged_in_any_order(tmp_path: Path) -> None:
    mine, other = [row("a"), row("b"), row("c", machine=BOARD)], [row("b"), row("d", compiler="gcc 13")]
    first, second = Database(tmp_path / "1", make=True), Database(tmp_path / "2", make=True)
    assert first.add(mine) == 3 and first.add(other) == 1 and first.add(other) == 0
    assert second.add(reversed(other)) == 2 and second.add(reversed(mine)) == 2
    assert first.rows() == second.rows() == sorted([*mine, other[1]], key=lambda one: one.key)
    assert first.add([row("a", figure=99)]) == 0 and first.rows()[0].figure == 10


def test_a_board_counts_then_the_newest_compiler() -> None:
    rows = [row(compiler="gcc 9.1", figure=7), row(compiler="gcc 12.2", figure=20), row("d", model=2, figure=40)]
    found = Measured(rows, M4, __version__)
    assert found.scale == pytest.approx(20) and list(found.times.values()) == pytest.approx([1, 2])
    assert list(Measured([*rows, row(machine=BOARD, figure=5, model=2)], M4, "").times.values()) == pytest.approx([2])
    assert Measured([row(machine="another processor")], M4, "").times == {}
    assert machine_of(api.load("native")) == api.processor() != ""


def tuned(path: Path, slow: str) -> Options:
    """With a file in which one kernel took long, and all others what their models say."""
    path.unlink(missing_ok=True)
    package = small_models.compiled(NET, OPTIONS)
    found = [one for among in Candidates(OPTIONS, "gcc 1").of(package) for one in among]
    rows = [Measurement(c.key, c.model * (99 if c.kernel == slow else 7), "", c.model) for c in found]
    Database(path, make=True).add(rows)
    return replace(OPTIONS, tuned=path)


def test_measured_kernels_are_chosen_and_the_report_says_so(tmp_path: Path) -> None:
    plain = small_models.compiled(NET, OPTIONS)
    chosen = next(e.choice.candidates[0].kernel.id for e in plain.explanations if e.kind == "conv")
    made = small_models.compiled(NET, tuned(tmp_path / "t", chosen))
    assert chosen not in {step.function.kernel.id for step in made.plan.steps()}
    convs = [" + ".join(e.provenance) for e in made.explanations if e.kind == "conv"]
    assert set(convs) <= set(json.loads(made.files["report.json"])["tuned"])
    assert "tuned" not in json.loads(plain.files["report.json"])


def test_the_whole_plan_is_known(tmp_path: Path) -> None:
    """Calls are the same ones after memory is planned and constants are packed."""
    options = tuned(tmp_path / "t", "")
    package = small_models.compiled(NET, options)
    measured = Measured(Database(tmp_path / "t").rows(), M4, __version__)
    registry = Candidates(options, "").context.registry.measured_by(measured)
    asked = [run.call for run in package.estimate.runs if run.call.kind.name == "conv"]
    assert asked and all(registry.cost(registry[c.kernel], c, M4).measured for c in asked)


def test_measurements_equal_to_the_models_change_nothing(tmp_path: Path) -> None:
    plain, made = small_models.compiled(NET, OPTIONS), small_models.compiled(NET, tuned(tmp_path / "t", ""))
    assert [p for p in plain.files if plain.files[p] != made.files[p]] == ["report.json"]


@pytest.mark.parametrize("contents", [None, b"", b"no database", "other form"])
def test_what_is_no_file_of_measurements_is_refused(contents: bytes | str | None, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    if isinstance(contents, bytes):
        path.write_bytes(contents)
    elif contents:
        with sqlite3.connect(path) as file:
            file.execute("PRAGMA user_version = 77")
    with pytest.raises(BadFile, match="measurements"):
        small_models.compiled(NET, replace(OPTIONS, tuned=path))
