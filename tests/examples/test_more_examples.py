"""The other examples build and run here as their READMEs say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MCCOMPILE = f"MCCOMPILE={sys.executable} -m mccompile"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}


def copied(name: str, folder: Path) -> Path:
    """An example with those that it takes its network or its startup from, so that nothing is built in the checkout."""
    for each in dict.fromkeys((name, "digits", "bare_metal")):
        shutil.copytree(EXAMPLES / each, folder / each, ignore=shutil.ignore_patterns("build"))
    return folder / name


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr  # QEMU writes what the debugger hears to the latter


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_bare_metal_hears_every_word(core: str, tmp_path: Path) -> None:
    said = run("make", "run", f"CORE={core}", MCCOMPILE, folder=copied("bare_metal", tmp_path))
    assert said.count(": heard") == 4


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_a_wake_word_is_heard_in_a_recording(core: str, tmp_path: Path) -> None:
    """Whistles of a third of a second rise from 0.9 and from 2.2 seconds on; others fall or stay."""
    said = run("make", "run", f"CORE={core}", MCCOMPILE, folder=copied("wake_word", tmp_path))
    heard = [float(line.split()[2]) for line in said.splitlines() if line.startswith("wake at")]
    assert [abs(at - end) < 0.05 for at, end in zip(heard, (1.233, 2.533), strict=True)] == [True, True]


@pytest.mark.parametrize("example", ["mmap", "window"])
def test_weights_come_from_a_file_and_a_changed_one_is_refused(example: str, tmp_path: Path) -> None:
    folder = copied(example, tmp_path)
    run("make", MCCOMPILE, folder=folder)
    pictures = np.load(folder.parent / "digits" / "pictures.npz")
    for number in range(5):
        (folder / f"{number}.f32").write_bytes((pictures["pixels"][number] / 16).astype(np.float32).tobytes())
    blob = "build/digits/digits.mcb"
    said = run("./build/classify", blob, *(f"{n}.f32" for n in range(5)), folder=folder)
    assert [int(line.rpartition(" ")[2]) for line in said.splitlines()] == pictures["predictions"][:5].tolist()
    contents = bytearray((folder / blob).read_bytes())
    contents[-1] ^= 1
    (folder / blob).write_bytes(contents)
    command = ["./build/classify", blob, "0.f32"]
    refused = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and refused.stderr.endswith("the blob is damaged\n")


def test_a_shared_library_shows_what_its_header_declares(tmp_path: Path) -> None:
    folder = copied("shared_library", tmp_path)
    said = run("make", "run", MCCOMPILE, folder=folder)
    header = (folder / "build" / "digits" / "digits.h").read_text()
    declared = re.findall(r"^(?:extern )?[a-z][\w ]*[ *](digits_\w+)(?:\(|\[|;)", header, re.MULTILINE)
    assert set(re.findall(r"^[0-9a-f]+ [TR] (\w+)$", said, re.MULTILINE)) == set(declared) and len(declared) > 4
    assert "1 pictures" in said


def test_python_tells_the_digits(tmp_path: Path) -> None:
    said = run(sys.executable, "classify.py", folder=copied("python", tmp_path))
    assert "of 200 pictures are told right" in said


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not installed")
def test_firmware_takes_one_network_after_the_other(tmp_path: Path) -> None:
    said = run("make", "run", MCCOMPILE, folder=copied("module", tmp_path))
    assert "kws/kws.mcm: taken\n  every word is heard\ndigits/digits.mcm: taken\n" in said
    assert "half.mcm: the module is truncated" in said


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not installed")
def test_other_tasks_have_a_turn_after_each_slice(tmp_path: Path) -> None:
    said = run("make", "run", MCCOMPILE, folder=copied("freertos", tmp_path))
    assert said.count(": heard, control had a turn after each slice") == 4


AARCH64 = ["TARGET=aarch64", "CC=aarch64-linux-gnu-gcc", "RUN=qemu-aarch64 -L /usr/aarch64-linux-gnu"]


@pytest.mark.parametrize("options", [[], AARCH64], ids=["here", "aarch64"])
def test_a_trusted_application_hears_words_and_needs_memory_functions_alone(options: list[str], tmp_path: Path) -> None:
    if options and not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")):
        pytest.skip("compiler or emulator for aarch64 is not installed")
    said = run("make", "run", MCCOMPILE, *options, folder=copied("trusted_application", tmp_path))
    called = set(re.search(r"the application calls: (.*)", said)[1].split())  # type: ignore[index]
    of_system = {"TEE_Free", "TEE_Malloc", "TEE_MemMove", "memcpy", "memmove", "memset"}
    assert called - {"_GLOBAL_OFFSET_TABLE_"} <= of_system
    assert said.count(": heard") == 4
    assert "other calls are refused" in said
