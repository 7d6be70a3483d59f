"""What is installed is told by trying it; what is not, with the packages that bring it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from mccompile import cli
from mccompile.targets import api
from mccompile.toolchain import doctor
from mccompile.toolchain.doctor import extras, tools_of


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only folder of the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    doctor._refusal.cache_clear()
    yield tmp_path
    doctor._refusal.cache_clear()


def install(folder: Path, name: str, script: str = "exit 0") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_what_is_there_builds_and_runs(programs: Path) -> None:
    install(programs, "arm-none-eabi-gcc")
    install(programs, "qemu-system-arm")
    tools = tools_of(api.load("cortex-m4"))
    assert (tools.compiler, tools.runner, tools.absent) == ("arm-none-eabi-gcc", "qemu-system-arm", ())
    assert not tools.cannot_build and not tools.cannot_run


def test_what_is_not_there_comes_with_packages(programs: Path) -> None:
    found = tools_of(api.load("cortex-m4")).as_dict()
    assert not found["builds"] and not found["runs"]
    assert found["why"] == "arm-none-eabi-gcc is not installed; qemu-system-arm is not installed"
    assert found["install"].endswith("gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm")


def test_a_compiler_that_does_not_compile_does_not_count(programs: Path) -> None:
    install(programs, "arm-none-eabi-gcc", "echo 'fatal error: math.h: No such file' >&2; exit 1")
    install(programs, "qemu-system-arm")
    found = tools_of(api.load("cortex-m4")).as_dict()
    assert "math.h: No such file" in found["why"] and "libnewlib-arm-none-eabi" in found["install"]
    assert found["builds"] is False and found["runs"] is False


def test_a_machine_without_a_compiler(programs: Path) -> None:
    found = tools_of(api.load("generic")).as_dict()
    assert found["why"] == "no C compiler found" and found["install"].endswith(" gcc")


def test_instructions_that_this_processor_lacks(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(programs, "cc")
    monkeypatch.setattr(api, "_cpu_flags", frozenset)
    assert tools_of(api.load("x86-64-v4")).cannot_run == "this processor lacks its instructions"
    assert not tools_of(api.load("native")).cannot_run


def test_extras_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["onnx>=1.19", "numpy>=1; extra == 'quantize'", 'no-such-thing>=2 ; extra == "quantize"']
    monkeypatch.setattr(metadata, "requires", lambda name: wanted)
    (extra,) = extras()
    assert extra.name == "quantize" and extra.absent == ["no-such-thing"] and extra.packages["numpy"]


def test_the_command_says_the_same_in_words_and_in_json(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", "cortex-m4"]) == 0
    said = capsys.readouterr().out
    assert "cortex-m4  no      arm-none-eabi-gcc is not installed" in said
    assert "to install programs (Debian): apt-get install --no-install-recommends gcc-arm-none-eabi" in said
    assert cli.run(["doctor", "cortex-m4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["targets"]["cortex-m4"]["builds"] is False and found["install"]["apt"] in said
