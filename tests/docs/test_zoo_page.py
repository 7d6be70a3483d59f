"""The page of networks says what the tables have recorded, and every network has an origin and a command."""

from __future__ import annotations

import json
from dataclasses import replace

from benchmarks import zoo
from embedded import table


def written() -> str:
    return zoo.PAGE.read_text(encoding="utf-8").partition(f"{zoo.BEGIN}\n\n")[2].partition(f"\n\n{zoo.END}")[0]


def test_the_page_is_what_the_tables_make() -> None:
    assert written() == zoo.page(zoo.entries(), zoo.Recorded()), "run: python -m benchmarks.zoo"


def test_forty_networks_name_where_they_come_from() -> None:
    networks = zoo.entries()
    assert len({entry.name for entry in networks}) == len(networks) >= 40
    for entry in networks:
        assert entry.origin.startswith("https://") or (zoo.TOP / entry.origin).is_file(), entry.name
        assert f"| {entry.name} |" in written()


def test_each_row_has_the_command_that_prints_it() -> None:
    recorded = json.loads(table.FIGURES.read_text(encoding="utf-8"))["cortex-m0 flash vww96_int8"]
    entry = next(entry for entry in zoo.entries() if entry.name == "vww96_int8")
    line = zoo.Row(recorded, "flash").line(entry, "cortex-m0")
    assert f"| {recorded['run_instructions']:,} | {recorded['arena_bytes']:,} |" in line
    assert line.endswith("| `mccompile bench vww96_int8.onnx --target cortex-m0 --prefer flash` |")


def test_what_is_not_measured_is_left_empty() -> None:
    entry = replace(zoo.entries()[0], name="large")
    assert "| large |  | 5 | 7 |  |" in zoo.Row({"macs": 1, "arena_bytes": 5, "weights_bytes": 7}).line(entry, "wasm32")
