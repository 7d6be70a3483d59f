"""`mccompile kernel`: one function with its header, and a program that tests and times it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
from mccompile.cli import run
from mccompile.driver import Options
from mccompile.frontend.one_layer import Layer, expected, numbers
from mccompile.measure import correctness
from mccompile.measure.layer import layer_package

STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
LAYERS = {
    "conv of int8": Layer("conv", (1, 9, 7, 8), (8, 3, 3, 8), int8=True),
    "depthwise": Layer("conv", (1, 9, 8, 8), (8, 3, 3, 1), int8=True, strides=(2, 2), relu=True),
    "groups of floats": Layer("conv", (2, 5, 6, 4), (6, 3, 1, 2), pad=0, relu=True),
    "product of int8": Layer("gemm", (3, 20), (5, 20), int8=True),
    "product of floats": Layer("gemm", (2, 33), (7, 33)),
}


def built(folder: Path, compiler: str = "gcc") -> str:
    sources = [str(path) for path in folder.glob("*.c")]
    command = [compiler, *STRICT, f"-I{folder}", f"-I{folder}/runtime", *sources, "-o", str(folder / "t"), "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([str(folder / "t")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("name", LAYERS)
def test_the_program_finds_nothing_wrong(name: str, tmp_path: Path) -> None:
    layer_package(LAYERS[name], Options(prefer="time"), {}, "layer").write(tmp_path / "out")
    said = built(tmp_path / "out", "clang" if shutil.which("clang") and "floats" in name else "gcc")
    assert said.startswith("0 of ") and said.endswith(" us\n")


def test_the_program_finds_a_wrong_weight(tmp_path: Path) -> None:
    package = layer_package(LAYERS["product of int8"], Options(), {}, "layer")
    package.write(tmp_path / "out")
    main = tmp_path / "out" / "main.c"
    text = main.read_text()
    begin = text.index("wanted[")
    first = text.index("\n    ", begin)
    main.write_text(text[:first] + "\n    -128, " + text[first:].lstrip().partition(", ")[2])
    sources = [str(path) for path in (tmp_path / "out").glob("*.c")]
    folder = tmp_path / "out"
    subprocess.run(["gcc", f"-I{folder}", f"-I{folder}/runtime", *sources, "-o", str(folder / "t"), "-lm"], check=True)
    done = subprocess.run([str(folder / "t")], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith("1 of ")


def test_the_model_beside_it_is_what_it_computes(tmp_path: Path) -> None:
    layer_package(LAYERS["conv of int8"], Options(), {}, "layer").write(tmp_path / "out")
    assert correctness.check(tmp_path / "out" / "layer.onnx", Options(target="native"), runs=1).ok


def test_weights_are_those_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "w.npz", w=np.full((2, 3), 2, np.int8), y_scale=np.float32(0.25))
    command = ["kernel", "gemm", "--x", "1,3", "--w", "2,3", "--int8", "--target", "native", "--name", "dense"]
    assert run([*command, "--weights", str(tmp_path / "w.npz"), "-o", str(tmp_path / "out")]) == 0
    assert "dense(m, y, x) by gemm/" in capsys.readouterr().out
    layer = Layer("gemm", (1, 3), (2, 3), int8=True)
    arrays = numbers(layer, dict(np.load(tmp_path / "w.npz")))
    x = np.array([[10, -20, 127]], np.int8)
    assert expected(layer, arrays, x).tolist() == [[round(117 * 2 / 128 / 32 / 0.25)] * 2]


@pytest.mark.parametrize(
    ("layer", "given", "why"),
    [
        (Layer("conv", (1, 3), (2, 3)), {}, "--x is not a shape of conv"),
        (Layer("gemm", (1, 3), (2, 4)), {}, "x and w do not fit"),
        (Layer("conv", (1, 4, 4, 3), (4, 3, 3, 2)), {}, "x and w do not fit"),
        (Layer("conv", (1, 2, 2, 3), (4, 5, 5, 3), pad=0), {}, "nothing comes out"),
        (Layer("gemm", (1, 3), (2, 3)), {"v": np.zeros(1)}, "nothing is called 'v'"),
        (Layer("gemm", (1, 3), (2, 3)), {"w": np.zeros((2, 3))}, "'w' does not fit"),
    ],
)
def test_what_does_not_fit_is_refused(layer: Layer, given: dict[str, np.ndarray], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        layer_package(layer, Options(), given, "layer")
