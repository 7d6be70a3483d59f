"""Updates from the command to the program that takes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from mccompile.cli import run
from mccompile.toolchain.build import find_compiler
from tests import small_models
from tests.runtime_c.built import STRICT

# Installs each update it is told, and then runs what `find` says; prints statuses, version and the first output.
PROGRAM = """
#include <stdio.h>
#include "mlp.h"
#include "mlp_update.h"
static MCC_ALIGNED(64) uint8_t flash[2][MLP_UPDATE_SLOT_BYTES];
static MCC_ALIGNED(MLP_ARENA_ALIGN) uint8_t arena[MLP_ARENA_BYTES];
static int get(void *user, uint32_t slot, uint32_t at, void *to, size_t bytes)
{
    (void)user;
    (void)memcpy(to, &flash[slot][at], bytes);
    return 0;
}
static int erase(void *user, uint32_t slot)
{
    (void)user;
    (void)memset(flash[slot], 0xFF, sizeof flash[slot]);
    return 0;
}
static int put(void *user, uint32_t slot, uint32_t at, const void *from, size_t bytes)
{
    (void)user;
    (void)memcpy(&flash[slot][at], from, bytes);
    return 0;
}
static int is_genuine(void *user, uint32_t slot, uint32_t at, uint32_t bytes, const uint8_t *signature)
{
    (void)user;
    (void)slot;
    return signature[0] == 's' && at == MCC_UPDATE_SIGNED_AT && bytes == 64u + MLP_UPDATE_BLOB_BYTES;
}
int main(int argc, char **argv)
{
    const mcc_store store = {get, erase, put, NULL};
    mcc_update u = {.store = &store, .identity = mlp_update_identity, .blob_bytes = MLP_UPDATE_BLOB_BYTES};
    mcc_update_found found;
    mlp_model m;
    const uint8_t *blob;
    size_t i;
    int n;
    u.is_genuine = is_genuine;
    for (n = 1; n < argc; n++) {
        uint8_t piece[77];
        size_t count;
        FILE *const file = fopen(argv[n], "rb");
        if (file == NULL || mcc_update_begin(&u) != MCC_OK) return 1;
        (void)memset(piece, 's', 64u);
        (void)mcc_update_write(&u, piece, 64u);
        while ((count = fread(piece, 1u, sizeof piece, file)) > 0u) (void)mcc_update_write(&u, piece, count);
        (void)fclose(file);
        printf("%d ", (int)mcc_update_end(&u));
    }
    if (mcc_update_find(&u, &found) != MCC_OK) return 2;
    blob = &flash[found.slot][MCC_UPDATE_BLOB_AT];
    if (mlp_init(&m, arena, sizeof arena, blob, MLP_UPDATE_BLOB_BYTES) != MCC_OK) return 3;
    for (i = 0u; i < MLP_INPUT_IN_PUT_0_COUNT; i++) mlp_input_in_put_0(&m)[i] = 1.0f;
    if (mlp_run(&m) != MCC_OK) return 4;
    printf("%u %.5f", (unsigned)found.version, (double)mlp_output_out_put(&m)[0]);
    return 0;
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return small_models.save(small_models.mlp(), tmp_path)


def _retrained(model: Path, folder: Path) -> Path:
    made = onnx.load(model)
    for tensor in made.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            tensor.CopyFrom(numpy_helper.from_array(array * array.dtype.type(0.5), tensor.name))
    to = folder / "new" / model.name
    to.parent.mkdir()
    onnx.save(made, to)
    return to


def _built(out: Path) -> Path:
    (out / "main.c").write_text(PROGRAM)
    sources = [str(out / name) for name in ("main.c", "mlp.c", "mlp_kernels.c")]
    flags = [*STRICT, f"-I{out}", f"-I{out / 'runtime'}", "-o", str(out / "program"), "-lm"]
    subprocess.run([*find_compiler().command, *sources, *flags], check=True)
    return out / "program"


def test_updates_of_the_command_run_in_a_program(model: Path, tmp_path: Path) -> None:
    out, old, new = tmp_path / "out", tmp_path / "old.bin", tmp_path / "new.bin"
    assert run([str(model), "-o", str(out), "--blob", "external"]) == 0
    assert run(["slots", str(out)]) == 0
    assert run(["slots", str(out)]) == 0  # again: nothing was edited
    before = (out / "mlp.mcb").read_bytes()
    assert run(["blob", str(model), "--for", str(out), "--update", str(old), "--version", "3"]) == 0
    command = ["blob", str(_retrained(model, tmp_path)), "--for", str(out), "--update", str(new)]
    assert run([*command, "--version", "9", "--counter", "1"]) == 0
    assert (out / "mlp.mcb").read_bytes() == before
    program = _built(out)

    def told(*updates: Path) -> list[str]:
        return subprocess.run([program, *updates], capture_output=True, text=True, check=True).stdout.split()

    first, second = told(old), told(old, new, old)
    assert first[:2] == ["0", "3"]
    assert second[:4] == ["0", "0", "33", "9"]
    assert first[-1] != second[-1]


def test_numbers_that_are_none(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run([str(model), "-o", str(out)]) == 0
    command = ["blob", str(model), "--for", str(out)]
    assert run([*command, "--version", "3"]) == 2
    assert "--version and --counter do not go without --update" in capsys.readouterr().err
    assert run([*command, "--update", str(tmp_path / "u.bin"), "--counter", "-1"]) == 2
    assert "-1 is not a number of 32 bits" in capsys.readouterr().err
    assert run([*command, "--update", str(tmp_path / "no" / "u.bin")]) == 2
    assert "cannot write the update" in capsys.readouterr().err
