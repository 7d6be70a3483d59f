"""cppcheck's MISRA addon finds nothing in generated C but what docs/misra.md lists with a reason."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from onnx import ModelProto

from embedded.models import quantized, recurrent
from tests.small_models import branches, conv, written

DOCUMENT = Path(__file__).parent.parent / "docs" / "misra.md"
MODELS = (branches, conv, quantized, recurrent)  # most of the runtime, regions, floats and integers


@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="cppcheck is not installed")
@pytest.mark.parametrize("make", MODELS)
def test_what_is_found_is_listed(make: Callable[[], ModelProto], tmp_path: Path) -> None:
    once = ["--max-configs=1"] if make is conv else []  # its headers are those of `quantized`
    found = violations(written(make(), tmp_path), once)
    assert "12.1" in found, "cppcheck said nothing: does it have the addon?"
    assert not found - listed()


def violations(folder: Path, flags: Sequence[str] = ()) -> set[str]:
    """The rules, as numbers, that the C of a model violates; in all configurations of its headers, without `flags`."""
    sources = [path.name for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    command = ["cppcheck", "--std=c99", "--addon=misra", "-q", "-UMCC_CONFIG", "-I.", "-Iruntime", *flags, *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "error:" not in done.stderr, done.stderr
    return set(re.findall(r"\[misra-c2012-([0-9.]+)\]", done.stderr))


def listed() -> set[str]:
    return set(re.findall(r"^\| ([0-9.]+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
