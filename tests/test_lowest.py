"""The lowest versions are read from where pip reads the bounds."""

from __future__ import annotations

import pytest

from tests import lowest


def test_every_package_that_is_needed_has_a_bound() -> None:
    assert lowest.bounds().keys() == {"onnx", "numpy", "jinja2", "click", "cffi"}


@pytest.mark.parametrize(
    ("installed", "bound", "same"),
    [("1.19.0", "1.19", True), ("1.19.1", "1.19", False), ("1.190", "1.19", False), ("3.1.0", "3.1.0", True)],
)
def test_a_version_is_the_bound_or_not(installed: str, bound: str, same: bool) -> None:
    assert lowest.is_lowest(installed, bound) == same
