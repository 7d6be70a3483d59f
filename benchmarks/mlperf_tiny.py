"""Scripted sessions of MLPerf Tiny with emulated boards: `deploy --mlperf-tiny`, its build, the runner's commands.

    python -m benchmarks.mlperf_tiny kws=kws_ref_model.tflite ic=pretrainedResnet_quant.tflite ic02

A benchmark without a file is `ic02`: its network is not published in a form that we have, so one of the shape that
`keras_model.py` of mlcommons/tiny gives it (ResNet-8 with 26 channels), with weights at random. Data sets are not
here: inputs are the `x` of a .npz file beside the model, or random; labels are what LiteRT (onnxruntime for .onnx) says
of them, so `accuracy` is how many of its classes the board gives, and for anomalies the area under the curve where the
upper half of its scores are the odd ones.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from embedded.quantized_models import resnet_int8
from embedded.serial_board import free_port, listening, wait_for
from mccompile.cli import run
from mccompile.measure.eembc import BENCHMARKS
from mccompile.measure.mlperf_runner import Board, as_sent, reals, session
from mccompile.toolchain.serial_line import Port

Network = Callable[[np.ndarray], np.ndarray]


def reference(model: Path) -> Network:
    """What another runtime says of an input."""
    if model.suffix == ".onnx":
        from onnxruntime import InferenceSession

        other = InferenceSession(str(model))
        return lambda x: np.asarray(other.run(None, {other.get_inputs()[0].name: x})[0])
    from ai_edge_litert.interpreter import Interpreter

    lite = Interpreter(str(model), num_threads=1)
    lite.allocate_tensors()
    given, made = lite.get_input_details()[0], lite.get_output_details()[0]

    def ran(x: np.ndarray) -> np.ndarray:
        lite.set_tensor(given["index"], x)
        lite.invoke()
        return np.array(lite.get_tensor(made["index"]))

    return ran


@contextmanager
def emulated(project: Path) -> Iterator[str]:
    """A project for cmake, built and run; gives the name of its line."""
    port, quiet = free_port(), subprocess.DEVNULL
    build = [f"-DEMULATED_SERIAL={listening(port)}", "-S", str(project), "-B", str(project / "build")]
    for command in (["cmake", *build], ["cmake", "--build", str(project / "build")]):
        subprocess.run(command, check=True, stdout=quiet)
    emulate = ["cmake", "--build", str(project / "build"), "--target", "emulate"]
    board = subprocess.Popen(emulate, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        wait_for(port)
        yield f"tcp:127.0.0.1:{port}"
    finally:
        os.killpg(board.pid, signal.SIGKILL)
        board.wait()


def inputs(model: Path, shape: Sequence[int], count: int) -> np.ndarray:
    stored = model.with_suffix(".npz")
    if stored.is_file():
        return np.asarray(np.load(stored)["x"][:count], np.int8)
    return np.random.default_rng(1).integers(-128, 128, (count, *shape)).astype(np.int8)


def sent_and_labels(
    benchmark: str, x: np.ndarray, ran: Network, report: dict[str, Any]
) -> tuple[list[bytes], list[int]]:
    """Inputs as the runner sends them, and what the other runtime says of these."""
    (given,), (made,) = report["inputs"], report["outputs"]
    asked, y = BENCHMARKS[benchmark], [ran(each) for each in x]
    sent = [as_sent(asked, each, given) for each in x]
    if asked.rebuilds:
        errors = [np.mean((reals(out, made) - reals(each, given)) ** 2) for out, each in zip(y, x, strict=True)]
        odd = np.argsort(np.argsort(errors)) >= len(errors) // 2
        return sent, [int(each) for each in odd]
    return sent, [int(np.argmax(each)) for each in y]


def measured(benchmark: str, model: Path, board: str, count: int, runs: int, folder: Path) -> dict[str, Any]:
    project = folder / benchmark
    deploy = ["deploy", str(model), "--mlperf-tiny", benchmark, "--board", board, "--for", "cmake", "-o", str(project)]
    with redirect_stdout(io.StringIO()):
        status = run(deploy)
    if status != 0:
        raise SystemExit(f"{benchmark}: {model} is not deployed")
    report = json.loads((project / "report.json").read_text(encoding="utf-8"))
    x = inputs(model, report["inputs"][0]["shape"], count)
    sent, labels = sent_and_labels(benchmark, x, reference(model), report)
    with emulated(project) as name:
        line = Port(name).open()
        try:
            return session(Board(line), BENCHMARKS[benchmark], sent, labels, runs)
        finally:
            line.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mlperf_tiny", description=__doc__)
    parser.add_argument("models", nargs="+", metavar="BENCHMARK=FILE", help="or ic02 alone")
    parser.add_argument("--board", default="nucleo_l4r5zi")
    parser.add_argument("--count", type=int, default=8, help="inputs")
    parser.add_argument("--runs", type=int, default=3, help="of the performance")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        own = Path(scratch, "resnet_int8.onnx")
        onnx.save(resnet_int8(), own)
        for word in asked.models:
            benchmark, _, file = word.partition("=")
            model = Path(file) if file else own
            found = measured(benchmark, model, asked.board, asked.count, asked.runs, Path(scratch))
            thousands = float(found["microseconds"])  # a nanosecond is an instruction
            right = float(found[BENCHMARKS[benchmark].judged_by])
            rows.append(f"{found['model']:7} {thousands:13,.0f} {right:9.3f}  {model.name}")
    print(f"{'model':7} {'k instr. a run':>14} {'accuracy':>8}  on an emulated {asked.board}", *rows, sep="\n")


if __name__ == "__main__":
    main()
