"""What things take on a target: a file says what differs, and choices follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.base.errors import BadFile
from mccompile.codegen.vector.vector_tiles import best_tile
from mccompile.targets import api
from mccompile.targets.machine import USUAL
from tests.targets.test_api import write


def test_tables_are_merged_along_what_is_inherited(tmp_path: Path) -> None:
    below = write(tmp_path, 'inherits = "cortex-m4"\nmachine = { mac = 7, line = 32 }', "below")
    machine = api.load(write(tmp_path, f'inherits = "{below}"\nmachine = {{ row = 9 }}')).machine
    m4 = api.load("cortex-m4").machine
    assert (machine.mac, machine.line, machine.row, machine.element) == (7, 32, 9, m4.element)
    assert isinstance(machine.line, int) and m4 != USUAL == api.load("generic").machine


@pytest.mark.parametrize("table", ["{ mac = 0 }", '{ mac = "fast" }', "{ mass = 1 }", "3", "{ mac = true }"])
def test_what_is_no_machine_is_refused(table: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="machine must be a table of numbers"):
        api.load(write(tmp_path, f'inherits = "generic"\nmachine = {table}'))


def test_tiles_suit_the_machine(tmp_path: Path) -> None:
    def tile(machine: str) -> object:
        return best_tile(28, 64, 64, 256, api.load(write(tmp_path, f'inherits = "x86-64-v3"\nmachine = {machine}')))

    assert tile("{}") == best_tile(28, 64, 64, 256, api.load("x86-64-v3"))
    assert tile("{ ways = 1, sets = 1 }") != tile("{}")  # fewer points fit the cache
    assert tile("{ latency = 1, loads = 0.5 }") != tile("{}")
