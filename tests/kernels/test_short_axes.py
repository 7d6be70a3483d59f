"""Portable kernels over axes of one element are compiled without warnings: no local is declared that nothing reads.
embedded/test_kernels.py asks the same of all others."""

from __future__ import annotations

from pathlib import Path

from mccompile.targets import api as targets
from tests.kernels.short_axes import warnings_of_short_axes
from tests.kernels.test_matrix import IDS_OF_PORTABLE, KERNELS, WARNING_FREE
from tests.thorough import some


@some(28, "id", IDS_OF_PORTABLE)
def test_short_axes_are_compiled_without_warnings(id: str, tmp_path: Path) -> None:
    compiler = ["gcc", *WARNING_FREE["clang"]]
    assert not warnings_of_short_axes(KERNELS[id], targets.load("generic"), compiler, tmp_path)
