"""One program for several processors: init picks what the processor runs, and the API is that of the model alone."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile import cli
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, arrange, compile_jobs
from mccompile.emit.folder import write_folder
from mccompile.passes.api import ALL
from mccompile.targets import api
from mccompile.targets.api import Pool
from tests import small_models
from tests.emit.test_builds import built, run
from tests.small_models import random_inputs, reference, save
from tests.thorough import some

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="for x86-64")

X86 = "x86-64-v4,x86-64-v3,generic"
STRICT = "-O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
PROGRAM = """
#include <stdio.h>
#include "NAME.h"
static MCC_ALIGNED(64) uint8_t arena[UPPER_ARENA_BYTES];
int main(void)
{
    NAME_model m;
    if (NAME_init(&m, arena, sizeof arena, NAME_weights, NAME_weights_bytes) != MCC_OK) return 1;
    if (fread(NAME_input_x(&m), 1, UPPER_INPUT_X_BYTES, stdin) != UPPER_INPUT_X_BYTES) return 2;
    if (NAME_run(&m) != MCC_OK) return 3;
    fwrite(NAME_output_y(&m), 1, UPPER_OUTPUT_Y_BYTES, stdout);
    fprintf(stderr, "%u", (unsigned)m.variant);
    return 0;
}
"""


def files_for(folder: Path, **options: object) -> dict[str, bytes]:
    made = small_models.conv() if "state" not in options else accumulator()
    return dict(compile_jobs([(save(made, folder), Options(**{"target": X86, **options}))], "conv")[1])


def test_the_weights_of_all_may_have_a_section(tmp_path: Path) -> None:
    assert b'section(".w")' in files_for(tmp_path, weights_section=".w")["conv_weights.c"]


def accumulator() -> ModelProto:
    nodes = [small_models.node("Add", "x s", "sum"), small_models.node("Relu", "sum", "y")]
    return small_models.model("conv", nodes, [("x", [8]), ("s", [8])], [("y", [8]), ("sum", [8])])


def program(folder: Path) -> Path:
    """Runs the model on what it reads, and says which variant it was."""
    write_folder(folder / "out", files_for(folder))
    (folder / "program.c").write_text(PROGRAM.replace("NAME", "conv").replace("UPPER", "CONV"))
    built(folder / "out", "make", folder, f"CFLAGS={STRICT}")
    sources = [f"-I{folder}/out", f"-I{folder}/out/runtime", folder / "program.c", folder / "out" / "libconv.a"]
    run("gcc", "-std=c99", *sources, "-o", folder / "program", "-lm")
    return folder / "program"


def test_init_picks_what_this_machine_runs(tmp_path: Path) -> None:
    inputs = random_inputs(small_models.conv())
    done = subprocess.run([str(program(tmp_path))], input=inputs["x"].tobytes(), capture_output=True, check=True)
    isas = api.load("native").isas
    assert done.stderr.decode() == ("1" if "avx512" in isas else "2" if "avx2" in isas else "3")
    wanted = reference(small_models.conv(), inputs)["y"]
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32), wanted.reshape(-1), rtol=1e-4, atol=1e-5)


@some(
    2,
    "options",
    [
        {"slices": True},
        {"external": (ALL,)},
        {"threads": 2, "prefer": "time"},
        {"blob": "incbin"},
        {"blob": "external"},
        {"state": {"sum": "s"}, "advance": True, "wrappers": ("cpp",)},
        {"dims": {"N": (1, 4)}, "shapes": {"x": ("N", 2, 6, 6)}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_function_of_the_api_is_passed_on(options: dict[str, object], tmp_path: Path) -> None:
    write_folder(tmp_path / "out", files_for(tmp_path, **options))
    built(tmp_path / "out", "make", tmp_path, f"CFLAGS={STRICT}")


def test_without_its_init_nothing_runs(tmp_path: Path) -> None:
    text = files_for(tmp_path)["conv.c"].decode()
    assert text.count("default: return MCC_ERR_NOT_INIT;") == 1 and "m->variant = 0u;" in text


def test_the_blob_is_those_of_all(tmp_path: Path) -> None:
    files = files_for(tmp_path)
    report = json.loads(files["report.json"])
    assert len(files["conv.mcb"]) == report["weights_bytes"] == sum(each["weights_bytes"] for each in report["targets"])
    assert files["conv.mcb"].count(b"MCCB\x01") == 3
    assert report["arena_bytes"] == max(each["arena_bytes"] for each in report["targets"])


POOLS = """
#include "conv.h"
static MCC_ALIGNED(64) uint8_t fast[CONV_ARENA_FAST_BYTES], slow[CONV_ARENA_SLOW_BYTES];
int main(void)
{
    conv_model m;
    return conv_init(&m, fast, sizeof fast - FAST_LESS, slow, NO_BYTES, conv_weights, conv_weights_bytes);
}
"""


def test_a_pool_that_nothing_uses_needs_no_memory(tmp_path: Path) -> None:
    files = files_for(tmp_path, mem=(Pool("fast", 1 << 16, 0), Pool("slow", 1 << 20, 1)))
    report = json.loads(files["report.json"])
    fast = max(target["pools"][0]["bytes"] for target in report["targets"])
    assert [pool["bytes"] for pool in report["pools"]] == [fast, 0]
    write_folder(tmp_path / "out", files)
    for missing, status in ((0, 0), (1, 4)):  # of the pool that is used; MCC_ERR_ARENA_SIZE
        text = POOLS.replace("FAST_LESS", f"{missing}u").replace("NO_BYTES", "2u * MCC_CANARY_BYTES")
        (tmp_path / "pools.c").write_text(text)
        built(tmp_path / "out", "make", tmp_path, f"CFLAGS={STRICT}")
        includes = [f"-I{tmp_path}/out", f"-I{tmp_path}/out/runtime"]
        sources = [tmp_path / "pools.c", tmp_path / "out" / "libconv.a"]
        run("gcc", "-std=c99", *includes, *sources, "-o", tmp_path / "pools", "-lm")
        assert subprocess.run([str(tmp_path / "pools")], check=False).returncode == status


def test_the_summary_says_when_the_target_is_picked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(save(small_models.conv(), tmp_path))
    assert cli.run([model, "--target", X86, "-o", str(tmp_path / "a")]) == 0
    assert "picked by init, at run time" in capsys.readouterr().out
    assert cli.run([model, "--target", "x86-64-v3,aarch64,generic", "-o", str(tmp_path / "b")]) == 0
    assert "not at run time" in capsys.readouterr().out


def test_packages_with_flags_for_each_file_build_it(tmp_path: Path) -> None:
    files = files_for(tmp_path)
    write_folder(tmp_path / "make", arrange(files, "make", "conv", Options()))
    assert len(built(tmp_path / "make", "make", tmp_path)) == 2
    with pytest.raises(WrongUse, match="arduino cannot build for several processors"):
        arrange(files, "arduino", "conv", Options())


@pytest.mark.parametrize("targets", ["x86-64-v3,x86-64-v4,generic", "generic,x86-64-v3"])
def test_what_would_never_be_picked_is_refused(targets: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="would never be used"):
        files_for(tmp_path, target=targets)
