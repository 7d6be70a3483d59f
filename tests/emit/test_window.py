"""Weights that come through a window from a file (mcc_file.h): the same results, and no blob that is damaged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile.driver import Options, compile
from tests.small_models import save
from tests.thorough import some

LAYERS = 6
BLOB_CRC, READ = 11, 32  # of mcc.h
PROGRAM = """
#include "net.h"
#include "mcc_file.h"
#include <stdio.h>

static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];

int main(int argc, char **argv)
{
    mcc_file file;
    mcc_reader reader;
    net_model m;
    mcc_status status;
    if (argc != 2 || mcc_file_open(&file, argv[1]) != 0) return 100;
    reader = mcc_file_reader(&file);
    status = net_init_from(&m, arena, sizeof arena, &reader);
    for (int run = 0; run < 3 && status == MCC_OK; run++) {
        for (int i = 0; i < (int)NET_INPUT_X_COUNT; i++) net_input_x(&m)[i] = (float)(i % 7);
        status = net_run(&m);
        (void)fwrite(net_output_y(&m), 1, NET_OUTPUT_Y_BYTES, stdout);
    }
    mcc_file_close(&file);
    return (int)status;
}
"""


def dense() -> ModelProto:
    chance = np.random.default_rng(0)
    nodes = " ".join(f"v{n + 1} = MatMul (v{n}, w{n})" for n in range(LAYERS))
    made = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]> net (float[1,64] x) => (float[1,64] y) {{
        v0 = Relu (x) {nodes} y = Relu (v{LAYERS}) }}""")
    weights = [chance.integers(-1, 2, (64, 64)).astype(np.float32) for _ in range(LAYERS)]
    made.graph.initializer.extend(numpy_helper.from_array(w, f"w{n}") for n, w in enumerate(weights))
    return made


@pytest.fixture(scope="module", params=[131072, 1000])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With pieces that one thread reads whole, and with pieces of many parts, which both threads read."""
    folder = tmp_path_factory.mktemp("window")
    package = compile(save(dense(), folder), Options(weights_window=32768, blob="external", name="net"))
    package.write(folder / "out")
    (folder / "main.c").write_text(PROGRAM)
    sources = [folder / "main.c", *sorted((folder / "out").glob("net*.c"))]
    flags = ["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsanitize=thread"]
    flags.append(f"-DMCC_FILE_PART={request.param}")
    places = [f"-I{folder / 'out'}", f"-I{folder / 'out' / 'runtime'}"]
    subprocess.run(["gcc", *flags, *places, *sources, "-pthread", "-lm", "-o", folder / "net"], check=True)
    return folder


def run(folder: Path, blob: bytes) -> tuple[int, bytes]:
    (folder / "blob").write_bytes(blob)
    done = subprocess.run([folder / "net", folder / "blob"], capture_output=True, check=False, timeout=60)
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_thread_reads_ahead(built: Path) -> None:
    last = np.arange(64, dtype=np.float32)[None] % 7
    for weights in dense().graph.initializer:
        last = last @ numpy_helper.to_array(weights)
    status, results = run(built, (built / "out" / "net.mcb").read_bytes())
    assert status == 0
    assert np.array_equal(np.frombuffer(results, np.float32).reshape(3, 64), np.repeat(np.maximum(last, 0), 3, 0))


@some(1, "share", [0.1, 0.35, 0.6, 0.85, 0.99999])
def test_a_damaged_byte_is_found_wherever_it_is(built: Path, share: float) -> None:
    """Init sums up two halves of its room in turn."""
    blob = bytearray((built / "out" / "net.mcb").read_bytes())
    blob[int(len(blob) * share)] ^= 1
    assert run(built, bytes(blob))[0] == BLOB_CRC


def test_a_file_that_ends_early_cannot_be_read(built: Path) -> None:
    assert run(built, (built / "out" / "net.mcb").read_bytes()[:-1])[0] == READ
