"""The fixture `mccompile` of pytest, for projects that have models (docs/ci.md). The only module that imports pytest,
which alone imports it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .testing import Models


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mccompile", "models that mccompile compiles")
    group.addoption("--golden", metavar="DIR", help="Compare models with what they gave before, or write it.")
    group.addoption("--update-golden", action="store_true", help="Write what is expected anew.")


class Fixture:
    """`assert_matches` as a test calls it: what is wrong is the test's failure, without a traceback."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def assert_matches(self, model: str | Path, /, **keywords: Any) -> None:
        __tracebackhide__ = True
        from ..base.errors import MccError

        said = ""
        try:
            self._models.assert_matches(model, **keywords)
        except MccError as error:
            said = str(error)
        if said:  # outside of the handler, whose exception would be shown as well
            pytest.fail(said, pytrace=False)


@pytest.fixture
def mccompile(request: pytest.FixtureRequest) -> Fixture:
    """Holds models to what they gave and what they may cost: `mccompile.assert_matches("kws.onnx", ram="64K")`. Files
    lie beside the test."""
    from .testing import Models

    golden = request.config.getoption("--golden")
    top = request.config.invocation_params.dir / golden if golden else None
    return Fixture(Models(request.path.parent, top, request.config.getoption("--update-golden")))
