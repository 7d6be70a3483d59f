"""What pages repeat of each other, and what they name, is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from mccompile.cli.commands import commands
from tests.docs.pages import TOP

DOCS = TOP / "docs"
PAGES = sorted([TOP / "README.md", TOP / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
NETWORKS = {
    "keyword spotting": "kws_dscnn_int8",
    "image classification": "ic_resnet8_int8",
    "visual wake words": "vww96_int8",
}


def name(page: Path) -> str:
    return page.relative_to(TOP).as_posix()


def cost(target: str, network: str) -> list[str]:
    """The figures of a network in the tables of embedded.md: instructions, ..., weights, arena, stack."""
    table = (DOCS / "embedded.md").read_text(encoding="utf-8").partition(f"### {target}, `--prefer time`")[2]
    (row,) = re.findall(rf"(?m)^{network} +(.*)$", table.partition("###")[0])
    return str(row).split()


@pytest.mark.parametrize("title", NETWORKS)
def test_the_comparison_has_the_figures_of_the_tables(title: str) -> None:
    (row,) = re.findall(rf"(?m)^\| {title} \|(.*)$", (DOCS / "comparison.md").read_text(encoding="utf-8"))
    cells = [cell.strip() for cell in row.split("|")]
    m4, m55 = cost("cortex-m4", NETWORKS[title]), cost("cortex-m55", NETWORKS[title])
    tables = (m4[0], m55[0], m4[-2])
    assert (cells[0], cells[2], cells[4]) == tables, "the tables of embedded.md changed: say the same in comparison.md"


def test_the_first_page_has_figures_of_other_pages() -> None:
    """Rows on the Cortex-M4 are those of the comparison, the others those of the page on speed."""
    pages = {page: (DOCS / f"{page}.md").read_text(encoding="utf-8") for page in ("index", "comparison", "speed")}
    found = re.findall(r"(?m)^\| ([^|]+) \| ([\w-]+) \| ([\d,.]+) \w+ \| \w.* \| ([\d,.]+) \|$", pages["index"])
    assert {core for _, core, _, _ in found} == {"Cortex-M4", "x86-64"}
    for network, core, ours, theirs in found:
        page = pages["comparison" if core == "Cortex-M4" else "speed"]
        (row,) = re.findall(rf"(?m)^\| {network.removesuffix(', int8')} \|(.*)$", page)
        assert [cell.strip() for cell in row.split("|")][:2] == [ours, theirs], f"{network}: another page says {row}"


def test_the_comparison_has_the_ratios_of_the_page_on_speed() -> None:
    speed = (
        (DOCS / "speed.md").read_text(encoding="utf-8").partition("## Beside other libraries")[2].partition("\n##")[0]
    )
    ratios = {
        row.split("|")[1].strip(): float(row.split("|")[-2]) for row in re.findall(r"(?m)^\| \w+ \|.*\d \|$", speed)
    }
    integers = [ratio for network, ratio in ratios.items() if network.endswith("_int8")]
    floats = [ratio for network, ratio in ratios.items() if not network.endswith("_int8")]
    page = " ".join((DOCS / "comparison.md").read_text(encoding="utf-8").split())
    assert f"{min(floats):.2f} to {max(floats):.2f} of the time" in page and f"on {len(floats)} float networks" in page
    assert f"{min(integers):.2f} to {max(integers):.2f} on three int8 ones" in page and len(integers) == 3


def test_the_comparison_has_the_cases_of_the_page_on_operators() -> None:
    operators = (DOCS / "operators.md").read_text(encoding="utf-8")
    found = re.search(r"of the (\d+) cases that ONNX collects\s+for backends (\d+) pass", operators)
    assert found is not None
    assert f"{found[2]} of {found[1]}" in (DOCS / "comparison.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_and_make_targets_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    modules = {module.rstrip(".") for module in re.findall(r"python -m ((?:benchmarks|embedded|tests)[\w.]*)", text)}
    assert not [module for module in modules if importlib.util.find_spec(module) is None]
    known = set(re.findall(r"(?m)^([a-z-]+):", (TOP / "Makefile").read_text(encoding="utf-8")))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= known | {"run"}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_of_commands_that_a_page_shows_exist(page: Path) -> None:
    text = re.sub(r"\\\n", " ", page.read_text(encoding="utf-8"))
    params = [p for command in commands.commands.values() for p in command.params]
    known = {option for p in params for option in (*p.opts, *p.secondary_opts)}
    shown = re.findall(r"(?m)(?:^\$? ?|`)mccompile ([^`#|\n]*)", text)
    used = {option for line in shown for option in re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", line)}
    assert used <= known | {"--help", "--version"}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_table_is_broken(page: Path) -> None:
    """A row that goes on in the next line ends the table, and what is not a row behind it becomes one."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    assert not re.findall(r"(?m)^\|.*\n(?!\||<!--|\s*$).+", text)
