"""A model over several memories: the results of one, within the limits, or a refusal that says what would do."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import CheckFailed
from mccompile.driver import Options, arrange, compile, compile_several
from mccompile.emit.package import write_folder
from mccompile.measure.correctness import build
from mccompile.option_texts import pools
from mccompile.passes.api import ALL
from mccompile.plan.ir import is_outside
from mccompile.targets import api
from mccompile.targets.api import Pool
from mccompile.toolchain.run import Model
from tests import small_models
from tests.emit.test_generated_c import STRICT
from tests.poisoned import poisoned
from tests.small_models import compiled, random_inputs, reference, save, written
from tests.thorough import some

TWO = (Pool("dtcm", 700, 0), Pool("sram", 64 << 10, 1))
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
LOOP = parser.parse_model(  # what it carries lies in two buffers that take turns
    f"{HEAD} looped (float[8] x) => (float[8] y, float[4,8] all) <int64 four = {{4}}, bool go = {{1}}>"
    "{ y, all = Loop(four, go, x) <body = b (int64 i, bool c, float[8] v) => (bool d, float[8] w, float[8] s)"
    "  { d = Identity(c) w = Softmax(v) s = Neg(v) }> }"
)
STATE = parser.parse_model(
    f"{HEAD} summed (float[64] x, float[64] before) => (float[64] y, float[64] after)"
    "{ after = Add(x, before) y = Softmax(after) }"
)
MODELS = {**{name: make() for name, make in small_models.ALL.items()}, "looped": LOOP}


@cache
def arena_bytes(name: str) -> int:
    """Of a model in one memory."""
    return compiled(MODELS[name]).plan.arena_bytes


def agrees(got: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    for name, array in wanted.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(got[name], array)


@some(1, "part", [0.1, 0.5])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_the_same_over_poisoned_memory(name: str, part: float) -> None:
    made = MODELS[name]
    options = Options(mem=(Pool("dtcm", int(part * arena_bytes(name)), 0), Pool("sram", 64 << 10, 1)))
    package, inputs = compiled(made, options), random_inputs(made)
    fast, slow = package.plan.arenas
    assert fast.bytes <= int(part * arena_bytes(name)) and fast.bound <= fast.bytes and slow.bound <= slow.bytes
    for each in (package, poisoned(package, 0xA5), poisoned(package, 0xFF)):
        agrees(build(each, options.resolved_target()).run(inputs, poison=0xA5), reference(made, inputs))


def test_hot_and_small_is_in_the_fast_pool_and_the_report_says_so(tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path, Options(mem=TWO))
    pools = json.loads((folder / "report.json").read_text())["pools"]
    assert [pool["name"] for pool in pools] == ["dtcm", "sram"]
    assert 0 < pools[0]["bytes"] <= 700 == pools[0]["limit_bytes"]
    header = (folder / "conv.h").read_text()
    assert f"#define CONV_ARENA_DTCM_BYTES ({pools[0]['bytes']}u" in header and "CONV_ARENA_SRAM_ALIGN 16u" in header
    words = " ".join(header.split())
    assert "void *arena_dtcm, size_t arena_dtcm_bytes, void *arena_sram, size_t arena_sram_bytes" in words


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_the_program_that_comes_along_builds_and_runs(compiler: str, tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path, Options(mem=TWO))
    strict = list(STRICT) if compiler == "gcc" else ["-std=c++11", "-x", "c++", "-Wall", "-Wextra", "-Werror"]
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    for canary in ([], ["-DMCC_CANARY"]):
        command = [compiler, *strict, *canary, "-I.", "-Iruntime", *sources, "-o", "program", "-lm"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        done = subprocess.run(["./program"], cwd=folder, check=True, capture_output=True, text=True)
        assert done.stdout.startswith("y f32[1,4,6,6]: ")


def test_without_pools_nothing_is_said_of_them() -> None:
    files = compiled(small_models.conv()).files
    assert b'"pools"' not in files["report.json"] and b"uint8_t *arena;" in files["conv.h"]


def test_one_pool_is_a_limit(tmp_path: Path) -> None:
    bytes = arena_bytes("conv")
    assert compiled(small_models.conv(), Options(mem=(Pool("ram", bytes, 1),))).plan.arena_bytes == bytes
    with pytest.raises(CheckFailed, match=f"pool ram of {bytes - 1} bytes is too small"):
        compiled(small_models.conv(), Options(mem=(Pool("ram", bytes - 1, 1),)))


def test_too_small_pools_are_refused_with_what_would_do() -> None:
    small = (Pool("dtcm", 64, 0), Pool("sram", 128, 1))
    with pytest.raises(CheckFailed) as caught:
        compiled(small_models.conv(), Options(mem=small))
    said = str(caught.value)
    assert "pool sram of 128 bytes is too small" in said and "dtcm would hold" in said
    enough = int(said.split("--mem sram=")[1].split()[0])
    assert (
        compiled(small_models.conv(), Options(mem=(small[0], Pool("sram", enough, 1)))).plan.arenas[1].bytes <= enough
    )


def test_the_plan_is_the_same_every_time() -> None:
    first, second = (compiled(small_models.branches(), Options(mem=TWO)).files for _ in range(2))
    assert first == second


def test_state_stays_in_its_pool() -> None:
    options = Options(mem=(Pool("dtcm", 300, 0), Pool("sram", None, 1)), state={"after": "before"})
    package = compiled(STATE, options)
    model = build(package, options.resolved_target())
    x = np.arange(64, dtype=np.float32) / 64
    first, second = model.run({"x": x}, poison=0xA5)["y"], model.run({"x": x})["y"]
    for times, got in ((1, first), (2, second)):
        wanted = np.exp(times * x - times * x.max())
        np.testing.assert_allclose(got, wanted / wanted.sum(), rtol=1e-5)


def test_outer_tensors_stay_outside(tmp_path: Path) -> None:
    made = small_models.conv()
    folder = written(made, tmp_path, Options(mem=TWO, external=(ALL,)))
    agrees(Model.build(folder).run(random_inputs(made), poison=0xA5), reference(made, random_inputs(made)))
    plan = compiled(made, Options(mem=TWO, external=(ALL,))).plan
    assert all(is_outside(tensor.address) for tensor in (*plan.inputs, *plan.outputs))


def test_steps_one_at_a_time_use_all_pools(tmp_path: Path) -> None:
    made = small_models.conv()
    folder = written(made, tmp_path, Options(mem=TWO, slices=True))
    agrees(Model.build(folder).run(random_inputs(made), poison=0xA5), reference(made, random_inputs(made)))


def test_pools_of_a_target_file_are_used(tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    file.write_text(
        'inherits = "generic"\n[[pools]]\nname = "sram"\nspeed = 1\n[[pools]]\nname = "dtcm"\nbytes = 700\nspeed = 0\n'
    )
    assert [pool.name for pool in api.load(str(file)).pools] == ["dtcm", "sram"]
    plan = compile(save(small_models.conv(), tmp_path), Options(target=str(file))).plan
    assert [(arena.pool, arena.limit) for arena in plan.arenas] == [("dtcm", 700), ("sram", None)]


TURNS = """
#include <string.h>
#include "both.h"

