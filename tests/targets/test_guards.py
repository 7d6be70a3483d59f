"""The guard of every target holds where its own compiler makes code for it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mccompile.targets import api


@pytest.mark.parametrize("name", api.names())
def test_it_holds_for_its_own_compiler(name: str) -> None:
    target = api.load(name)
    assert target.guard
    if shutil.which(target.compiler) is None:
        pytest.skip(f"{target.compiler} is not installed")
    text = f"#if {target.guard}\n#else\n#error no\n#endif\n"
    command = [target.compiler, *target.cflags, "-E", "-x", "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
