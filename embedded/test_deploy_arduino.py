"""A sketch of `mccompile deploy`, compiled with Arduino's own core for AVR as the IDE compiles it, and run on an
emulated Arduino Mega: what its serial line says is what the reference says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.cli import run
from tests.small_models import mlp, random_inputs, reference, save

CORE = Path("/usr/share/arduino/hardware/arduino/avr")
CPU = ["-mmcu=atmega2560", "-DF_CPU=16000000L", "-DARDUINO=10819", "-DARDUINO_AVR_MEGA2560", "-DARDUINO_ARCH_AVR"]
SIZE = ["-Os", "-ffunction-sections", "-fdata-sections", "-flto"]
STRICT = ["-Wall", "-Wextra", "-Werror"]
C = ["avr-gcc", "-std=gnu11"]
# Debian's avr-gcc 5.4 keeps DECIMAL_DIG from C++, which the core reads; 7.3 of the IDE does not.
CPP = ["avr-g++", "-std=gnu++11", "-fno-exceptions", "-fno-threadsafe-statics", "-DDECIMAL_DIG=__DECIMAL_DIG__"]
BY_ENDING = {
    ".c": C,
    ".cpp": CPP,
    ".ino": [*CPP, "-include", "Arduino.h", "-x", "c++"],
    ".S": [*C, "-x", "assembler-with-cpp"],
}


def compiled(source: Path, folder: Path, *flags: str) -> Path:
    made = folder / f"{source.name}.o"
    command = [*BY_ENDING[source.suffix], *CPU, *SIZE, *flags, "-c", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.skipif(not (CORE.is_dir() and shutil.which("simavr")), reason="needs arduino-core-avr and simavr")
def test_a_sketch_says_the_scores_on_an_arduino_mega(tmp_path: Path) -> None:
    made, project = mlp(), tmp_path / "project"
    sample = random_inputs(made, 4)
    np.savez(tmp_path / "sample.npz", **sample)
    command = ["deploy", str(save(made, tmp_path)), "--board", "megaatmega2560", "--main", "loop", "-o", str(project)]
    assert run([*command, "--data", str(tmp_path / "sample.npz")]) == 0  # arduino is usual there
    library, sketch = project / "libraries" / "mlp" / "src", project / "mlp"
    core = [path for path in (CORE / "cores" / "arduino").iterdir() if path.suffix in (".c", ".cpp", ".S")]
    places = [f"-I{path}" for path in (CORE / "cores" / "arduino", CORE / "variants" / "mega", library)]
    own = [*library.glob("*.c"), *sketch.glob("*.c"), *sketch.glob("*.ino")]
    objects = [compiled(source, tmp_path, *places, *STRICT) for source in own]
    objects += [compiled(source, tmp_path, *places) for source in core]
    program = tmp_path / "mlp.elf"
    linked = ["avr-gcc", *CPU, *SIZE, "-fuse-linker-plugin", "-Wl,--gc-sections", *map(str, objects), "-lm"]
    subprocess.run([*linked, "-o", str(program)], check=True, capture_output=True)
    board = ["timeout", "60", "stdbuf", "-oL", "simavr", "-m", "atmega2560", "-f", "16000000", str(program)]
    with subprocess.Popen(board, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        lines = (re.search(r"out_put((?: -?\d\.\d{5}e[+-]\d{3}){5})", text) for text in running.stdout)
        line = next((found for found in lines if found), None)
        running.terminate()
    assert line is not None, "it says no scores"
    found = [float(word) for word in line[1].split()]  # the emulator ends its lines behind five
    np.testing.assert_allclose(found, reference(made, sample)["out.put"].ravel()[:5], rtol=1e-4, atol=1e-5)
