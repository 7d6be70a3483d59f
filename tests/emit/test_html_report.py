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


def test_a_browser_shows_it_without_a_complaint(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium is installed")
    page = tmp_path / "report.html"
    sorting = "<script>document.querySelectorAll('#steps button')[4].click();document.title='sorted'</script></body>"
    page.write_text(html_report(analysis_of(compiled(small_models.branches()))).replace("</body>", sorting))
    quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        *quiet,
        f"--user-data-dir={tmp_path}/user",
        "--enable-logging=stderr",
    ]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in done.stderr and "<title>sorted</title>" in done.stdout
    rows = [text for text in done.stdout.split("<tr>") if "<td" in text]
    work = [int(row.split('<td class="n">')[2].split("<")[0]) for row in rows if row.count('<td class="n">') == 5]
    assert work and work == sorted(work, reverse=True)
