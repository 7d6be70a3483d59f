"""Tuning on this machine: kernels are built and timed, and what was measured is not measured again."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import parser

from mccompile import cli
from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.emit.package import Package
from mccompile.kernels.measurements import BOARD, Database
from mccompile.measure.tuning import tune as tuning
from mccompile.measure.tuning.candidates import Candidate
from mccompile.measure.tuning.tune import Tuning, spearman, tune
from tests import small_models
from tests.kernels.test_measurements import row
from tests.small_models import save
from tests.thorough import some

SMALL = Options(target="native", prefer="time")


def here() -> AbstractContextManager[Any]:
    return ThreadPoolExecutor(1)


def tuned(folder: Path, options: Options = SMALL, **how: Any) -> Tuning:
    return tune(save(small_models.mlp(), folder), options, folder / "t.sqlite", opened=here, **how)


def test_kernels_are_timed_once(tmp_path: Path) -> None:
    lines: list[str] = []
    found = tuned(tmp_path, progress=lines.append)
    rows = Database(tmp_path / "t.sqlite").rows()
    assert found.new == found.known == len(rows) > 1 and found.left == 0 and not found.failures
    assert all(each.figure > 0 and each.unit == "seconds" for each in rows)
    assert re.match(r"(\d+) of \1 calls, 0 s left: ", lines[-1])
    again, after = tuned(tmp_path), Database(tmp_path / "t.sqlite").rows()
    assert set(rows) <= set(after) and again.new == len(after) - len(rows)  # 0, but where plans take turns


def test_without_time_nothing_is_measured(tmp_path: Path) -> None:
    found = tuned(tmp_path, seconds=0)
    assert found.known == 0 and found.left > 0 and "give it more --time" in found.show()


def test_a_command_measures(tmp_path: Path) -> None:
    """It gets a program that can be run, and its last number counts."""
    script = tmp_path / "board.py"
    script.write_text(
        "import subprocess, sys\n"
        "assert float(subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True).stdout) > 0\n"
        "print('took 3 runs\\nmedian 1.5e3 cycles')\n"
    )
    found = tuned(tmp_path, runner=f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{}}")
    rows = Database(tmp_path / "t.sqlite").rows()
    assert found.new == len(rows) and {(r.key.machine, r.figure) for r in rows} == {(BOARD, 1500.0)}


@some(1, ("command", "said"), [("false {}", "exit code 1"), ("echo {} -1", "prints"), ("./none {}", "No such")])
def test_a_command_that_fails_is_named(command: str, said: str, tmp_path: Path) -> None:
    found = tuned(tmp_path, runner=command)
    assert found.known == 0 and found.failures and said in found.failures[0]


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="does not get the program"):
        tuned(tmp_path, runner="ssh board")
    target = tmp_path / "mine.toml"
    target.write_text('inherits = "cortex-m4"\nrun = ""\ndescription = "a board"\n')
    with pytest.raises(WrongUse, match=r"cannot be measured here[\s\S]*--runner 'command \{\}'"):
        tuned(tmp_path, Options(target=str(target)))


def test_calls_that_compute_with_free_sizes_are_left_out(tmp_path: Path) -> None:
    """Their operands may have known sizes: a shape is computed of what a run is given."""
    text = "g (float[n,4] x, int64[2] c) => (float[n,4] y, int64[2] z) { s = Shape(x) z = Add(s, c) y = Relu(x) }"
    path = save(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path)
    found = tune(path, replace(SMALL, dims={"n": (1, 3)}), tmp_path / "tuned.sqlite", opened=here)
    assert found.known == 0 and not found.failures


def test_ranks() -> None:
    assert spearman([1, 2, 3], [10, 100, 101]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 2, 3], [1, 2, 2, 9]) == pytest.approx(5 / 6)
    assert spearman([1], [1]) is None and spearman([1, 1], [1, 2]) is None


def test_the_command_merges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    Database(other, make=True).add([row("a"), row("b")])
    for count in (2, 0):
        assert cli.run(["tune", "--merge", str(other), "--database", str(mine)]) == 0
        assert f"merged       {count} measurements of {other} are new" in capsys.readouterr().out
    assert cli.run(["tune"]) == 2 and "there is nothing to do" in capsys.readouterr().err
    assert cli.run(["tune", "net.onnx", "--time", "soon"]) == 2 and "90s, 10m or 2h" in capsys.readouterr().err


def test_calls_of_the_new_plan_are_measured_after_an_interruption(tmp_path: Path) -> None:
    """Where all calls of the plan of models are known, those of the plan of measurements may not be."""
    asked: list[object] = []

    class Noted(tuning.Candidates):
        def of(self, package: Package) -> Iterator[list[Candidate]]:
            asked.append(package)
            return super().of(package)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "Candidates", Noted)
        tuned(tmp_path)
        asked.clear()
        tuned(tmp_path)
    assert len(asked) >= 2
