"""clang's -Weverything says nothing of generated C but what is listed here, with the reason why it stands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import small_models
from tests.small_models import written

MODELS = {**small_models.ALL, "unpooled": small_models.unpooled}
ALLOWED = {
    "declaration-after-statement": "C99 has them where they are needed; only C90 does not",
    "unused-macros": "a model without weights, or without an arena, has no use for one of the two macros of addresses",
    "padded": "the model struct may have padding: it is never copied out of memory",
    "unsafe-buffer-usage": "newer clang: C has no other buffers than pointers",
    "float-equal": "operators of ONNX compare floats",
    "used-but-marked-unused": "functions of the runtime are marked as such that may be unused",
    "switch-default": "newer clang: mcc_status_text names every status, so that a new one is a warning",
    "pre-c11-compat": "newer clang",
    "unknown-warning-option": "older clang does not know the ones above",
}


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
@pytest.mark.parametrize("name", MODELS)
def test_nothing_else_is_said(name: str, tmp_path: Path) -> None:
    folder = written(MODELS[name](), tmp_path)
    sources = [str(path) for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    flags = [
        "-std=c99",
        "-O1",
        "-Weverything",
        "-Werror",
        *(f"-Wno-{warning}" for warning in sorted(ALLOWED, reverse=True)),
    ]
    command = ["clang", *flags, f"-I{folder}", f"-I{folder}/runtime", "-fsyntax-only", *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
