"""Modules on emulated boards: they run wherever they are copied to, give the bits of the linked form, are refused when
damaged or foreign, and cost next to nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from embedded.models import path_of
from mccompile.driver import Options, compile
from mccompile.measure.correctness import build, check
from mccompile.targets import api
from mccompile.toolchain import loaded
from mccompile.toolchain.boards import BOARDS, linker_script
from mccompile.toolchain.emulate import Emulated, run_command
from mccompile.toolchain.model_report import read_report
from tests.emit import module_cases

BARE = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
LINUX = ("armv7a", "aarch64", "riscv64")
BOARD = Path(loaded.__file__).with_name("board")
KWS = Path(__file__).resolve().parents[1] / "examples" / "bare_metal" / "kws.onnx"
MOST = 1.05  # of the bytes of the linked form


def module_of(file: Path, target: str, folder: Path) -> Path:
    """Its folder, with the module in it."""
    compile(file, Options(target=target, module=True, name="net")).write(folder / "out")
    image = loaded.built(folder / "out", read_report(folder / "out"), api.load(target).compiler, folder)
    shutil.copy(image, folder / "out" / "net.mcm")
    return folder / "out"


def opener(target: str, runtime: Path, folder: Path) -> list[str]:
    """The command that runs module_cases.c there, linked for a board that has room for two copies."""
    found = api.load(target)
    command, options = run_command(found), ["-static"]
    source = BOARD / "hosted.c"
    if not found.hosted:
        board = BOARDS[command[command.index("-M") + 1]]
        board = BOARDS[board.larger] if board.larger else board
        command[command.index("-M") + 1] = board.machine
        (folder / "board.ld").write_text(linker_script(board, "none.o"))
        options = [*board.options, "-nostartfiles", f"-T{folder / 'board.ld'}"]
        source = BOARD / "bare.c"
    program = folder / "program.elf"
    sources = [str(module_cases.SOURCE), str(source)]
    flags = [flag for flag in found.cflags if flag != "-std=c99"]
    words = [found.compiler, "-std=gnu99", *flags, f"-I{BOARD}", f"-I{runtime}", "-ffunction-sections"]
    subprocess.run([*words, *options, *sources, "-Wl,--gc-sections", "-o", str(program), "-lm"], check=True)
    return [*command, str(program)]


@pytest.mark.parametrize("target", [*BARE, *LINUX])
def test_it_runs_at_two_addresses_and_nothing_damaged_is_opened(target: str, tmp_path: Path) -> None:
    file = path_of("classifier", tmp_path)
    folder = module_of(file, target, tmp_path)
    chance = np.random.default_rng(3)
    report = read_report(folder)
    inputs = {t.name: chance.standard_normal(t.static_shape).astype(np.float32) for t in report.inputs}
    linked = build(compile(file, Options(target=target, name="net")), api.load(target)).run(inputs)
    command = opener(target, folder / "runtime", tmp_path)
    image = (folder / "net.mcm").read_bytes()
    results, ended = module_cases.run(command, report, image, inputs, tmp_path)
    for found in results:
        for name, wanted in linked.items():
            np.testing.assert_array_equal(found[name], wanted)
    assert ended == module_cases.wanted(image)


@pytest.mark.parametrize(("target", "foreign"), [("cortex-m0", "cortex-m4"), ("cortex-m4", "rv32imc")])
def test_a_module_for_another_core_is_refused(target: str, foreign: str, tmp_path: Path) -> None:
    file = path_of("classifier", tmp_path)
    folder = module_of(file, foreign, tmp_path)
    (tmp_path / "net.mcm").write_bytes((folder / "net.mcm").read_bytes())
    (tmp_path / "inputs.bin").write_bytes(b"")
    command = opener(target, folder / "runtime", tmp_path)
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "results.bin").read_bytes()[:8] == 2 * (26).to_bytes(4, "little")  # MCC_ERR_MODULE_MACHINE


@pytest.mark.parametrize("target", BARE)
def test_a_module_of_a_keyword_spotter_is_hardly_larger(target: str, tmp_path: Path) -> None:
    folder = module_of(KWS, target, tmp_path)
    linked = build(compile(KWS, Options(target=target)), api.load(target))
    assert isinstance(linked, Emulated)
    parts = ("model", "kernels", "weights", "libraries")
    bytes = sum(sum(linked.sections.get(part, {}).values()) for part in parts)
    assert (folder / "net.mcm").stat().st_size <= MOST * bytes


@pytest.mark.parametrize("name", ["recurrent", "separable_int8", "integers", "digits"])
@pytest.mark.parametrize("target", BARE)
def test_check_takes_modules(target: str, name: str, tmp_path: Path) -> None:
    assert check(path_of(name, tmp_path), Options(target=target, module=True), runs=1).ok
