"""What is written for a target builds as it lies, with its compiler; others are told what is missing."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from embedded.models import path_of
from mccompile.driver import Options, arrange, compile_jobs
from mccompile.emit.folder import write_folder
from mccompile.targets import api
from tests.emit.test_builds import WAYS, built
from tests.emit.test_dispatch import program


@cache
def files_for(target: str, model: str = "quantized") -> Mapping[str, bytes]:
    """Of a convolution of bytes, which has kernels that ask for a target's flags; or of a network with more of them."""
    with tempfile.TemporaryDirectory() as folder:
        job = (path_of(model, Path(folder)), Options(target=target, name="net"))
        return compile_jobs([job], "net")[1]


TARGETS = [name for name in api.names() if api.load(name).compiler != "cc"]
# Each target in each layout and with each tool; in packages, which build the same files, with one or the other.
BUILDS = [(target, way) for i, target in enumerate(TARGETS) for way in (*WAYS[:2], WAYS[2 + i % 2])]


@pytest.mark.parametrize(("target", "way"), BUILDS)
def test_every_target_builds(target: str, way: str, tmp_path: Path) -> None:
    """A library; and a program, where there is an operating system that it runs under."""
    files = files_for(target, "separable_int8" if way == "make" else "quantized")
    if way.startswith("package"):
        files = arrange(files, way.removeprefix("package-"), "net", Options())
    write_folder(tmp_path / "out", files)
    found = built(tmp_path / "out", "cmake" if "cmake" in way else "make", tmp_path / "build")
    assert len(found) == (2 if api.load(target).hosted else 1)


@pytest.mark.parametrize("tool", ["make", "cmake"])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "aarch64", "generic"])
def test_a_folder_of_several_targets_builds_for_each(target: str, tool: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "out", files_for("cortex-m4,cortex-m55,aarch64,generic"))
    setting = f"TARGET={target}" if tool == "make" else f"MCC_NET_TARGET={target}"
    assert built(tmp_path / "out", tool, tmp_path / "build", setting)


@pytest.mark.parametrize("target", [name for name in TARGETS if api.load(name).needs])
def test_a_compiler_without_the_flags_is_told_which(target: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "out", files_for(target))
    command = ["gcc", "-std=c99", f"-I{tmp_path}/out/runtime", "-fsyntax-only", str(tmp_path / "out" / "net_kernels.c")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    first = next(line for line in said.splitlines() if "error" in line)
    assert "#error" in first and " ".join(api.load(target).build.flags) in first


@pytest.mark.parametrize(("processor", "variant"), [("Nehalem", "3"), ("Haswell", "2")])
def test_init_picks_what_an_older_processor_runs(processor: str, variant: str, tmp_path: Path) -> None:
    command = ["qemu-x86_64", "-cpu", processor, str(program(tmp_path))]
    zeros = bytes(4 * 2 * 6 * 6)
    done = subprocess.run(command, input=zeros, capture_output=True, check=True)
    assert done.stderr.decode().splitlines()[-1] == variant
