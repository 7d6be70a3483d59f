"""docs/misra.md says what cppcheck's MISRA addon finds in generated C, and where."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto

from embedded.misra import BY_HAND, MODELS, PAGE, Row, differences, found_on, page_rows, page_with, violations, written
from mccompile.targets import api
from tests.small_models import conv
from tests.small_models import written as written_code

ROWS = page_rows(PAGE.read_text(encoding="utf-8"))
CPPCHECK = pytest.mark.skipif(shutil.which("cppcheck") is None, reason="cppcheck is not installed")


@CPPCHECK
@pytest.mark.parametrize("make", MODELS)
def test_what_any_configuration_has_is_listed(make: Callable[[], ModelProto], tmp_path: Path) -> None:
    once = ["--max-configs=1"] if make is conv else []  # its headers are those of `quantized`
    found = violations(written_code(make(), tmp_path), once)
    assert "12.1" in found, "cppcheck said nothing: does it have the addon?"
    assert not found - {row.rule for row in ROWS}


@CPPCHECK
def test_the_page_says_where_rules_are_violated() -> None:
    """The rest of the targets: `python -m embedded.misra`."""
    cores = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
    names = [name for name in cores if shutil.which(api.load(name).compiler)]
    assert differences(ROWS, found_on(names)) == []


def test_other_rules_than_those_of_the_page_are_told() -> None:
    rows = [Row("2.3", "advisory", "runtime", "all", "-"), Row("7.2", "required", "runtime", "a", "-")]
    assert differences(rows, {"a": {"2.3", "7.2"}, "b": {"2.3"}}) == []
    told = differences(rows, {"a": {"7.2"}, "b": {"2.3", "7.2", "9.1"}})
    assert told == [
        "a: rule 2.3 is listed, and not found",
        "b: rule 7.2 is found, and not listed",
        "b: rule 9.1 is found, and not listed",
    ]


def test_rows_get_their_targets_and_go_where_nothing_is_found() -> None:
    rows = [Row(rule, "advisory", "runtime", "all", "-") for rule in ("2.3", "7.2", "9.1", *BY_HAND)]
    found = written(rows, {"a": {"2.3", "7.2"}, "b": {"2.3"}})
    assert [(row.rule, row.targets) for row in found] == [("2.3", "all"), ("7.2", "a"), ("15.6", "all")]
    assert page_rows(page_with("\n".join(["head", *map(str, rows), "end", ""]), found)) == found
