"""How fast the project's own models run, against onnxruntime with one thread: `make bench`.

The contestants take turns, and medians over the rounds are compared, so that a busy machine slows all alike. What a
call from Python costs onnxruntime is measured with a network that does nothing, and told apart. The results are
compared as well: a fast wrong answer ends the benchmark.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from benchmarks.own_models import OWN_MODELS, Generated, OwnModel, compile_to_c, missing, run
from mccompile.targets import api

TARGETS = ("generic", "native")
ROUNDS = 15
ROUND_SECONDS = 0.05  # roughly, per contestant
TOLERANCE = 1e-4  # over the largest reference value

Floats = NDArray[np.float32]
Contestant = Callable[[int], float]  # how many runs -> nanoseconds per run


def main() -> None:
    for model in OWN_MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            bench(model, Path(temporary))


def bench(model: OwnModel, folder: Path) -> None:
    shape = [d.dim_value for d in onnx.load(model.path).graph.input[0].type.tensor_type.shape.dim]
    data: Floats = np.random.default_rng(0).random(shape, dtype=np.float32)
    data.tofile(folder / "input")
    contestants: dict[str, Contestant] = {}
    results: dict[str, Callable[[], Floats]] = {}
    for name in TARGETS:
        target = api.load(name)
        if missing(target.compiler):
            print(f"{model.name}: mccompile {name} skipped: {target.compiler} is not installed")
            continue
        title = f"mccompile {name}"
        program = build(model, compile_to_c(model, target, folder / name), folder / f"timing-{name}")
        contestants[title] = timed_program(program, folder / "input", folder / f"output-{name}")
        results[title] = stored_result(folder / f"output-{name}")
    if importlib.util.find_spec("onnxruntime") is None:
        print("onnxruntime skipped: it is not installed (pip install 'mccompile[bench]')")
    else:
        answer, contestants["onnxruntime"] = onnxruntime_session(model.path.read_bytes(), data)
        nothing = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        same = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "nothing", [nothing], [same])
        empty = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        contestants["onnxruntime, doing nothing"] = onnxruntime_session(empty.SerializeToString(), data)[1]

    runs = {title: max(1, round(ROUND_SECONDS * 1e9 / contestant(20))) for title, contestant in contestants.items()}
    times: dict[str, list[float]] = {title: [] for title in contestants}
    for _ in range(ROUNDS):
        for title, contestant in contestants.items():
            times[title].append(contestant(runs[title]))
    medians = {title: statistics.median(values) / 1000 for title, values in times.items()}

    print(f"{model.name}: microseconds per run, median of {ROUNDS} rounds (fastest round), one thread")
    for title, values in times.items():
        line = f"  {title:<28} {medians[title]:>9.2f} ({min(values) / 1000:.2f})"
        if title in results and "onnxruntime" in medians:
            net = medians["onnxruntime"] - medians["onnxruntime, doing nothing"]
            ratio, net_ratio = medians["onnxruntime"] / medians[title], net / medians[title]
            line += f"   {ratio:.2f} x onnxruntime's speed, {net_ratio:.2f} x without its cost of a call"
            difference = np.abs(results[title]() - answer.ravel()).max() / np.abs(answer).max()
            if not difference <= TOLERANCE:
                sys.exit(f"{title} computes something else: largest relative difference {difference:.3g}")
        print(line)


def build(model: OwnModel, generated: Generated, program: Path) -> Path:
    text = Path(__file__).with_name("timing.c.in").read_text(encoding="utf-8")
    for key, word in (("name", model.name), ("input", model.input), ("output", model.output)):
        text = text.replace(f"@{key}@", word).replace(f"@{key.upper()}@", word.upper())
    source = program.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    files = [str(path) for path in (source, *generated.sources())]
    run([generated.target.compiler, *generated.compile_flags(), *files, "-o", str(program), "-lm"])
    return program


def timed_program(program: Path, data: Path, output: Path) -> Contestant:
    return lambda runs: float(run([str(program), str(data), str(output), str(runs)]))


def stored_result(path: Path) -> Callable[[], Floats]:
    return lambda: np.fromfile(path, np.float32)


def onnxruntime_session(model: bytes, data: Floats) -> tuple[Floats, Contestant]:
    """The first output, and a contestant that keeps input and output bound, so that nothing is copied in Python."""
    import onnxruntime  # optional

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input(session.get_inputs()[0].name, data)
    binding.bind_output(session.get_outputs()[0].name)

    def timed(runs: int) -> float:
        for _ in range(runs // 10 + 1):
            session.run_with_iobinding(binding)
        start = time.perf_counter()
        for _ in range(runs):
            session.run_with_iobinding(binding)
        return (time.perf_counter() - start) * 1e9 / runs

    timed(1)
    answer: Floats = binding.copy_outputs_to_cpu()[0]
    return answer, timed


if __name__ == "__main__":
    main()
