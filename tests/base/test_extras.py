"""What is told to be installed: names that an index has."""

from __future__ import annotations

import pytest

from mccompile.base import extras

REQUIREMENTS = ["onnx>=1.16", 'skops>=0.13; extra == "sklearn"', "skl2onnx>=1.18; extra == 'sklearn'"]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda name: REQUIREMENTS)


def test_packages_of_extras_are_declared() -> None:
    assert extras.declared() == {"sklearn": ["skops", "skl2onnx"]}


def test_only_what_is_absent_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "version", lambda package: "1" if package == "skops" else "")
    assert extras.install("sklearn") == "pip install skl2onnx"


def test_all_are_named_where_all_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "version", lambda package: "1")
    assert extras.install("sklearn") == "pip install skops skl2onnx"
