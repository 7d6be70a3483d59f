"""Several models in one folder: what they have in common stands once, and each is what it is alone."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile, compile_several
from mccompile.emit.package import write_folder
from mccompile.passes.io.io_forms import InputForm
from tests import small_models
from tests.emit.test_generated_c import STRICT
from tests.small_models import random_inputs, reference, save


def three(folder: Path) -> list[Path]:
    """Two of one architecture, and another one."""
    twin = small_models.conv(seed=9)
    twin.graph.name = "twin"
    return [save(made, folder) for made in (small_models.conv(), twin, small_models.branches())]


def test_equal_kernels_stand_once_and_the_runtime_too(tmp_path: Path) -> None:
    packages, files = compile_several(three(tmp_path), Options(name="all"))
    defined = [
        name
        for path, contents in files.items()
        if path.endswith("_kernels.c")
        for name in re.findall(r"^void (\w+)\(", contents.decode(), re.MULTILINE)
    ]
    assert len(defined) == len(set(defined))
    alone = sum(len(package.plan.functions) for package in packages)
    shared = json.loads(files["report.json"])["shared_functions"]
    assert shared == len(packages[0].plan.functions) and len(defined) == alone - shared
    assert sum(path.endswith("mcc.h") for path in files) == 1


def test_a_model_among_others_takes_the_blob_that_it_has_alone(tmp_path: Path) -> None:
    paths = three(tmp_path)
    _, files = compile_several(paths, Options())
    for path in paths:
        alone = compile(path, Options()).files
        for name in (f"{path.stem}.mcb", f"{path.stem}.h", f"{path.stem}_weights.c"):
            assert files[name] == alone[name]


def test_all_are_right_in_one_program(tmp_path: Path) -> None:
    _, files = compile_several(three(tmp_path), Options())
    out = tmp_path / "out"
    write_folder(out, files)
    subprocess.run(["make", "-s", "-C", str(out), f"CFLAGS={' '.join(STRICT)}"], check=True, capture_output=True)
    program = tmp_path / "program"
    links = [f"-I{tmp_path}", f"-I{out}/runtime", str(Path(__file__).with_name("two_models.c")), f"{out}/libmodels.a"]
    for name in ("conv", "branches"):
        (tmp_path / name).symlink_to(out)
    subprocess.run(["gcc", "-std=c99", *links, "-o", str(program), "-lm"], check=True, capture_output=True)
    models = [small_models.conv(), small_models.conv(), small_models.branches(), small_models.branches()]
    inputs = [random_inputs(made, seed) for made, seed in zip(models, (1, 2, 1, 2), strict=True)]
    fed = b"".join(array.tobytes() for given in inputs for array in given.values())
    done = subprocess.run([str(program)], input=fed, capture_output=True, check=True)
    wanted = [reference(made, given) for made, given in zip(models, inputs, strict=True)]
    flat = np.concatenate([array.reshape(-1) for results in wanted for array in results.values()])
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32), flat, rtol=1e-4, atol=1e-5)


def test_one_arena_holds_each_of_them(tmp_path: Path) -> None:
    packages, files = compile_several(three(tmp_path), Options(name="all"))
    most = max(package.plan.arena_bytes for package in packages)
    assert f"#define ALL_ARENA_BYTES ({most}u + 2u * MCC_CANARY_BYTES)" in files["all.h"].decode()


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    path = save(small_models.conv(), tmp_path)
    with pytest.raises(WrongUse, match="two things would be called 'conv'"):
        compile_several([path, path], Options())


def test_names_are_for_the_models_that_have_them(tmp_path: Path) -> None:
    """Sizes, states and forms of one model stand beside another that has no such names."""
    mlp, step = small_models.mlp(), small_models.model(
        "step", [small_models.node("Add", "x h", "g"), small_models.node("Relu", "g", "y")],
        [("x", ("n", 4)), ("h", ("n", 4))], [("y", ("n", 4)), ("g", ("n", 4))],
    )  # fmt: skip
    paths = [save(made, tmp_path) for made in (mlp, step)]
    forms = {"in/put:0": InputForm(scale=(2.0,))}
    packages, _ = compile_several(
        paths, Options(dims={"n": (1, 3)}, state={"g": "h"}, inputs=forms, external=("x",), observe=("a1",))
    )
    one, other = (json.loads(package.files["report.json"]) for package in packages)
    assert [each["name"] for each in one["outputs"]] == ["out.put", "a1"] and not one.get("states")
    assert [each["name"] for each in other["states"]] == ["h"] and "external" in other["inputs"][0]
    with pytest.raises(WrongUse, match="there is no free dimension 'm'"):
        compile_several(paths, Options(dims={"n": (1, 3), "m": (1, 2)}))
    with pytest.raises(WrongUse, match="there is no output 'f'"):
        compile_several(paths, Options(dims={"n": (1, 3)}, state={"f": "h"}))
