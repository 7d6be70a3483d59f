"""Passes are transactions: one that fails is left out, and what is compiled is what `--without` gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from mccompile import cli, pipeline
from mccompile.base.errors import STRICT, InternalError, Problem, UnsupportedModel
from mccompile.driver import Options, best_plans, compile, compile_graph, compiling
from mccompile.emit.output import Output, Printer
from mccompile.frontend.load import load_proto
from mccompile.graph import text
from mccompile.graph.ir import Graph
from mccompile.graph.snapshot import Snapshot
from mccompile.passes.api import Context, Pass
from mccompile.program.ir import Program
from tests.fuzz import subject
from tests.passes.broken_passes import PASSES, Broken, broken, verdict
from tests.small_models import conv
from tests.thorough import some

CHANCE = np.random.default_rng
Run = Callable[[Program, Context], None]


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT)


def files(made: ModelProto, without: tuple[str, ...] = ()) -> dict[str, bytes]:
    package = compile_graph(load_proto(made), Options(without=frozenset(without)), "m")
    return {name: package.files[name] for name in package.files.keys() - {"report.json"}}


def with_wrong(name: str, run: Run) -> tuple[Pass[Program], ...]:
    return tuple(replace(step, run=run) if step.name == name else step for step in pipeline.PROGRAM_PASSES)


def failing(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    """The pass changes the program, and raises the error then."""

    def run(program: Program, context: Context) -> None:
        program.body.pop()
        raise error

    monkeypatch.setattr(pipeline, "PROGRAM_PASSES", with_wrong(name, run))


@some(4, "number", range(len(PASSES)))
def test_a_pass_that_breaks_an_invariant_is_left_out(number: int) -> None:
    """200 graphs with each of the passes are tried by `python -m tests.passes.broken_passes`."""
    assert verdict(subject.draw(5, number), PASSES[number], CHANCE(number)) in ("right", "refused anyway")


def test_two_that_fail_are_both_left_out() -> None:
    with broken("fuse", CHANCE(1)), broken("simplify_algebra", CHANCE(2)):
        assert files(conv()) == files(conv(), ("fuse", "simplify_algebra"))


def rename_kernels(program: Program, context: Context) -> None:
    for call in program.calls():
        call.kernel = "no/such"


def lose_a_size(program: Program, context: Context) -> None:
    program.not_negative[cast(Any, None)] = None


@pytest.mark.parametrize("run", [rename_kernels, lose_a_size], ids=["planning fails", "printing fails"])
def test_a_fault_that_shows_later_is_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No verifier looks at names of kernels, or at sizes; and what fails is not at fault."""
    wrong = with_wrong("share_work", run)
    without = files(conv(), ("share_work",))
    monkeypatch.setattr(pipeline, "PROGRAM_PASSES", wrong)
    monkeypatch.setattr(compiling, "PROGRAM_PASSES", wrong)
    made = compile_graph(load_proto(conv()), Options(), "m")
    assert [left.name for left in made.left_out] == ["share_work"]
    assert {name: made.files[name] for name in without} == without


def saved(folder: Path) -> Path:
    onnx.save(conv(), folder / "m.onnx")
    return folder / "m.onnx"


def test_of_plans_that_are_searched_among_one_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Printer] = []
    prints = Printer.print

    def counted(self: Printer) -> Output:
        made.append(self)
        return prints(self)

    monkeypatch.setattr(Printer, "print", counted)
    found = best_plans(saved(tmp_path), Options())
    assert found and not made
    small = compile(saved(tmp_path), Options(budget={"ram": min(point.ram for point in found)}))
    assert small.files and [printer.plan for printer in made] == [small.plan]


def test_a_search_goes_on_where_what_it_finds_cannot_be_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(budget={"ram": 1 << 20})
    right = compile(saved(tmp_path), replace(options, without=frozenset({"share_work"})))
    monkeypatch.setattr(compiling, "PROGRAM_PASSES", with_wrong("share_work", lose_a_size))
    monkeypatch.setattr(pipeline, "PROGRAM_PASSES", compiling.PROGRAM_PASSES)
    made = compile(saved(tmp_path), options)
    assert [left.name for left in made.left_out] == ["share_work"]
    assert made.files["m.c"] == right.files["m.c"]


def test_what_compiling_needs_cannot_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "pack_constants", ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        files(conv())


@pytest.mark.parametrize("error", [UnsupportedModel, MemoryError, OSError])
def test_what_is_no_fault_of_a_pass_stays_an_error(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    raised = UnsupportedModel(Problem("no")) if error is UnsupportedModel else error("no")
    failing(monkeypatch, "fuse", raised)
    with pytest.raises(error):
        files(conv())


def test_the_summary_and_the_report_say_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(conv(), tmp_path / "m.onnx")
    command = [str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]
    failing(monkeypatch, "fuse", InternalError("program 'm' is broken after fuse:\n  a call is lost\n  and more"))
    assert cli.run(command) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left out")]
    why = "InternalError: program 'm' is broken after fuse: a call is lost"
    assert len(said) == 1 and f"pass fuse, which failed ({why})" in said[0] and "please report it" in said[0]
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["left_out"] == [{"pass": "fuse", "why": why}] and report["options"]["without"] == ["fuse"]
    monkeypatch.setenv(STRICT, "1")
    assert cli.run([*command, "--force"]) == 70
    assert "a call is lost" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["check", "--runs", "1"], ["bench"], ["analyze"]], ids=lambda words: words[0])
def test_other_commands_that_compile_say_it(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(conv(), tmp_path / "m.onnx")
    failing(monkeypatch, "fuse", InternalError("a call is lost"))
    words = [*command, str(tmp_path / "m.onnx")]
    assert cli.run(words) == 0
    assert "left out pass fuse, which failed (InternalError: a call is lost)" in capsys.readouterr().out
    assert cli.run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == [{"pass": "fuse", "why": "InternalError: a call is lost"}]


def test_in_our_own_tests_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRICT, "1")
    with broken("assign_layout", CHANCE(3)), pytest.raises((InternalError, Broken)):
        files(conv())


def test_a_snapshot_puts_everything_back() -> None:
    graph = load_proto(conv())
    shown, loaded = text.show(graph), Snapshot(graph)

    def change() -> None:
        for node in list(graph.nodes):
            graph.set_input(node, 0, None)
        graph.inputs.clear()
        graph.assumptions["wrong"] = None
        graph.outputs[0].name = "other"
        graph.added = Graph("g")

    for _ in range(2):
        change()
        loaded.restore()
        assert text.show(graph) == shown and not graph.assumptions and not hasattr(graph, "added")
        assert all(
            (node, 0) in value.uses for node in graph.nodes for value in node.present_inputs if value is node.inputs[0]
        )
