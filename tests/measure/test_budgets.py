"""Budgets of what is measured: flash with its code, stack, instructions."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from mccompile import cli
from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.driver import Options, compiling, settled
from mccompile.measure import budgets
from mccompile.measure.budgets import hold, measured
from mccompile.measure.cost import cost
from tests import small_models
from tests.thorough import some

CORE = "cortex-m4"
needs_board = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="needs a cross-compiler"
)


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    return small_models.save(small_models.mlp(), tmp_path)


def within(**budget: int) -> Options:
    return Options(target=CORE, budget=budget)


@needs_board
def test_each_budget_is_what_bench_measures(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cost(mlp, Options(target=CORE))
    monkeypatch.setattr(budgets, "cost", lambda model, options: found)  # measuring once is enough
    stack = max(found.run_stack or 0, found.init_stack or 0, found.stack_bound.bytes or 0)
    for what, used in (
        ("flash", found.code_bytes + found.weights_bytes),
        ("stack", stack),
        ("instructions", found.run_instructions),
    ):
        (line,) = hold(mlp, within(**{what: used}))
        assert re.search(rf"\b{used}\b", line)
        with pytest.raises(CheckFailed, match=f"{used} .* are 1 over the budget"):
            hold(mlp, within(**{what: used - 1}))


@needs_board
def test_flash_counts_the_code(mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = cost(mlp, Options(target=CORE)).weights_bytes
    arguments = [str(mlp), "-o", str(tmp_path / "out"), "--target", CORE, "--budget"]
    assert cli.run([*arguments, f"flash={weights + 100}"]) == 1
    assert "over the budget" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert cli.run([*arguments, f"ram=64K,weights={weights}"]) == 0


@needs_board
@some(2, "command", ["check --runs 1", "bench", "analyze", "analyze --html page.html", "bench --json"])
def test_every_command_that_compiles_holds_them(
    command: str, mlp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(mlp.parent)
    arguments = [*command.split(), mlp.name, "--target", CORE, "--budget"]
    assert cli.run([*arguments, "flash=64K,instructions=1M"]) == 0
    said = capsys.readouterr()
    assert "run      " in said.err + said.out and ("json" not in command or json.loads(said.out))
    assert cli.run([*arguments, "flash=64K,instructions=10"]) == 1
    assert "over the budget" in capsys.readouterr().err


@needs_board
def test_what_fits_is_found_by_measuring(mlp: Path) -> None:
    small = measured(mlp, Options(target=CORE, prefer="flash"), {}).flash
    large = measured(mlp, Options(target=CORE, prefer="time"), {}).flash
    if small < large:
        with pytest.raises(CheckFailed, match=f"with --prefer flash it takes {small}"):
            hold(mlp, Options(target=CORE, prefer="time", budget={"flash": small}))


def test_this_machine_tells_flash_and_stack_but_no_instructions(mlp: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("the stack is gcc's to tell")
    flash, stack = hold(mlp, Options(budget={"flash": 1 << 20, "stack": 1 << 20}))
    assert "code" in flash and "of the deepest call" in stack
    with pytest.raises(WrongUse, match="instructions of target generic cannot be measured"):
        hold(mlp, Options(budget={"instructions": 10}))


def test_without_a_compiler_its_package_is_named(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WrongUse, match="gcc-arm-none-eabi"):
        hold(mlp, within(flash=1 << 20))
    assert hold(mlp, within(ram=1, weights=1)) == []  # the driver's to hold


def test_the_plan_is_searched_once(mlp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for the package and then for what is measured of it, but again where the file or the options are others."""
    tried: list[str] = []
    compile_graph = compiling.compile_graph

    def counted(*arguments: Any) -> Any:
        tried.append(arguments[2])
        return compile_graph(*arguments)

    monkeypatch.setattr(compiling, "compile_graph", counted)
    plan = compiling.compile(mlp, within(ram=65536)).plan
    assert len(tried) == 1
    found = settled(mlp, within(ram=65536))
    assert len(tried) == 1
    assert not found.budget and compiling.compile(mlp, found).plan.arena_bytes == plan.arena_bytes
    settled(mlp, within(ram=65537))
    assert len(tried) == 3
    mlp.write_bytes(small_models.conv().SerializeToString())
    settled(mlp, within(ram=65537))
    assert len(tried) == 4
