"""One C file and one header are the whole model, and no other model than the one of many files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_several
from mccompile.toolchain import build
from mccompile.toolchain.run import Model
from tests import small_models
from tests.emit.test_generated_c import COMPILERS
from tests.small_models import compiled, random_inputs, reference, written

SINGLE = Options(single_file=True)


def test_there_are_two_files_of_c_and_an_example() -> None:
    files = compiled(small_models.conv(), SINGLE).files
    assert {name for name in files if name.endswith((".c", ".h"))} == {"conv.c", "conv.h", "main.c"}
    assert files["conv.mcb"] == compiled(small_models.conv()).files["conv.mcb"]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["branches", "text"])
def test_they_compile_without_a_warning(name: str, compiler: str, tmp_path: Path) -> None:
    folder = written(small_models.ALL[name](), tmp_path, SINGLE)
    command = [compiler, *COMPILERS[compiler], "-c", str(folder / f"{name}.c"), "-o", str(tmp_path / "model.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_results_are_right(tmp_path: Path) -> None:
    made = small_models.branches()
    inputs = random_inputs(made)
    results = Model.build(written(made, tmp_path, SINGLE)).run(inputs)
    for name, wanted in reference(made, inputs).items():
        np.testing.assert_allclose(results[name], wanted, rtol=1e-4, atol=1e-5)


REUSED = """
    <ir_version: 10, opset_import: ["" : 21]>
    reused (float[4,3] x, float[4,3] z) => (float[4,1] y) <int64[1] k = {1}>
    {
        v, i = TopK(x, k)  w, l = TopK <largest = 0> (i, k)  u = GatherElements <axis = 1> (x, w)
        s, q = TopK(u, k)  j = GatherElements <axis = 1> (w, q)  y = GatherElements <axis = 1> (z, j)
    }
"""


@pytest.mark.parametrize("level", ["-O1", "-O2"])
@pytest.mark.parametrize("compiler", ["clang", "clang-19", "gcc"])
def test_memory_that_other_types_reuse_is_right_where_all_is_seen_at_once(
    compiler: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clang 19 stored the floats of a step behind the integers of the next one, once it had inlined both."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    monkeypatch.setattr(build, "LEVEL", level)
    made = parser.parse_model(REUSED)
    chance = np.random.default_rng(1)
    inputs = {name: chance.standard_normal((4, 3)).astype(np.float32) for name in ("x", "z")}
    results = Model.build(written(made, tmp_path, SINGLE), compiler, ["-std=c99"]).run(inputs)
    np.testing.assert_array_equal(results["y"], reference(made, inputs)["y"])


def test_no_step_is_inlined() -> None:
    header = compiled(small_models.branches()).files["branches_kernels.h"].decode()
    declared = re.findall(r"^.*\bbranches_\w+\(", header, re.MULTILINE)
    assert declared and all(line.startswith("MCC_APART ") for line in declared)


def test_two_of_them_go_into_one_program(tmp_path: Path) -> None:
    folders = [written(made, tmp_path, SINGLE) for made in (small_models.conv(), small_models.branches())]
    sources = [str(folder / f"{folder.name}.c") for folder in folders]
    program = Path(__file__).with_name("two_models.c")
    command = ["gcc", "-std=c99", f"-I{tmp_path}", *(f"-I{folder}" for folder in folders), *sources, str(program)]
    subprocess.run([*command, "-o", str(tmp_path / "program"), "-lm"], check=True, capture_output=True)


def test_several_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="--single-file"):
        compile_several([tmp_path / "a.onnx", tmp_path / "b.onnx"], SINGLE)
