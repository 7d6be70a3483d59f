"""What is asked of a board over its emulated UART is what emulation without it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

from mccompile.base.discovery import data_folder
from mccompile.cli import run
from mccompile.kernels.measurements import Database
from mccompile.targets import api
from tests import small_models
from tests.passes.stream.pushed import floats, model

from . import serial_board
from .serial_board import PER_TICK, SYSTICK, emulated, firmware, free_port, harming, served

MOST = 2048  # bytes of code that the server may take
SERVERS = 8  # instructions between the board's clock and a run, which are the server's own
ON_BOARD = ("board", "hint")


def _compiled(path: Path, folder: Path, options: Sequence[str] = (), target: str = "cortex-m4") -> Path:
    out = folder / "out"
    assert run([str(path), "-o", str(out), "--target", target, *options]) == 0
    assert run(["serve", str(out)]) == 0
    return out


def _told(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> list[str]:
    capsys.readouterr()
    assert run(list(arguments)) == 0
    return [line for line in capsys.readouterr().out.splitlines() if not line.startswith(ON_BOARD)]


def _figures(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> dict[str, Any]:
    return dict(json.loads("\n".join(_told(capsys, [*arguments, "--json"]))))


def test_check_over_tcp_and_a_pseudo_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = small_models.save(small_models.conv(), tmp_path)
    program = firmware(_compiled(path, tmp_path), tmp_path)
    check = ["check", str(path), "--target", "cortex-m4"]
    with served(program) as port:
        assert _told(capsys, [*check, "--serial", port]) == _told(capsys, check)
    pytest.importorskip("serial")
    with emulated(program, "pty") as board:
        assert board.stdout is not None
        line = next(line for line in board.stdout if "/dev/pts/" in line)
        device = next(word for word in line.split() if word.startswith("/dev/pts/"))
        assert run([*check, "--serial", device]) == 0
        assert run([*check, "--serial", device, "--name", "another"]) != 0
    assert "another model is on the board" in capsys.readouterr().err


def test_a_line_that_harms_bytes_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = small_models.save(small_models.conv(), tmp_path)
    check = ["check", str(path), "--target", "cortex-m4"]
    with served(firmware(_compiled(path, tmp_path), tmp_path)) as port, harming(port, 0.002) as (worse, harmed):
        assert _told(capsys, [*check, "--serial", worse]) == _told(capsys, check)
    assert len(harmed) > 3  # bytes that were lost, doubled or broken


def test_a_stream_over_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, options = tmp_path / "m.onnx", ["--stream", "x=2,hop=2"]
    onnx.save(model("(float[1,2,10] x) => (float[1,3,8] y) { y = Conv(x, w) }", w=floats(3, 2, 3)), path)
    check = ["check", str(path), "--target", "cortex-m4", *options]
    with served(firmware(_compiled(path, tmp_path, options), tmp_path)) as port:
        assert _told(capsys, [*check, "--serial", port]) == _told(capsys, check)


@pytest.mark.parametrize(("target", "flags", "unit"), [("rv32imc", (), 1), ("cortex-m4", SYSTICK, PER_TICK)])
def test_bench_counts_what_emulation_counts(
    target: str, flags: Sequence[str], unit: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small_models.save(small_models.conv(), tmp_path)
    bench = ["bench", str(path), "--target", target]
    counted = _figures(capsys, bench)
    with served(firmware(_compiled(path, tmp_path, target=target), tmp_path, target, flags), target) as port:
        on_board = _figures(capsys, [*bench, "--serial", port])
    more = on_board["run_ticks"] * unit - counted["run_instructions"]
    assert -unit < more <= SERVERS + unit
    assert on_board["run_stack_bytes"] == counted["run_stack_bytes"]
    assert on_board["arena_bytes"] == counted["arena_bytes"]


def test_steps_and_what_they_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, options = small_models.save(small_models.conv(), tmp_path), ["--profile", "--dump-values"]
    out = _compiled(path, tmp_path, options)
    with served(firmware(out, tmp_path, flags=SYSTICK)) as port:
        found = _figures(capsys, ["bench", str(path), "--target", "cortex-m4", *options, "--serial", port])
        lines = _told(capsys, ["compare", str(out), "--serial", port, "--model", str(path)])
    assert len(found["steps"]) == 2 and all(step["ticks"] > 0 for step in found["steps"])
    assert sum(step["ticks"] for step in found["steps"]) <= found["run_ticks"]
    assert "the same code on this machine" in lines[0] and len(lines) == 5 and "DIFFERS" not in "".join(lines)


def test_a_board_goes_on_with_other_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "m.onnx", tmp_path / "n.onnx"
    onnx.save(small_models.conv(0), first)
    onnx.save(small_models.conv(1), second)
    out = _compiled(first, tmp_path)
    size = (out / "m.mcb").stat().st_size
    with served(firmware(out, tmp_path, flags=[f"-DUPDATES={size}"])) as port:
        check = ["check", str(second), "--target", "cortex-m4", "--name", "m", "--serial", port]
        assert run(check) == 1 and "other weights" in capsys.readouterr().err
        told = _told(capsys, ["blob", str(second), "--for", str(out), "--serial", port])
        assert told[-1] == f"sent     {size} bytes to the board at {port}"
        assert run(check) == 0


def test_kernels_are_tuned_by_ticks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, port, scratch = small_models.save(small_models.conv(), tmp_path), free_port(), tmp_path / "board"
    flash = f"{sys.executable} {serial_board.__file__} {{}} cortex-m4 {port} {scratch}"
    kept = {name: tmp_path / f"{name}.sqlite" for name in ("counted", "ticks")}
    tune = ["tune", str(path), "--target", "cortex-m4"]
    try:
        assert run([*tune, "--database", str(kept["counted"])]) == 0
        more = ["--serial", f"tcp:127.0.0.1:{port}", "--flash", flash]
        assert run([*tune, "--database", str(kept["ticks"]), *more]) == 0
    finally:
        serial_board.stop(scratch)
    assert "failed" not in capsys.readouterr().out
    counted, ticks = ({row.key.call + row.key.kernel: row for row in Database(file).rows()} for file in kept.values())
    assert counted.keys() == ticks.keys() and len(ticks) > 1
    for name, row in ticks.items():
        assert row.unit == "ticks" and row.key.machine == "board"
        assert abs(row.figure * PER_TICK - counted[name].figure) <= SERVERS + PER_TICK


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
