"""Own models on every target that can be emulated: results equal the reference's, blobs are guarded there too, and
code for a core needs nothing that the core has not. Nothing is skipped: what is missing is an error.

    make test-embedded                 installs what it needs, and runs this
    make test-embedded ZOO=folder      also models of a folder (a folder per model, with model.onnx)
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from embedded.models import NAMES, path_of
from embedded.quantized_models import in_four_bits, separable_int8
from embedded.table import in_palettes
from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.check.inputs import stored_sets
from mccompile.driver import Options, compile, compile_graph
from mccompile.emit.blob import Carrier
from mccompile.frontend.load import load
from mccompile.measure.correctness import build, check
from mccompile.passes.io.io_forms import InputForm
from mccompile.targets import api
from mccompile.toolchain.emulate import Emulated, run_command
from mccompile.toolchain.wasm import with_counters
from tests import small_models
from tests.passes.graph import exact_qdq
from tests.passes.program.test_split_phases import upscaler
from tests.small_models import conv, node, random_inputs, save, written
from tests.toolchain.test_wasm import loop, program

TARGETS = tuple(name for name in api.names() if api.load(name).run)
# All models on cores that differ much from each other; on their relatives those that need most of a core.
DIFFERENT = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
DEMANDING = ("digits", "integers", "recurrent", "separable_int8")
MATRIX = [(t, m) for t in TARGETS for m in (NAMES if t in DIFFERENT else DEMANDING)]
ZOO = os.environ.get("ZOO", "")
# Small enough for a microcontroller; whatever of it the folder has.
ZOO_NAMES = (
    "ad_toycar_f32",
    "digits_cnn_qdq_int8",
    "digits_dscnn_qop_uint8",
    "digits_gru",
    "go1_policy",
    "ic_resnet8_int8",
    "kws_dscnn_f32",
    "kws_dscnn_int8",
    "magic_wand_imu",
    "mnist_cntk",
    "mnist_convinteger",
    "skl_diabetes_gbr",
    "skl_iris_logreg",
    "vww96_int8",
    "wine_mlp",
)


@pytest.mark.parametrize(("target", "model"), MATRIX)
def test_results_are_right(target: str, model: str, tmp_path: Path) -> None:
    verdict = check(path_of(model, tmp_path), Options(target=target), runs=1)
    assert verdict.ok, [output for run in verdict.runs for output in run.outputs if not output.ok]


@pytest.mark.parametrize("target", ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc", "aarch64", "wasm32"))
def test_an_input_comes_row_by_row(target: str, tmp_path: Path) -> None:
    """Each row once and in order, or mcc_fetch_array would refuse it."""
    path = save(separable_int8(), tmp_path)
    (name,) = (entry.name for entry in separable_int8().graph.input)
    options = Options(target=target, inputs={name: InputForm(rows=True)})
    assert check(path, options, runs=1).ok
    whole, rows = compile(path, Options(target=target)).plan, compile(path, options).plan
    assert rows.arena_bytes <= whole.arena_bytes


@pytest.mark.parametrize("target", ("cortex-m0", "cortex-m4", "cortex-m55", "aarch64", "riscv64v", "wasm32"))
def test_a_part_runs_in_tiles_of_columns(target: str, tmp_path: Path) -> None:
    path = save(separable_int8(), tmp_path)
    options = Options(target=target, prefer="ram")
    possible = compile_graph(load(path), replace(options, recompute=4.0), "net").column_tiles
    longest = max(possible, key=lambda cost: cost.macs).column_tiles
    verdict = check(path, replace(options, column_tiles=(longest,)), runs=1)
    assert verdict.ok and verdict.package.macs > compile(path, options).macs


@pytest.mark.parametrize("target", ("cortex-m4", "armv7a", "aarch64", "riscv64v", "riscv64v256", "wasm32"))
def test_pictures_grow_where_time_comes_first(target: str, tmp_path: Path) -> None:
    """Transposed convolutions phase by phase, and a resize."""
    assert check(save(upscaler(), tmp_path), Options(target=target, prefer="time"), runs=1).ok


@pytest.mark.parametrize("target", ("cortex-m4", "rv32imc", "aarch64", "wasm32"))
def test_free_sizes_and_states_run_under_emulation(target: str, tmp_path: Path) -> None:
    """Sizes go in and come out; the state is set back between the two runs of a step, and carried to the next."""
    text = """g (float[n,3] x, float[n,3] s, int8[m] q) => (float[n,3] y, float[n,3] t, int8[m] p) {
        a = Add(x, s)
        t = Tanh(a)
        y = Neg(t)
        p = Neg(q)
    }"""
    path = save(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path)
    options = Options(target=target, state={"t": "s"}, dims={"n": (1, 5), "m": (2, 9)})
    verdict = check(path, options)
    assert verdict.ok and len(verdict.runs) == 6 and not any(run.skipped for run in verdict.runs)


@pytest.mark.parametrize("target", ("cortex-m4", "riscv64"))
def test_sizes_that_follow_from_data_run_under_emulation(target: str, tmp_path: Path) -> None:
    text = "g (float[20] x) => (int64[1,n] y) { z = Relu(x) y = NonZero(z) }"
    path = save(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path)
    assert check(path, Options(target=target)).ok


@pytest.mark.skipif(not ZOO, reason="no folder given with ZOO=")
@pytest.mark.parametrize("model", ZOO_NAMES)
@pytest.mark.parametrize("target", DIFFERENT)
def test_results_of_the_zoo_are_right(target: str, model: str) -> None:
    path, options = Path(ZOO, model, "model.onnx"), Options(target=target, name=model)
    verdict = check(path, options, path.parent)
    wrong = [output for run in verdict.runs for output in run.outputs if not output.ok]
    assert verdict.ok or is_exact(path, options), wrong


def is_exact(path: Path, options: Options) -> bool:
    """Stored integers may come from floats that were rounded twice; those of exact arithmetic are right as well."""
    built = build(compile(path, options), options.resolved_target())
    inputs = [value.name for value in load(path).inputs]
    sets = [(built.run(each.inputs), each) for each in stored_sets(path.parent, inputs)]
    exact = [(results, exact_qdq.run(onnx.load(path), each.inputs)) for results, each in sets]
    return all(np.array_equal(results[name], right[name]) for results, right in exact for name in results)


def test_the_smallest_core_runs_on_itself(tmp_path: Path) -> None:
    """No FPU, no unaligned access, no instruction of later cores."""
    assert "microbit" in api.load("cortex-m0").run
    assert check(path_of("conv", tmp_path), Options(target="cortex-m0"), runs=1).ok


@pytest.mark.parametrize(("target", "machine"), [("cortex-m3", "microbit"), ("cortex-m4", "mps2-an385")])
def test_code_for_a_larger_core_dies_on_a_smaller_one(target: str, machine: str, tmp_path: Path) -> None:
    """So the run above proves something."""
    own = tmp_path / "mine.toml"
    own.write_text(f'inherits = "{target}"\nrun = "{re.sub("-M [^ ]+", f"-M {machine}", api.load(target).run)}"\n')
    folder = written(conv(), tmp_path, Options(target=target))
    model = Emulated.build(folder, api.load(str(own)))
    with pytest.raises(CheckFailed, match="failed under emulation"):
        model.run(random_inputs(conv()))


def test_a_user_program_for_a_larger_core_dies_on_a_smaller_one(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('inherits = "armv7a"\nrun = "qemu-arm -cpu arm1026 -L /usr/arm-linux-gnueabihf"\n')
    model = Emulated.build(written(conv(), tmp_path, Options(target="armv7a")), api.load(str(own)))
    with pytest.raises(CheckFailed, match="failed under emulation"):
        model.run(random_inputs(conv()))


def test_what_no_board_has_memory_for_is_refused(tmp_path: Path) -> None:
    size, nodes = 1 << 20, [node("Relu", "x", "h"), node("CumSum", "h axis", "y")]
    big = small_models.model("big", nodes, [("x", [size])], [("y", [size])], {"axis": np.array(0)})
    with pytest.raises(WrongUse, match=r"does not fit into the memory of mps2-an386(.|\n)*overflowed by \d+ bytes"):
        check(save(big, tmp_path), Options(target="cortex-m4"), runs=1)


def test_damaged_weights_are_refused_on_the_target(tmp_path: Path) -> None:
    folder = written(conv(), tmp_path, Options(target="cortex-m0"))
    source = folder / "conv_weights.c"
    words = list(re.finditer("0x[0-9A-F]{16}", source.read_text()))
    for word in (words[0], words[len(words) // 2], words[-1]):
        text = source.read_text()
        changed = f"0x{int(word[0], 16) ^ 1:016X}"
        source.write_text(text[: word.start()] + changed + text[word.end() :])
        with pytest.raises(CheckFailed, match="init failed"):
            Emulated.build(folder, api.load("cortex-m0")).run(random_inputs(conv()))
        source.write_text(text)


def test_a_write_past_the_arena_is_noticed(tmp_path: Path) -> None:
    folder = written(conv(), tmp_path, Options(target="cortex-m4"))
    source = folder / "conv.c"
    text = source.read_text()
    source.write_text(
        text.replace("    return MCC_OK;\n}\n", "    m->arena[CONV_ARENA_BYTES] = 1u;\n    return MCC_OK;\n}\n")
    )
    assert source.read_text() != text
    with pytest.raises(CheckFailed, match="wrote outside of the arena"):
        Emulated.build(folder, api.load("cortex-m4")).run(random_inputs(conv()))


def test_the_stack_that_is_measured_is_the_stack_that_is_used(tmp_path: Path) -> None:
    folder = written(conv(), tmp_path, Options(target="cortex-m4"))
    inputs = random_inputs(conv())
    before = Emulated.build(folder, api.load("cortex-m4")).count(inputs).run_stack
    source = folder / "conv.c"
    body = "    volatile uint8_t deep[600];\n    for (int i = 0; i < 600; i++) deep[i] = 1u;\n"
    marker = "mcc_status conv_run(conv_model *m)\n{\n"
    source.write_text(source.read_text().replace(marker, marker + body))
    after = Emulated.build(folder, api.load("cortex-m4")).count(inputs).run_stack
    assert before is not None and after is not None
    assert 600 <= after - before <= 632


@pytest.mark.parametrize("target", ["cortex-m4", "wasm32"])
def test_counts_are_the_same_every_time(target: str, tmp_path: Path) -> None:
    path = path_of("conv", tmp_path)
    folder = tmp_path / "out"
    compile(path, Options(target=target)).write(folder)
    model = Emulated.build(folder, api.load(target))
    assert model.count(random_inputs(conv())) == model.count(random_inputs(conv()))


def test_programs_for_webassembly_count_exactly(tmp_path: Path) -> None:
    (tmp_path / "counting.wasm").write_bytes(with_counters(program(loop(5), loop(9), b"\x01")))
    command = [*run_command(api.load("wasm32")), "counting.wasm", "counts.txt"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "counts.txt").read_text().split() == ["16", "28", "1"]  # each with the call that ends it


def test_one_program_runs_on_vectors_of_any_length(tmp_path: Path) -> None:
    target = api.load("riscv64v")
    assert "vlen=128" in target.run
    for bits in (128, 256, 512):
        own = tmp_path / f"vlen{bits}.toml"
        own.write_text(f'inherits = "riscv64v"\nrun = "{target.run.replace("vlen=128", f"vlen={bits}")}"\n')
        for model in ("digits", "separable_int8"):
            assert check(path_of(model, tmp_path), Options(target=str(own), name=model), runs=1).ok


@pytest.mark.parametrize(
    ("target", "carrier"), [*(("cortex-m0", carrier) for carrier in Carrier), ("wasm32", "external")]
)
def test_weights_come_in_every_way(target: str, carrier: str, tmp_path: Path) -> None:
    verdict = check(path_of("conv", tmp_path), Options(target=target, blob=carrier), runs=1)
    assert verdict.ok


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("prefer", ["flash", "time"])
@pytest.mark.parametrize("model", ["autoencoder_int8", "residual_int8", "separable_int8"])
def test_integers_are_right_whatever_is_preferred(model: str, prefer: str, target: str, tmp_path: Path) -> None:
    assert check(path_of(model, tmp_path), Options(target=target, prefer=prefer), runs=1).ok


@pytest.mark.parametrize("prefer", ["ram", "time"])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7", "cortex-m33"])
def test_runs_of_floats_are_right(target: str, prefer: str, tmp_path: Path) -> None:
    """Of 1, 2, 3 and 4 numbers and more, cut at edges, for one position or row and for two."""
    nodes = [
        node("Conv", "x w1", "a", pads=[1, 4, 1, 4]),
        node("Conv", "a w2", "b", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Conv", "b w6", "each", pads=[1, 1, 1, 1], group=16),
        node("Conv", "each w3", "c"),
        node("Reshape", "c shape", "rows"),
        node("MatMul", "rows w4", "d"),
        node("MatMul", "d w5", "y"),
    ]
    shapes = {"w1": (8, 1, 3, 9), "w2": (16, 8, 3, 3), "w3": (8, 16, 1, 1), "w4": (48, 16), "w5": (16, 8)}
    shapes["w6"] = (16, 1, 3, 3)
    weights = {name: small_models.floats(number, *shape) for number, (name, shape) in enumerate(shapes.items())}
    weights["shape"] = np.array([5, 48])
    made = small_models.model("runs", nodes, [("x", (1, 1, 9, 11))], [("y", (5, 8))], weights)
    path, options = save(made, tmp_path), Options(target=target, prefer=prefer)
    kernels = [function.kernel.isa for function in compile(path, options).plan.functions]
    assert kernels.count("fpu") == 6
    assert check(path, options, runs=1).ok


@pytest.mark.parametrize("times", [16, 60])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7"])
def test_weights_of_four_bits_are_right(target: str, times: float, tmp_path: Path) -> None:
    """Sums are shifted little, not at all, and raised; all but the first weights have kernels that unpack them."""
    path, options = save(in_four_bits(separable_int8(), times), tmp_path), Options(target=target, prefer="flash")
    packings = [entry.packing for entry in compile(path, options).plan.entries]
    assert sum("nibbles" in packing and packing.startswith("dsp") for packing in packings) >= 7
    assert check(path, options, runs=1).ok


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7"])
@pytest.mark.parametrize("model", ["autoencoder_int8", "residual_int8", "separable_int8"])
def test_weights_of_sixteen_values_are_right(model: str, target: str, tmp_path: Path) -> None:
    """Single rows, windows and single elements of all channels, each channel for itself."""
    path, options = in_palettes(path_of(model, tmp_path), tmp_path / "few.onnx"), Options(target=target, prefer="flash")
    packings = [entry.packing for entry in compile(path, options).plan.entries]
    assert sum("indices" in packing and packing.startswith("dsp") for packing in packings) >= 5
    assert check(path, options, runs=1).ok


def test_no_function_needs_much_stack(tmp_path: Path) -> None:
    """As the compiler counts, which sees all paths."""
    target = api.load("cortex-m4")
    for name in ("autoencoder_int8", "digits", "separable_int8"):
        folder = tmp_path / name
        compile(path_of(name, tmp_path), Options(target=target.name, prefer="time")).write(folder)
        prefix = next(folder.glob("*_kernels.c")).name.removesuffix("_kernels.c")
        for source in (f"{prefix}.c", f"{prefix}_kernels.c"):
            command = [target.compiler, *target.cflags, f"-I{folder / 'runtime'}", "-fstack-usage", "-c", source]
            subprocess.run(command, cwd=folder, check=True)
        lines = [line.split("\t") for path in folder.glob("*.su") for line in path.read_text().splitlines()]
        assert lines and max(int(line[1]) for line in lines) <= 512
