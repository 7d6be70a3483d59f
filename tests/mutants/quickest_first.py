"""A plugin of pytest: the quickest files first, and in each the quickest tests, as an earlier run has timed them.

A mutant dies at the first test that fails, and most of them at many.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

TIMES = "MUTANTS_TIMES"  # the variable of the environment that names the file

_known: dict[str, float] = {}
_found: Counter[str] = Counter()


def pytest_configure() -> None:
    file = Path(os.environ[TIMES])
    if file.is_file():
        _known.update(json.loads(file.read_text()))


@pytest.hookimpl(tryfirst=True)  # pytest then keeps those together that share a fixture
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not _known:
        return
    files: Counter[Path] = Counter()
    for item in items:
        files[item.path] += _known.get(item.nodeid, 0.0)
    items.sort(key=lambda item: (files[item.path], str(item.path), _known.get(item.nodeid, 0.0)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _found[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    file = Path(os.environ[TIMES])
    if not file.is_file():
        file.write_text(json.dumps(_found))
