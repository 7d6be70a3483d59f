"""What there is besides speed: `python -m benchmarks.start MODEL.onnx` measures how long a program takes from its start
to its first result and the most memory it holds, and what a call of a network that does almost nothing costs.

onnxruntime runs in Python, which costs time and memory of its own: a program that only loads numpy is measured with it
and taken off. Files are in the page cache for all. The fastest of several starts counts, so that others do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.bench import build, timed_program
from benchmarks.own_models import OwnModel, compile_to_c, run
from mccompile.targets import api

STARTS = 15
CALLS = 1_000_000
PYTHON = "import numpy"
ONNXRUNTIME = """
import sys
import numpy as np
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
first = session.get_inputs()[0]
print(session.run(None, {first.name: np.zeros(first.shape, np.float32)})[0].ravel()[0])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        starts(given.model, Path(folder))
        print(f"a call of Relu on 16 floats: {call_nanoseconds(Path(folder)):.1f} ns")


def starts(model: Path, folder: Path) -> None:
    target = api.load("native")
    launcher = folder / "launch"
    run([target.compiler, "-O2", str(Path(__file__).with_name("launch.c")), "-o", str(launcher)])
    generated = compile_to_c(OwnModel(model, "", ""), target, folder / "out")
    program = folder / "program"
    files = [*map(str, generated.sources()), str(generated.folder / "main.c")]
    run([target.compiler, *generated.compile_flags(), *files, "-o", str(program), "-lm"])
    python = [sys.executable, "-c"]
    ours = start_of(launcher, [str(program)])
    theirs = start_of(launcher, [*python, ONNXRUNTIME, str(model)])
    nothing = start_of(launcher, [*python, PYTHON])
    for name, (seconds, kib) in (
        ("mccompile, C", ours),
        ("onnxruntime, Python", theirs),
        ("numpy, Python", nothing),
        ("onnxruntime less numpy", (theirs[0] - nothing[0], theirs[1] - nothing[1])),
    ):
        print(f"{model.stem} {name:24} first result after {seconds * 1e3:7.1f} ms, at most {kib / 1024:6.1f} MiB")


def start_of(launcher: Path, command: list[str]) -> tuple[float, int]:
    """Seconds and KiB."""
    found = [run([str(launcher), *command]).split() for _ in range(STARTS)]
    return min(float(seconds) for seconds, _ in found), min(int(kib) for _, kib in found)


def call_nanoseconds(folder: Path) -> float:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "nothing", values[:1], values[1:])
    path = folder / "nothing.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    model = OwnModel(path, "x", "y")
    program = build(model, compile_to_c(model, api.load("native"), folder / "nothing"), folder / "timing-nothing")
    np.zeros(16, np.float32).tofile(folder / "input")
    contestant = timed_program(program, folder / "input", folder / "output")
    return min(contestant(CALLS) for _ in range(5))


if __name__ == "__main__":
    main()
