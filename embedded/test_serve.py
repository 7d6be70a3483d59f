"""A model that is checked over the emulated UART of its board is what emulation without it says."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mccompile.base.discovery import data_folder
from mccompile.cli import run
from mccompile.targets import api
from mccompile.toolchain import emulate
from mccompile.toolchain.boards import BOARDS, linker_script
from tests import small_models

MACHINE = "mps2-an386"
MOST = 2048  # bytes of code that the server may take


def _compiled(model: Path, folder: Path) -> Path:
    out = folder / "out"
    assert run([str(model), "-o", str(out), "--target", "cortex-m4"]) == 0
    assert run(["serve", str(out)]) == 0
    return out


def _firmware(out: Path, folder: Path, prefix: str) -> Path:
    target, board = api.load("cortex-m4"), Path(emulate.__file__).with_name("board")
    script, program = folder / "board.ld", folder / "program.elf"
    script.write_text(linker_script(BOARDS[MACHINE], f"{prefix}_weights.o"), encoding="utf-8")
    includes = [f"-I{path}" for path in (board, out, out / "runtime")]
    uart = folder / "uart.c"
    uart.write_text(Path(__file__).with_name("uart.c").read_text().replace("SERVE_H", f"{prefix}_serve.h"))
    sources = [*(path for path in out.glob("*.c") if path.name != "main.c"), board / "bare.c", uart]
    sizes = [*BOARDS[MACHINE].options, "-nostartfiles", f"-T{script}", "-Os", f"-DSERVE={prefix}_serve"]
    subprocess.run(
        [target.compiler, *target.cflags, *includes, *sizes, *map(str, sources), "-o", str(program), "-lm"], check=True
    )
    return program


@contextmanager
def _emulated(program: Path, serial: str) -> Iterator[subprocess.Popen[str]]:
    command = ["qemu-system-arm", "-M", MACHINE, "-display", "none", "-monitor", "none", "-serial", serial]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(program)]
    board = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield board
    finally:
        board.kill()
        board.communicate()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_check_over_tcp_and_a_pseudo_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_models.save(small_models.conv(), tmp_path)
    program = _firmware(_compiled(model, tmp_path), tmp_path, model.stem)
    check = ["check", str(model), "--target", "cortex-m4"]
    capsys.readouterr()
    assert run(check) == 0
    wanted = capsys.readouterr().out
    port = _free_port()
    with _emulated(program, f"tcp:127.0.0.1:{port},server=on,wait=off") as board:
        for _ in range(200):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            select.select([], [], [], 0.05)
        assert run([*check, "--serial", f"tcp:127.0.0.1:{port}"]) == 0, board.poll()
    found = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("board")]
    assert wanted.splitlines() == found
    pytest.importorskip("serial")
    with _emulated(program, "pty") as board:
        assert board.stdout is not None
        line = next(line for line in board.stdout if "/dev/pts/" in line)
        device = next(word for word in line.split() if word.startswith("/dev/pts/"))
        assert run([*check, "--serial", device]) == 0
        assert run([*check, "--serial", device, "--name", "another"]) != 0
    assert "another model is on the board" in capsys.readouterr().err
    assert not os.path.exists(tmp_path / "results.bin")


def test_the_server_is_small(tmp_path: Path) -> None:
    source, made = tmp_path / "serve.c", tmp_path / "serve.o"
    source.write_text(
        '#include "mcc_serve.h"\nvoid f(mcc_serve *s, uint8_t b);\n'
        + ("void f(mcc_serve *s, uint8_t b) { mcc_serve_byte(s, b); }\n")
    )
    target, include = api.load("cortex-m4"), data_folder("runtime_c") / "include"
    subprocess.run(
        [target.compiler, *target.cflags, "-Os", f"-I{include}", "-c", str(source), "-o", str(made)], check=True
    )
    told = subprocess.run(["arm-none-eabi-size", str(made)], capture_output=True, text=True, check=True).stdout
    assert int(told.splitlines()[1].split()[0]) <= MOST, told
