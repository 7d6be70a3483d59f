"""Generated C and the runtime compile for systems that are not here, with zig's headers of them: the sizes of `long`
and pointers, and what their headers define, are theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mccompile.driver import Options
from mccompile.toolchain.host_model import host_model_header
from mccompile.toolchain.model_report import read_report
from tests.kernels.harness import STRICT
from tests.small_models import ALL, written
from tests.thorough import some

ZIG = [sys.executable, "-m", "ziglang"] if find_spec("ziglang") else [shutil.which("zig") or ""]
HOST = Path(__file__).parents[2] / "mccompile" / "toolchain" / "host.c"
SYSTEMS = [
    ("x86_64-windows-gnu", "generic", []),
    ("x86_64-windows-gnu", "x86-64-v3", ["-march=x86_64_v3"]),
    ("aarch64-macos", "aarch64", []),
    ("x86_64-macos", "generic", []),
]


@pytest.mark.skipif(ZIG == [""], reason="zig is not installed (pip install ziglang)")
@some(2, ("system", "target", "flags"), SYSTEMS)
@pytest.mark.parametrize("model", ["conv", "text"])
def test_compiles_without_a_warning(model: str, system: str, target: str, flags: list[str], tmp_path: Path) -> None:
    folder = written(ALL[model](), tmp_path, Options(target=target))
    (folder / "mcc_host_model.h").write_text(host_model_header(read_report(folder)))
    command = [*ZIG, "cc", "-target", system, "-std=c99", "-O1", *flags, *STRICT, "-I.", "-Iruntime"]
    sources = [path.name for path in sorted(folder.glob("*.c"))]
    cache = {"ZIG_LOCAL_CACHE_DIR": str(tmp_path / "zig")}
    for source in (*sources, str(HOST)):
        done = subprocess.run(
            [*command, "-c", source], cwd=folder, env=os.environ | cache, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
