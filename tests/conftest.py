"""`pytest --update-golden` rewrites the expected files of tests/golden, to be reviewed with git diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected files of tests/golden")
