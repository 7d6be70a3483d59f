"""Pages that follow from code hold what is in the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from mccompile.cli.commands import commands
from mccompile.targets import api
from tests.docs.pages import TOP, script


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return script("generate")


def test_the_command_line_has_every_command_and_option_once(generate: ModuleType) -> None:
    page = generate.command_line()
    for name, command in commands.commands.items():
        assert page.count(f"\n## {name}\n") == 1
        for parameter in command.params:
            for option in (option for option in parameter.opts if option.startswith("-")):
                assert re.search(rf"\n\| `(-\w, )?{option}[ `,]", page), f"{name} {option}"
    assert page.count("| `--state ") == 1
    assert "| `--prefer ram\\|time\\|flash\\|balanced` |" in page


def test_targets_are_all_there_and_say_nothing_of_this_machine(generate: ModuleType) -> None:
    page = generate.targets()
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(api.names())
    native = page.partition("## native\n")[2].partition("## ")[0]
    assert "compiler" not in native and "follow from the machine" in native
    assert "-mcpu=cortex-m4" in page.partition("## cortex-m4\n")[2].partition("## ")[0]


def test_the_report_has_every_field_of_the_schema(generate: ModuleType) -> None:
    schema = json.loads((TOP / "mccompile/emit/report.schema.json").read_text(encoding="utf-8"))
    page = generate.report()
    for name in schema["properties"]:
        assert f"| `{name}` |" in page
    assert "| `inputs` | array of [tensor](#tensor) |" in page and "\n## tensor\n" in page


def test_links_lead_to_pages_or_become_text(generate: ModuleType) -> None:
    text = "[a](docs/memory.md#rows) [the blob](runtime_c/SPEC.md) [demo](examples/digits) [x](https://example.org)"
    assert generate.moved(text, "DESIGN.md", "project/design.md") == (
        "[a](../memory.md#rows) [the blob](../reference/blob.md) demo (`examples/digits`) [x](https://example.org)"
    )
    assert generate.moved("[a](misra.md)", "docs/embedded.md", "embedded.md") == "[a](misra.md)"


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("stm32", "boards.md"),
        ("nucleo", "boards.md"),
        ("esp32", "deploy/esp_idf.md"),
        ("zephyr", "deploy/zephyr.md"),
        ("west", "deploy/zephyr.md"),
        ("keil", "deploy/keil.md"),
        ("cubeide", "deploy/cubeide.md"),
        ("platformio", "deploy/platformio.md"),
        ("mlperf", "checking.md"),
        ("microphone", "boards.md"),
    ],
)
def test_a_search_finds_the_page_of_a_board_s_tools(word: str, page: str) -> None:
    """As the site's search does it: words of the text, beginnings of longer ones among them."""
    text = (TOP / "docs" / page).read_text(encoding="utf-8").lower()
    assert re.search(rf"(?<![a-z]){word}", text)
    assert Path(page).name in (TOP / "mkdocs.yml").read_text(encoding="utf-8")
