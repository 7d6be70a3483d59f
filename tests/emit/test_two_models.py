"""Models share a program without getting in each other's way; blobs and code find out whether they belong together."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import CheckFailed
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import compiled, random_inputs, reference, written

SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def test_two_models_two_instances_each_in_turns(tmp_path: Path) -> None:
    models = [small_models.conv(), small_models.branches()]
    sources = []
    for made in models:
        folder = written(made, tmp_path)
        sources += [str(path) for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    program = tmp_path / "program"
    runtimes = [f"-I{tmp_path}/{made.graph.name}/runtime" for made in models]
    command = ["gcc", "-std=c99", "-O1", f"-I{tmp_path}", *runtimes, *sources]
    command += [str(Path(__file__).with_name("two_models.c")), "-o", str(program), "-lm"]
    built = subprocess.run([*command, *SANITIZED], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    inputs = [random_inputs(made, seed) for made in models for seed in (1, 2)]
    fed = b"".join(array.tobytes() for given in inputs for array in given.values())
    done = subprocess.run([str(program)], input=fed, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    wanted = [reference(made, given) for made, given in zip([models[0]] * 2 + [models[1]] * 2, inputs, strict=True)]
    flat = np.concatenate([array.reshape(-1) for results in wanted for array in results.values()])
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32), flat, rtol=1e-4, atol=1e-5)


def test_weights_trained_anew_run_on_the_code_of_old_ones(tmp_path: Path) -> None:
    old = written(small_models.conv(seed=0), tmp_path)
    trained = small_models.conv(seed=50)
    (old / "conv.mcb").write_bytes(compiled(trained).files["conv.mcb"])
    inputs = random_inputs(trained)
    np.testing.assert_allclose(Model.build(old).run(inputs)["y"], reference(trained, inputs)["y"], rtol=1e-4, atol=1e-5)


def test_code_does_not_depend_on_the_values_of_weights() -> None:
    first, second = compiled(small_models.conv(seed=0)).files, compiled(small_models.conv(seed=50)).files
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {"conv.mcb", "conv_weights.c", "report.json"}  # which lists the hashes of files


def test_the_blob_of_another_architecture_is_refused(tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path)
    made = small_models.conv()
    made.graph.node[0].attribute[0].ints[:] = [2, 2, 0, 0]  # other pads: the same weights, another network
    other = compiled(made).files["conv.mcb"]
    assert len(other) == (folder / "conv.mcb").stat().st_size
    (folder / "conv.mcb").write_bytes(other)
    with pytest.raises(CheckFailed, match="conv_init failed"):
        Model.build(folder)


def test_a_damaged_blob_is_refused(tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path)
    contents = bytearray((folder / "conv.mcb").read_bytes())
    contents[-70] ^= 1
    (folder / "conv.mcb").write_bytes(contents)
    with pytest.raises(CheckFailed, match="conv_init failed"):
        Model.build(folder)


def test_the_folder_runs_after_being_moved(tmp_path: Path) -> None:
    made = small_models.branches()
    moved = tmp_path / "else where"
    shutil.move(written(made, tmp_path), moved)
    inputs = random_inputs(made)
    results, wanted = Model.build(moved).run(inputs), reference(made, inputs)
    for name, array in wanted.items():
        np.testing.assert_allclose(results[name], array, rtol=1e-4, atol=1e-5)
