"""The page says what report.json says: its charts are read here as a browser would read them."""

from __future__ import annotations

import json
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.driver import Options
from mccompile.emit.analysis import analysis_of
from mccompile.emit.html_report import html_report, short
from mccompile.targets.api import Pool
from tests import small_models
from tests.small_models import compiled, model, node

SCHEMA = json.loads((data_folder("runtime_c").parent / "mccompile/emit/report.schema.json").read_text())


class Page(HTMLParser):
    """All elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str, kind: str = "") -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag and kind in ("", *(a.get("class") or "").split(" "))]


def chain(count: int) -> Any:
    names = ["x", *(f"layer_{number}/with/a/rather/long/name/Relu:0" for number in range(count - 1)), "y"]
    nodes = [node("Softmax", before, after) for before, after in pairwise(names)]
    return model("chain", nodes, [("x", (2, 8))], [("y", (2, 8))])


@pytest.mark.parametrize(
    "options",
    [Options(), Options(target="cortex-m4"), Options(mem=(Pool("dtcm", 4096, 0), Pool("sram", None, 1)))],
    ids=["generic", "cortex-m4", "pools"],
)
def test_the_memory_map_shows_every_buffer(options: Options) -> None:
    analysis = analysis_of(compiled(small_models.branches(), options))
    page = Page(html_report(analysis))
    blocks = page.all("rect", "block")
    assert sorted(int(b["data-bytes"] or 0) for b in blocks) == sorted(
        b["high"] - b["low"] for b in analysis["buffers"]
    )
    pools = analysis.get("pools", [{"bound_bytes": analysis["arena_bound_bytes"]}])
    assert [int(b["data-bytes"] or 0) for b in page.all("line", "bound")] == [pool["bound_bytes"] for pool in pools]
    assert f"{analysis['arena_bytes']:,}".replace(",", " ") in page.text


MEASURED = {"run_instructions": 5, "function_stack_bytes": {}}


@pytest.mark.parametrize("make", [small_models.branches, small_models.conv, small_models.mlp])
def test_charts_and_table_have_the_numbers_of_the_report(make: Any) -> None:
    package = compiled(make())
    stacks = {function.name: 8 * number for number, function in enumerate(package.plan.functions, 1)}
    analysis = analysis_of(package, {**MEASURED, "function_stack_bytes": stacks})
    page = Page(html_report(analysis))
    keys = ("macs", "ram_bytes", "weights_bytes", "estimated_code_bytes", "stack_bytes", "estimated_cycles")
    shown: list[tuple[int, float]] = [(int(b["data-step"]), float(b["data-value"])) for b in page.all("div", "bar")]
    wanted = [
        sorted(((n, step.get(key) or 0) for n, step in enumerate(analysis["steps"])), key=lambda pair: -pair[1])
        for key in keys
    ]
    assert shown == [pair for bars in wanted for pair in bars if pair[1]]
    widths = [float((a["style"] or "").removeprefix("width: ").rstrip("%")) for a in page.all("i")]
    assert widths == [pytest.approx(100 * v / bars[0][1], abs=0.01) for bars in wanted for _, v in bars if v]
    for step in analysis["steps"]:
        assert all(str(step[key]) in page.text for key in keys[:-1] if key in step)
    assert json.loads(package.files["report.json"])["steps"][0]["macs"] == analysis["steps"][0]["macs"]


def test_the_frontier_and_the_noise_of_tensors_are_shown() -> None:
    points = [
        {"ram_bytes": 900, "flash_bytes": 70, "weights_bytes": 50, "estimated_time": 2.0, "options": "--prefer time"},
        {"ram_bytes": 300, "flash_bytes": 80, "weights_bytes": 50, "estimated_time": 3.0, "options": "--prefer ram"},
    ]
    noise = {"accuracy": None, "signal_to_noise": {"a": 31.25, "b": None}}
    analysis = analysis_of(compiled(small_models.conv()), frontier=points, quantized=noise)
    jsonschema.validate(analysis, SCHEMA)
    page = Page(html_report(analysis))
    assert [c["data-ram"] for c in page.all("circle", "plan")] == ["900", "300"]
    assert float(page.all("circle", "plan")[1]["cx"] or 0) == pytest.approx(1000 / 3, abs=0.1)
    assert {"1.50", "--prefer ram", "31.2", "exact"} <= set(page.text)


def test_what_lies_over_others_is_at_the_peak_itself() -> None:
    nodes = [node("Softmax", "x", "a"), node("MatMul", "a w", "b"), node("Softmax", "b", "y")]
    weights = {"w": np.ones((8, 32), np.float32)}
    report = json.loads(
        compiled(model("d", nodes, [("x", (2, 8))], [("y", (2, 32))], weights)).files["report.json"]
    )
    place = {b["name"]: (b["low"], b["high"]) for b in report["buffers"]}
    assert place["a"] == place["x"], "the first Softmax works in place"
    assert report["at_peak"] == ["a", "b"] == [b["name"] for b in report["buffers"] if b.get("at_peak")]


def test_every_step_is_in_the_table_and_in_the_graph() -> None:
    analysis = analysis_of(compiled(small_models.branches()))
    page = Page(html_report(analysis))
    assert [a["id"] for a in page.all("div", "step")] == [f"step{n}" for n in range(len(analysis["steps"]))]
    kernels = [text for text in page.text if text in {step["kernel"] for step in analysis["steps"]}]
    assert kernels == [step["kernel"] for step in analysis["steps"]]


def test_steps_know_whose_results_they_read() -> None:
    nodes = [
        node("Softmax", "x", "a"),
        node("Sin", "a", "b"),
        node("Concat", "a b", "c", axis=0),
        node("Exp", "c", "y"),
    ]
    steps = analysis_of(compiled(model("d", nodes, [("x", (2, 3))], [("y", (4, 3))]), Options(optimize=False)))["steps"]
    place = {step["name"]: number for number, step in enumerate(steps)}

    def ancestors(number: int) -> set[int]:
        return {number}.union(*(ancestors(before) for before in steps[number]["after"]))

    softmax, sin = place["a/Softmax"], place["b/Sin"]
    assert steps[softmax]["after"] == [] and steps[sin]["after"] == [softmax]
    assert ancestors(place["y/Exp"]) == set(range(len(steps)))


def test_it_needs_nothing_from_elsewhere() -> None:
    text = html_report(analysis_of(compiled(small_models.conv())))
    for tag, attributes in Page(text).elements:
        assert tag != "img" and "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
    assert "http" not in text and "@import" not in text


def test_names_are_text() -> None:
    made = small_models.conv()
    for each in made.graph.node:
        each.name = f"<script>alert('{each.name}')</script>"
    text = html_report(analysis_of(compiled(made)))
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


def test_a_model_of_500_steps_is_less_than_two_megabytes() -> None:
    analysis = analysis_of(compiled(chain(500)))
    assert len(analysis["steps"]) == 500 and len(html_report(analysis)) < 2_000_000


@pytest.mark.parametrize(
    ("name", "shown"),
    [("relu", "relu"), ("a/b" * 20 + "/block_3/conv_2/Relu", "…block_3/conv_2/Relu"), ("x" * 50, "…" + "x" * 35)],
)
def test_long_names_are_shown_from_their_end(name: str, shown: str) -> None:
    assert short(name).endswith(shown.lstrip("…")) and short(name)[0] == shown[0] and len(short(name)) <= 36


@pytest.mark.parametrize("options", [Options(), Options(mem=(Pool("a", None, 0),)), Options(slices=True)])
def test_report_and_analysis_fit_the_schema(options: Options) -> None:
    package = compiled(small_models.branches(), options)
    jsonschema.validate(json.loads(package.files["report.json"]), SCHEMA)
    jsonschema.validate(analysis_of(package, {"run_instructions": 5}), SCHEMA)
    unknown = json.loads(package.files["report.json"]).keys() - SCHEMA["properties"].keys()
    assert not unknown, "the schema does not say what these are"


def shown(page: str, script: str, folder: Path) -> str:
    """What a browser makes of a page in which `script` runs after all else; it has nothing to complain of."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium is installed")
    file = folder / "report.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"))
    quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command = [browser, "--headless", "--no-sandbox", *quiet, f"--user-data-dir={folder}/user"]
    command += ["--enable-logging=stderr", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    return done.stdout


def test_a_browser_shows_it_without_a_complaint(tmp_path: Path) -> None:
    analysis = analysis_of(compiled(small_models.branches()))
    click = "document.querySelectorAll('#steps button')[4].click();"
    read = "document.title = [...document.querySelectorAll('#steps td:nth-child(5)')].map(e => e.textContent).join(' ')"
    page = shown(html_report(analysis), click + read, tmp_path)
    work = sorted((step["macs"] for step in analysis["steps"]), reverse=True)
    assert f"<title>{' '.join(map(str, work))}</title>" in page


def test_a_click_on_500_steps_moves_each_row_once(tmp_path: Path) -> None:
    """The work of a click, counted: times would tell how busy the machine is."""
    counting = """
        const seen = new MutationObserver(() => {});
        seen.observe(document.body, {childList: true, subtree: true});
        const moved = [...document.querySelectorAll('#steps button')].map(button => {
          button.click();
          return seen.takeRecords().reduce((sum, record) => sum + record.addedNodes.length, 0);
        });
        document.title = `${moved.length} ${Math.min(...moved)} ${Math.max(...moved)}`;"""
    analysis = analysis_of(compiled(chain(500)))
    page = shown(html_report(analysis), counting, tmp_path)
    buttons, fewest, most = map(int, page.partition("<title>")[2].partition("<")[0].split())
    assert buttons >= 5 and fewest == most == len(analysis["steps"])