static MCC_ALIGNED(BOTH_ARENA_DTCM_ALIGN) uint8_t dtcm[BOTH_ARENA_DTCM_BYTES];
static MCC_ALIGNED(BOTH_ARENA_SRAM_ALIGN) uint8_t sram[BOTH_ARENA_SRAM_BYTES];
static float first[CONV_OUTPUT_Y_COUNT];

static int conv_once(conv_model *m)
{
    for (size_t i = 0; i < CONV_INPUT_X_COUNT; i++) conv_input_x(m)[i] = (float)(i % 7u);
    return conv_run(m) == MCC_OK;
}

int main(void)
{
    conv_model conv;
    mlp_model mlp;
    if (conv_init(&conv, dtcm, sizeof dtcm, sram, sizeof sram, conv_weights, conv_weights_bytes) != MCC_OK) return 1;
    if (mlp_init(&mlp, dtcm, sizeof dtcm, sram, sizeof sram, mlp_weights, mlp_weights_bytes) != MCC_OK) return 2;
    if (!conv_once(&conv)) return 3;
    memcpy(first, conv_output_y(&conv), sizeof first);
    if (mlp_run(&mlp) != MCC_OK || !conv_once(&conv)) return 4;
    return memcmp(first, conv_output_y(&conv), sizeof first) == 0 ? 0 : 5;
}
"""


def test_several_models_take_turns_in_all_pools(tmp_path: Path) -> None:
    paths = [save(make(), tmp_path) for make in (small_models.conv, small_models.mlp)]
    packages, files = compile_several(paths, Options(mem=TWO, name="both"))
    for pool in ("dtcm", "sram"):
        most = max(arena.bytes for package in packages for arena in package.plan.arenas if arena.pool == pool)
        assert f"#define BOTH_ARENA_{pool.upper()}_BYTES ({most}u " in files["both.h"].decode()
    out = tmp_path / "out"
    write_folder(out, files)
    subprocess.run(["make", "-s", "-C", str(out), f"CFLAGS={' '.join(STRICT)}"], check=True, capture_output=True)
    (tmp_path / "turns.c").write_text(TURNS)
    command = ["gcc", *STRICT, f"-I{out}", f"-I{out / 'runtime'}", str(tmp_path / "turns.c"), str(out / "libboth.a")]
    subprocess.run([*command, "-o", str(tmp_path / "turns"), "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "turns")]).returncode == 0


def test_options_are_read_and_refused() -> None:
    read = pools(("sram=256K", "dtcm=64k,fast", "psram"))
    assert read == (Pool("dtcm", 64 << 10, 0), Pool("sram", 256 << 10, 1), Pool("psram", None, 1))
    for text in ("DTCM=4K", "a_bytes=4K", "sram=lots", "sram=4K,slow", "sram="):
        with pytest.raises(ValueError, match="SIZE"):
            pools((text,))
    with pytest.raises(ValueError, match="twice"):
        pools(("sram=1K", "sram=2K"))


def test_an_arduino_sketch_has_an_array_for_each() -> None:
    options = Options(mem=TWO)
    sketch = arrange(compiled(small_models.conv(), options).files, "arduino", "conv", options)
    text = sketch["examples/conv_once/conv_once.ino"].decode()
    assert "CONV_ARENA_DTCM_ALIGN) uint8_t conv_arena_dtcm[CONV_ARENA_DTCM_BYTES + 1u];" in text
    assert "conv_init(&conv, conv_arena_dtcm, sizeof conv_arena_dtcm, conv_arena_sram, sizeof conv_arena_sram, " in text
