"""mccompile diff: figures and steps of two compiled models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile import cli
from mccompile.base.errors import BadFile
from mccompile.driver import Options
from mccompile.measure.difference import difference
from mccompile.targets.api import Prefer
from tests import small_models
from tests.small_models import written


def reports(tmp_path: Path, changes: dict[str, Any]) -> tuple[Path, Path]:
    """Two output folders of one model; the second with other options."""
    before = written(small_models.conv(), tmp_path / "a", Options())
    return before, written(small_models.conv(), tmp_path / "b", Options(**changes))


def test_the_same_has_no_changes(tmp_path: Path) -> None:
    found = difference(*reports(tmp_path, {}))
    assert not found.has_changes and "no steps changed" in found.show()
    assert {change.share for change in found.figures} == {"same"}


def test_figures_and_steps_that_changed_are_named(tmp_path: Path) -> None:
    before, after = reports(tmp_path, {"optimize": False})
    found = difference(before, after)
    arena = next(change for change in found.figures if change.what.startswith("RAM: arena"))
    sizes = [json.loads((folder / "report.json").read_text())["arena_bytes"] for folder in (before, after)]
    assert [arena.before, arena.after] == sizes and found.has_changes
    assert {"new"} == {change.split(",")[0] for _, change in found.steps}
    assert f"| RAM: arena, bytes | {sizes[0]} | {sizes[1]} |" in found.markdown()
    assert found.as_dict()["figures"][0]["after"] == sizes[1]


def test_options_that_changed_are_told(tmp_path: Path) -> None:
    before, after = reports(tmp_path, {"optimize": False, "prefer": Prefer.RAM})
    assert set(difference(before, after).options) == {"now -O0", "now --prefer ram"}
    assert set(difference(after, before).options) == {"no longer -O0", "no longer --prefer ram"}
    found = difference(before, after)
    assert "options  now -O0" in found.show() and "- options  now --prefer ram" in found.markdown()
    assert found.as_dict()["options"] == [*found.options]


def test_what_a_budget_sets_inside_is_no_option(tmp_path: Path) -> None:
    assert difference(*reports(tmp_path, {"enough": 4096})).options == ()


def test_a_folder_or_its_report_or_a_bench(tmp_path: Path) -> None:
    before, after = reports(tmp_path, {})
    assert not difference(before / "report.json", after).has_changes
    for name, instructions in (("one", 1000), ("two", 1100)):
        figures = {"model": "m", "target": "cortex-m4", "run_instructions": instructions, "steps": 3}
        (tmp_path / f"{name}.json").write_text(json.dumps(figures))
    (change,) = difference(tmp_path / "one.json", tmp_path / "two.json").figures
    assert (change.what, change.share) == ("instructions per run", "+10.0%")


def test_steps_that_a_file_does_not_list_are_not_called_new(tmp_path: Path) -> None:
    _, after = reports(tmp_path, {})
    (tmp_path / "bench.json").write_text(json.dumps({"model": "m", "target": "generic", "steps": 3}))
    found = difference(tmp_path / "bench.json", after)
    assert not found.steps and "not both files list them (3 before, 2 after)" in found.show()
    assert "not compared" in found.markdown() and "not compared" in found.as_dict()["no_steps"]


def test_accuracy_of_two_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    weights = {"w": rng.standard_normal((8, 3)).astype(np.float32)}
    nodes = [small_models.node("MatMul", "x w", "y")]
    made = small_models.model("one", nodes, [("x", (1, 8))], [("y", (1, 3))], weights)
    model, samples = small_models.save(made, tmp_path), tmp_path / "s.npz"
    np.savez(samples, x=rng.standard_normal((4, 1, 8)).astype(np.float32), labels=np.arange(4) % 3)
    for recipe in ("minmax", "entropy"):
        result = str(tmp_path / "q.onnx")
        arguments = ["quantize", str(model), "--data", str(samples), "-o", result, "--calibrate", recipe, "--json"]
        assert cli.run(arguments) == 0
        (tmp_path / f"{recipe}.json").write_text(capsys.readouterr().out)
    found = difference(tmp_path / "minmax.json", tmp_path / "entropy.json")
    accuracy = next(change for change in found.figures if change.what == "accuracy, %")
    assert accuracy.before == 100 * json.loads((tmp_path / "minmax.json").read_text())["accuracy"]["after"]
    assert "| accuracy, % |" in found.markdown()


def test_names_do_not_break_the_table(tmp_path: Path) -> None:
    for name, steps in (("one", []), ("two", [{"name": "a|b\n<i>", "kernel": "map/x__c", "macs": 0}])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"model": "m", "target": "t", "steps": steps}))
    assert "| a\\|b &lt;i> | new, map/x__c |" in difference(tmp_path / "one.json", tmp_path / "two.json").markdown()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(None, "cannot read"), ("{", "is not JSON"), ("[1]", "not a report"), ("{}", "not a report")],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str | None, complaint: str) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    with pytest.raises(BadFile, match=complaint):
        difference(tmp_path, tmp_path)


def test_layers_of_floats_and_integers_are_the_same_steps(tmp_path: Path) -> None:
    def report(name: str, *steps: str) -> Path:
        path = tmp_path / name
        listed = [{"name": step, "kernel": name, "macs": 1} for step in steps]
        path.write_text(json.dumps({"model": "m", "target": "generic", "steps": listed}))
        return path

    found = difference(
        report("f32", "c0 + r0", "pool", "fc"),
        report("i8", "x_QuantizeLinear", "w_DequantizeLinear + c0 + y_QuantizeLinear", "pool"),
    )
    assert dict(found.steps) == {
        "c0 + r0": "kernel f32 → i8",
        "pool": "kernel f32 → i8",
        "fc": "gone",
        "x_QuantizeLinear": "new, i8",
    }
