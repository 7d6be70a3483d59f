"""No function needs more than 512 bytes of stack, whatever the shapes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import small_models
from tests.small_models import written

LIMIT = 512


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize("name", small_models.ALL)
def test_no_function_needs_much_stack(name: str, tmp_path: Path) -> None:
    folder = written(small_models.ALL[name](), tmp_path)
    sources = [path for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    for source in sources:
        flags = ["-std=c99", "-O2", "-fstack-usage", "-I.", "-Iruntime", "-c", source.name]
        subprocess.run(["gcc", *flags, "-o", f"{source.stem}.o"], cwd=folder, check=True)
    uses = [line.split("\t") for path in folder.glob("*.su") for line in path.read_text().splitlines()]
    assert uses
    assert not [use for use in uses if int(use[1]) > LIMIT or "dynamic" in use[2]]
