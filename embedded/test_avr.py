"""Programs for 8-bit AVR link with avr-libc, which lacks functions of C99's math.h."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import parser

from mccompile.driver import compile
from mccompile.emit.package import write_folder

MODEL = """<ir_version: 10, opset_import: ["": 20]> net (float[4] x) => (float[4] a, float[4] b, float[4] c, float[4] d,
    float[4] e, float[4] f) { a = Elu(x) b = Softplus(x) c = Asinh(x) d = Acosh(x) e = Atanh(x) f = Gelu(x) }"""
MAIN = '#include "net.h"\nstatic net_model m;\nint main(void) { return (int)net_run(&m); }\n'
FLAGS = ["-mmcu=atmega2560", "-std=c99", "-Os", "-Wall", "-Wextra", "-Werror"]


@pytest.mark.skipif(not shutil.which("avr-gcc"), reason="avr-gcc is not installed")
def test_functions_that_avr_libc_lacks_are_there(tmp_path: Path) -> None:
    path, out = tmp_path / "net.onnx", tmp_path / "out"
    onnx.save(parser.parse_model(MODEL), path)
    write_folder(out, compile(path).files)
    (out / "start.c").write_text(MAIN)
    sources = [str(source) for source in out.glob("*.c") if source.name != "main.c"]
    includes = [f"-I{out}", f"-I{out / 'runtime'}"]
    built = ["avr-gcc", *FLAGS, *includes, *sources, "-o", str(tmp_path / "a.elf"), "-lm"]
    done = subprocess.run(built, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
