"""What the runtime itself costs on a Cortex-M4, and that it costs only when it is called."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from embedded.models import path_of
from mccompile.base.discovery import data_folder
from mccompile.driver import Options, compile
from mccompile.targets import api
from mccompile.toolchain.emulate import Emulated
from tests.small_models import conv, written

CODE, TEXTS = 700, 1300  # bytes of flash; texts of statuses are linked where they are printed
M4 = api.load("cortex-m4")
RUNTIME = """#include "mcc_init.h"
mcc_status open_blob(const void *blob, size_t bytes, const uint8_t *identity, const uint8_t **data);
mcc_status check(void *arena, size_t bytes, size_t need, size_t align);
const char *text(mcc_status status);
mcc_status open_blob(const void *blob, size_t bytes, const uint8_t *identity, const uint8_t **data)
{
    return mcc_blob_open(blob, bytes, identity, 64u, 16u, data);
}
mcc_status check(void *arena, size_t bytes, size_t need, size_t align)
{
    return mcc_check_arena(arena, bytes, need, align);
}
const char *text(mcc_status status) { return mcc_status_text(status); }
"""


def sections(object_file: Path) -> dict[str, int]:
    said = subprocess.run(["arm-none-eabi-size", "-A", str(object_file)], capture_output=True, text=True, check=True)
    return {name: int(size) for name, size in re.findall(r"^(\.[\w.]+)\s+(\d+)", said.stdout, re.MULTILINE)}


@pytest.mark.parametrize("level", ["-O2", "-Os"])
def test_the_runtime_alone_is_small(level: str, tmp_path: Path) -> None:
    source, made = tmp_path / "runtime.c", tmp_path / "runtime.o"
    source.write_text(RUNTIME)
    flags = [flag for flag in M4.cflags if not flag.startswith("-O")]
    include = f"-I{data_folder('runtime_c') / 'include'}"
    subprocess.run([M4.compiler, *flags, level, include, "-c", str(source), "-o", str(made)], check=True)
    flash = {name: size for name, size in sections(made).items() if name.startswith((".text", ".rodata", ".data"))}
    texts = sum(size for name, size in flash.items() if ".str" in name)
    assert 0 < texts < TEXTS, flash
    assert 0 < sum(flash.values()) - texts < CODE, flash


def test_nothing_runs_before_init_and_nothing_is_kept_outside_of_the_model(tmp_path: Path) -> None:
    folder = written(conv(), tmp_path, Options(target="cortex-m4"))
    for source in sorted(path for path in folder.glob("*.c") if path.name != "main.c"):
        made = tmp_path / f"{source.stem}.o"
        include = f"-I{folder / 'runtime'}"
        subprocess.run([M4.compiler, *M4.cflags, include, "-c", str(source), "-o", str(made)], check=True)
        kept = {name: size for name, size in sections(made).items() if re.match(r"\.(data|bss)", name) and size}
        early = {name for name in sections(made) if re.match(r"\.(init|preinit|ctors|fini)", name)}
        assert not kept and not early, source.name


@pytest.mark.parametrize("name", ["mlp", "digits"])
def test_init_costs_nothing_but_the_checksum(name: str, tmp_path: Path) -> None:
    package = compile(path_of(name, tmp_path), Options(target="cortex-m4"))
    package.write(tmp_path / "out")
    model = Emulated.build(tmp_path / "out", M4, flags=("-DMCC_NO_CRC",))
    inputs = {tensor.name: np.zeros(tensor.static_shape, tensor.dtype.numpy) for tensor in model.report.inputs}
    assert model.count(inputs).init_instructions < 400  # the same for 1 KB and for 46 KB of weights
