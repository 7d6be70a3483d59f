"""`mccompile studio`: what is named becomes one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from mccompile import cli
from mccompile.measure.studio import counted
from mccompile.toolchain.tools import missing
from tests import small_models
from tests.small_models import save


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(small_models.conv(), tmp_path_factory.mktemp("studio"))


def page_data(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    return found


def test_targets_stand_side_by_side(conv: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--target", "generic,cortex-m4", "--no-measure", "--html", str(page)]) == 0
    found = page_data(page)
    assert [build["target"] for build in found["builds"]] == ["generic", "cortex-m4"]
    assert found["pairs"] == [[[0, 1, 0, 0], [0, 1, 1, 1]]]
    assert all("code_bytes" not in step and "us" not in step for build in found["builds"] for step in build["steps"])


def test_a_page_for_a_folder_lies_in_it(conv: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for given, page in ((f"{tmp_path}/new/", "new/studio.html"), (f"{tmp_path}/there", "there/studio.html")):
        assert cli.run(["studio", str(conv), "--no-measure", "-o", given]) == 0
        assert page_data(tmp_path / page)["builds"]
    assert cli.run(["analyze", str(conv), "--html", f"{tmp_path}/there"]) == 0
    assert page_data(tmp_path / "there" / "report.html")["builds"]


def test_measured_steps_and_plans_have_time_and_code(conv: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--plans", "-o", str(page)]) == 0
    (build,) = page_data(page)["builds"]
    assert all(step["us"] >= 0 and step["code_bytes"] > 0 for step in build["steps"])
    assert build["frontier"] and all(plan["us"] > 0 for plan in build["frontier"])


def test_the_plan_of_the_page_is_among_the_plans(conv: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ["--plans", "--no-measure", "-O0", "--prefer", "flash"]  # others are at least as good
    assert cli.run(["studio", str(conv), *given, "-o", str(page)]) == 0
    (build,) = page_data(page)["builds"]
    (shown,) = [plan for plan in build["frontier"] if plan.get("shown")]
    assert shown["ram_bytes"] == build["figures"]["arena_bytes"] and "--prefer" in shown["options"]


def test_what_is_over_the_budget_says_how_small_it_gets(tmp_path: Path) -> None:
    nodes = [small_models.node("Conv", before, after) for before, after in (("x w", "a"), ("a w", "y"))]
    shape = (1, 4, 96, 96)
    weights = {"w": np.ones((4, 4, 1, 1), np.float32)}
    large = save(small_models.model("large", nodes, [("x", shape)], [("y", shape)], weights), tmp_path)
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(large), "--no-measure", "--budget", "ram=1M", "-o", str(page)]) == 0
    (build,) = page_data(page)["builds"]
    assert page_data(page)["budget"] == 1 << 20
    assert build["smallest"]["options"] == "--budget ram=min"
    assert build["smallest"]["ram_bytes"] <= build["figures"]["arena_bytes"]


def test_the_budget_of_a_page_is_that_of_the_board(conv: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--no-measure", "--board", "stm32f103c8", "-o", str(page)]) == 0
    assert page_data(page)["budget"] == 20 << 10


def test_instructions_of_steps_are_those_of_the_run(conv: Path, tmp_path: Path) -> None:
    if missing(("arm-none-eabi-gcc", "qemu-system-arm")):
        pytest.skip("needs a cross-compiler and its emulator")
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--target", "cortex-m4", "-o", str(page)]) == 0
    (build,) = page_data(page)["builds"]
    counted = [step["instructions"] for step in build["steps"]]
    whole = build["figures"]["run_instructions"]
    assert all(counted) and 0.95 * whole < sum(counted) <= whole


def test_an_older_report_says_what_changed(conv: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "page.html"
    assert cli.run([str(conv), "-o", str(out), "-O0"]) == 0
    assert cli.run(["studio", str(conv), "--no-measure", "--since", str(out), "-o", str(page)]) == 0
    since = page_data(page)["since"]
    before = json.loads((out / "report.json").read_text())
    assert {"what": "RAM: arena, bytes", "before": before["arena_bytes"]}.items() <= since["figures"][0].items()
    assert since["steps"] and all(step["step"] < 2 for step in since["steps"] if "step" in step)


def test_an_older_report_is_compared_with_the_build_of_its_model(conv: Path, tmp_path: Path) -> None:
    out, page, other = tmp_path / "out", tmp_path / "page.html", str(save(small_models.mlp(), tmp_path))
    assert cli.run([str(conv), "-o", str(out)]) == 0
    assert cli.run(["studio", other, str(conv), "--no-measure", "--since", str(out), "-o", str(page)]) == 0
    since = page_data(page)["since"]
    assert since["build"] == 1 and not since["steps"]
    assert all(figure["before"] == figure["after"] for figure in since["figures"])
    two = "cortex-m0,generic"
    assert cli.run(["studio", str(conv), "--target", two, "--no-measure", "--since", str(out), "-o", str(page)]) == 0
    assert page_data(page)["since"]["build"] == 1


def test_integers_are_heard_against_floats(conv: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    samples, int8, page = tmp_path / "samples.npz", tmp_path / "int8.onnx", tmp_path / "page.html"
    shape = small_models.conv().graph.input[0].type.tensor_type.shape
    drawn = np.random.default_rng(0).standard_normal((8, *(dim.dim_value for dim in shape.dim))).astype(np.float32)
    np.savez(samples, x=drawn)
    assert cli.run(["quantize", str(conv), "--data", str(samples), "-o", str(int8)]) == 0
    assert cli.run(["studio", str(conv), str(int8), "--no-measure", "--data", str(samples), "-o", str(page)]) == 0
    plain, integers = page_data(page)["builds"]
    assert not any("signal_to_noise" in step for step in plain["steps"])
    heard = [step["signal_to_noise"] for step in integers["steps"] if "signal_to_noise" in step]
    assert heard and all(value == "exact" or value > 15 for value in heard)
    assert integers["heard"] == "all 8 samples of samples.npz"


@pytest.mark.parametrize(
    ("count", "said"), [(1, "the only sample"), (9, "all 9 samples"), (1000, "the first 256 of 1,000 samples")]
)
def test_how_many_samples_are_heard_is_said(count: int, said: str) -> None:
    assert counted(count) == said


def test_another_network_is_no_float_form(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    other, page = save(small_models.branches(), tmp_path), tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--float", str(other), "--no-measure", "-o", str(page)]) == 4
    said = capsys.readouterr().err
    assert "branches.onnx takes x f32[1,3,4,5]; conv.onnx takes x f32[1,2,6,6]" in said and not page.exists()
    assert cli.run(["studio", str(conv), str(other), "--no-measure", "-o", str(page)]) == 0  # side by side they may be
    assert not capsys.readouterr().err


def test_a_network_of_the_same_inputs_is_told_to_be_another(
    conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    other = tmp_path / "other.onnx"
    text = "g (float[1,2,6,6] x) => (float[1,2,6,6] y) { y = Tanh(x) }"
    other.write_bytes(parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {text}').SerializeToString())
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--float", str(other), "--no-measure", "-o", str(page)]) == 0
    assert "the error against" in capsys.readouterr().err


def test_what_is_not_installed_is_said(
    conv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    page = tmp_path / "page.html"
    assert cli.run(["studio", str(conv), "--target", "cortex-m4", "-o", str(page)]) == 0
    assert "arm-none-eabi-gcc" in page_data(page)["without"][0] and "was not measured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "CONV"], "would be lost"),
        (["--target", ",".join(["generic"] * 9)], "at most 8"),
        (["--since", "missing.json", "--no-measure"], "cannot read missing.json"),
    ],
)
def test_what_cannot_be_is_refused(
    conv: Path, arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(conv) if argument == "CONV" else argument for argument in arguments]
    given += [] if "--html" in given else ["-o", str(tmp_path / "page.html")]
    assert cli.run(["studio", str(conv), *given]) in (2, 4) and said in capsys.readouterr().err
