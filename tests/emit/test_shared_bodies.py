"""Functions that differ in sizes only call one body, which is printed once: right, and without a warning."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mccompile.driver import Options
from mccompile.measure.correctness import check
from tests.emit.test_alike_functions import separable
from tests.emit.test_generated_c import COMPILERS
from tests.small_models import compiled, save

TIME = Options(target="generic", prefer="time")


def test_functions_of_other_sizes_call_one_body_with_their_own(tmp_path: Path) -> None:
    text = compiled(separable(), TIME).files["separable_kernels.c"].decode()
    bodies = re.findall(r"^MCC_PART void (\w+_of_sizes\w*)\(", text, re.MULTILINE)
    calls = {name: re.findall(rf"^    {name}\((.*?)\);", text, re.MULTILINE | re.DOTALL) for name in bodies}
    assert bodies and all(len(set(arguments)) > 1 for arguments in calls.values())
    assert check(save(separable(), tmp_path), TIME, runs=1).ok


def test_sizes_are_called_after_what_they_are() -> None:
    text = compiled(separable(), TIME).files["separable_kernels.c"].decode()
    assert re.search(r"mcc_index \w+_end\b", text) and not re.search(r"mcc_index size\d", text)


def test_shapes_stand_right_above_the_function_that_has_them() -> None:
    text = compiled(separable(), TIME).files["separable_kernels.c"].decode()
    behind = re.findall(r"^ \* for .*?\*/\n(\w+)", text, re.MULTILINE | re.DOTALL)
    assert behind and "MCC_PART" not in behind
    assert re.search(r"^/\* Called by separable_\w+ and \d more\. \*/\nMCC_PART", text, re.MULTILINE)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_warning(compiler: str, tmp_path: Path) -> None:
    compiled(separable(), TIME).write(tmp_path)
    command = [compiler, *COMPILERS[compiler], "-I.", "-Iruntime", "-c", "separable_kernels.c", "-o", "object.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr[:3000]) == (0, "")
