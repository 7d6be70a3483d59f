"""Tiles of columns are chosen for the smallest arena within the multiply-accumulates that may be spent."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from mccompile import cli
from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.driver import Options, compile
from mccompile.emit.summary import summary
from mccompile.measure.correctness import check
from mccompile.toolchain.run import Model
from tests.passes.graph.tile_columns.test_tile_columns import network, package
from tests.small_models import save

MOST = 1.3


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return save(network("wide"), tmp_path)


def test_no_part_in_any_number_of_tiles_takes_less(wide: Path) -> None:
    plain, found = (compile(wide, Options(prefer="ram", recompute=most)) for most in (1.0, MOST))
    expected = package(network("wide"), recompute=MOST).column_tiles
    alone = [package(network("wide"), column_tiles=(cost.column_tiles,)) for cost in expected]
    assert [made.macs - plain.macs for made in alone] == [cost.macs for cost in expected]
    least = min(made.plan.arena_bytes for made in alone if made.macs <= MOST * plain.macs)
    assert len(alone) > 6 and found.plan.arena_bytes <= least < 0.7 * plain.plan.arena_bytes
    assert plain.macs < found.macs <= MOST * plain.macs


@pytest.mark.parametrize("options", [["--prefer", "ram", "--rows", "off"], ["--prefer", "time"]])
def test_where_nothing_runs_by_rows_the_fix_compiles(
    options: list[str], wide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(wide), "-o", str(tmp_path / "out"), "--recompute", "1.3", *options]
    assert cli.run(command) == 2
    said = capsys.readouterr().err
    assert "--recompute has no effect" in said
    assert cli.run([*command, *re.findall(r"fix +try (.*)", said)[0].split()]) == 0


def test_less_may_be_spent_on_less(wide: Path) -> None:
    found = [compile(wide, Options(prefer="ram", recompute=most)) for most in (1.0, 1.1, 1.6)]
    assert [made.plan.arena_bytes for made in found] == sorted((m.plan.arena_bytes for m in found), reverse=True)
    assert found[0].macs < found[1].macs < found[2].macs


def test_a_budget_that_only_tiles_keep_names_them(wide: Path) -> None:
    plain, found = (compile(wide, Options(prefer="ram", recompute=most)).plan.arena_bytes for most in (1.0, MOST))
    budget = {"ram": (plain + found) // 2}
    least = compile(wide, Options(budget=budget, recompute=MOST)).plan.arena_bytes
    assert least <= budget["ram"]
    with pytest.raises(CheckFailed, match=f"with --recompute 1.3 it takes {least} bytes"):
        compile(wide, Options(budget=budget))


def test_what_may_be_spent_already_is_not_named(tmp_path: Path) -> None:
    path = save(network("residual"), tmp_path)
    for most, is_named in ((1.0, True), (1.5, False)):
        with pytest.raises(CheckFailed) as failed:
            compile(path, Options(budget={"ram": 8}, recompute=most))
        assert ("--recompute" in str(failed.value)) == is_named


def test_it_is_right_and_told(wide: Path) -> None:
    verdict = check(wide, Options(prefer="ram", recompute=MOST), runs=2)
    (tiles,) = verdict.package.plan.column_tiles
    told = summary(verdict.package.plan, 0).splitlines()
    assert verdict.ok and f"tiles   {tiles.first} to {tiles.last} in {tiles.count}" in told
    assert len(told) == len(set(told)) and any(line.endswith(" such chains)") for line in told)


def test_what_goes_by_rows_already_stays_as_it_is(tmp_path: Path) -> None:
    """Columns of the input alone are no gain."""
    path = save(network("windows"), tmp_path)
    plain, found = (compile(path, Options(prefer="ram", recompute=most)) for most in (1.0, 1.01))
    assert found.plan.column_tiles == ()
    assert {n: text for n, text in found.files.items() if n != "report.json"} == {
        n: text for n, text in plain.files.items() if n != "report.json"
    }


def test_weights_trained_anew_go_with_the_code(wide: Path, tmp_path: Path) -> None:
    options = Options(prefer="ram", recompute=MOST)
    compile(wide, options).write(tmp_path / "out")
    made = network("wide")
    for weight in made.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.5), weight.name))
    (tmp_path / "new").mkdir()
    new = save(made, tmp_path / "new")
    assert cli.run(["blob", str(new), "--for", str(tmp_path / "out")]) == 0
    compile(new, options).write(tmp_path / "alone")
    inputs = {"x": np.ones((1, 1, 16, 64), np.float32)}
    updated, alone = (Model.build(tmp_path / name).run(inputs) for name in ("out", "alone"))
    np.testing.assert_array_equal(updated["y"], alone["y"])


@pytest.mark.parametrize(
    "options",
    [{"recompute": 0.9}, {"recompute": 99.0}, {"prefer": "time"}, {"rows": "off"}, {"dump_values": True}],
)
def test_what_is_no_use_is_refused(options: dict[str, object], wide: Path) -> None:
    with pytest.raises(WrongUse, match=r"recompute|tiles"):
        compile(wide, Options(**({"prefer": "ram", "recompute": MOST} | options)))
