"""Times mccompile and the peers that are installed on any networks: `python -m benchmarks.networks MODEL.onnx ...`

Beside MODEL.onnx may lie MODEL.in.npy with its input; else inputs are random. All contestants use one thread and take
turns in one run (A B C, B C A, ...), so that a busy machine slows all alike; medians over all runs are compared. Every
result is compared with onnxruntime's: a fast wrong answer is marked. Shares of the peak are of what one core is
measured to do in multiply-adds on registers.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mccompile.base.discovery import data_folder
from mccompile.driver import Options
from mccompile.driver import compile as compile_model
from mccompile.targets import api
from mccompile.toolchain.run import Model

Inputs = Mapping[str, np.ndarray]
ROUNDS = 8
TOLERANCE = 1e-4  # over the largest reference value


@dataclass(frozen=True)
class Contestant:
    name: str
    results: list[np.ndarray]
    times: Callable[[int], list[float]]  # so many runs -> seconds of each
    macs: int = 0
    arena: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="native")
    parser.add_argument("--prefer", default="time")
    parser.add_argument("--seconds", type=float, default=1.0, help="per contestant and model, roughly")
    parser.add_argument("--realtime", action="store_true", help="ask for the core alone (as root, Linux)")
    given = parser.parse_args()
    peak = measured_peak(api.load(given.target))
    print(f"one thread; peak {peak:.1f} GFLOP/s; microseconds, median (fastest)")
    ratios = []
    for path in given.models:
        with tempfile.TemporaryDirectory() as folder:
            ratios.append(bench(path, given, Path(folder), peak))
    known = [ratio for ratio in ratios if ratio]
    if known:
        print(f"geometric mean of the ratio to the fastest peer: {statistics.geometric_mean(known):.3f}")


def bench(path: Path, given: argparse.Namespace, folder: Path, peak: float) -> float | None:
    """Prints a line per model; gives mccompile's time over that of the fastest peer."""
    ours, inputs = ours_of(path, given, folder)
    contestants = [ours]
    for module, load in PEERS.items():
        if importlib.util.find_spec(module) is not None:
            contestants.append(load(path, inputs))
    runs = {c.name: max(2, round(given.seconds / ROUNDS / min(c.times(2)))) for c in contestants}
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    with alone() if given.realtime else nullcontext():
        for turn in range(ROUNDS):
            for number in range(len(contestants)):
                contestant = contestants[(turn + number) % len(contestants)]
                seconds[contestant.name] += contestant.times(runs[contestant.name])
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    parts = [f"{name} {medians[name] * 1e6:.1f} ({min(values) * 1e6:.1f})" for name, values in seconds.items()]
    share = 2e-9 * ours.macs / medians[ours.name] / peak
    line = f"{path.stem:24} {'   '.join(parts)}   {share:.0%} of peak   arena {ours.arena}"
    if len(contestants) == 1:
        print(line, flush=True)
        return None
    ratio = medians[ours.name] / min(medians[c.name] for c in contestants[1:])
    error = max(_difference(a, b) for a, b in zip(ours.results, contestants[1].results, strict=True))
    print(f"{line}   ratio {ratio:.3f}   error {error:.1e}{'' if error <= TOLERANCE else ' WRONG'}", flush=True)
    return ratio


@contextmanager
def alone() -> Iterator[None]:
    """Nothing else runs on the core meanwhile, as far as the operating system can help it."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _difference(got: np.ndarray, want: np.ndarray) -> float:
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return float("inf")
    return float(np.nanmax(np.abs(got - want), initial=0) / max(np.nanmax(np.abs(want), initial=0), 1e-30))


def ours_of(path: Path, given: argparse.Namespace, folder: Path) -> tuple[Contestant, Inputs]:
    target = api.load(given.target)
    package = compile_model(path, Options(target=given.target, prefer=given.prefer))
    package.write(folder / "out")
    model = Model.build(folder / "out", target.compiler, target.cflags)
    stored = path.with_suffix("").with_suffix(".in.npy")
    chance = np.random.default_rng(0)
    inputs: dict[str, np.ndarray] = {}
    for tensor in model.report.inputs:
        shape = tuple(int(size) for size in tensor.shape)
        if stored.is_file() and len(model.report.inputs) == 1:
            inputs[tensor.name] = np.load(stored)
        elif tensor.dtype.is_float:
            inputs[tensor.name] = chance.random(shape).astype(tensor.dtype.numpy)
        else:
            inputs[tensor.name] = chance.integers(0, 2, shape).astype(tensor.dtype.numpy)
    results = list(model.run(inputs).values())
    macs = sum(step.macs for step in package.plan.steps())
    name = f"mccompile {given.target}"
    return Contestant(name, results, lambda n: model.time(inputs, n), macs, package.plan.arena_bytes), inputs


def onnxruntime_of(path: Path, inputs: Inputs) -> Contestant:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_cpu_input(name, np.ascontiguousarray(value))
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    results = [np.asarray(value) for value in binding.copy_outputs_to_cpu()]
    return Contestant("onnxruntime", results, lambda n: _timed(lambda: session.run_with_iobinding(binding), n))


def openvino_of(path: Path, inputs: Inputs) -> Contestant:
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1})
    request = compiled.create_infer_request()
    for name, value in inputs.items():
        request.set_tensor(name, openvino.Tensor(np.ascontiguousarray(value)))
    request.infer()
    results = [np.array(request.get_tensor(output).data) for output in compiled.outputs]
    return Contestant("openvino", results, lambda n: _timed(request.infer, n))


PEERS = {"onnxruntime": onnxruntime_of, "openvino": openvino_of}


def _timed(run: Callable[[], object], count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


def measured_peak(target: api.Target) -> float:
    """GFLOP/s of one core, by a program that does nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "peak")
        source, include = Path(__file__).with_name("peak.c"), data_folder("runtime_c") / "include"
        subprocess.run([target.compiler, *target.cflags, f"-I{include}", str(source), "-o", str(program)], check=True)
        return float(subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
