"""Folders that last as long as an object."""

from __future__ import annotations

import warnings
from pathlib import Path

from mccompile.base.scratch import Scratch


def test_a_folder_goes_with_its_object_without_a_warning() -> None:
    made = Scratch()
    Path(made.name, "file").write_text("kept")
    name = made.name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del made
    assert not Path(name).exists()


def test_a_folder_can_be_ended() -> None:
    made = Scratch()
    made.cleanup()
    assert not Path(made.name).exists()
