"""Draws small models and races each against the peers that are installed: `make race SECONDS=600 SEED=1`.

`drawn_operators.py` draws the cases. All contestants take turns in one process, on one thread. What is slower than the
fastest peer by `SLOW`, by medians and by the fastest runs, is made smaller as long as it stays so, and printed with the
kernels that it got. The same seed draws the same cases.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper

from benchmarks.drawn_operators import Case, drawn, model, shown, smaller
from benchmarks.networks import ours_of
from benchmarks.peers import missing, peers_of
from mccompile.base.errors import UnsupportedModel

SLOW = 1.2
ROUNDS = 5
TURN = 0.01  # seconds of one contestant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peers", nargs="+", default=["onnxruntime", "openvino"])
    given = parser.parse_args()
    for name in missing(given.peers):
        print(f"{name} is not installed (pip install {name}): cases are raced against the others alone", flush=True)
    ended, draws = time.monotonic() + given.seconds, random.Random(given.seed)
    ratios = []
    while time.monotonic() < ended:
        case = drawn(draws)
        ratio, kernels = race(case, given.peers)
        if not ratio:
            continue
        ratios.append(ratio)
        if ratio > SLOW:
            case, ratio, kernels = shrunk(case, ratio, kernels, given.peers, ended)
            print(f"{ratio:6.2f}  {shown(case)}  {', '.join(kernels)}", flush=True)
    if not ratios:
        raise SystemExit("no case was raced: is onnxruntime installed, and --seconds long enough?")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    slow, twice = (sum(ratio > most for ratio in ratios) / len(ratios) for most in (SLOW, 2))
    print(f"{len(ratios)} cases: geometric mean {mean:.3f}, {slow:.0%} above {SLOW}, {twice:.0%} above 2")


def shrunk(
    case: Case, ratio: float, kernels: list[str], peers: list[str], ended: float
) -> tuple[Case, float, list[str]]:
    """Smaller as long as it is as slow, and there is time."""
    for less in smaller(case):
        found, its = race(less, peers) if time.monotonic() < ended else (0.0, [])
        if found > SLOW:
            return shrunk(less, found, its, peers, ended)
    return case, ratio, kernels


def race(case: Case, peers: list[str]) -> tuple[float, list[str]]:
    """mccompile's time over that of the fastest peer, the smaller of medians and fastest runs, and the kernels; 0 where
    one side cannot run it."""
    given = argparse.Namespace(target="native", prefer="time", dim=[], shape=[])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "case.onnx"
        proto = model(case)
        onnx.save(proto, path)
        if case.op in ("Div", "Mod") and not case.is_float and not case.constant:
            _divisible(proto, folder / "test_data_set_0")
        try:
            ours, inputs = ours_of(path, given, folder)
        except UnsupportedModel:
            return 0.0, []
        contestants = [ours, *peers_of(path, inputs, folder, peers)]
        kernels = sorted(_kernels(folder))
        if len(contestants) == 1:
            return 0.0, []
        seconds: list[list[float]] = [[] for _ in contestants]
        runs = [max(2, round(TURN / min(c.times(2)))) for c in contestants]
        for turn in range(ROUNDS):
            for number in range(len(contestants)):
                place = (turn + number) % len(contestants)
                contestants[place].times(1)  # brings what it needs back into the caches
                seconds[place] += contestants[place].times(runs[place])
    medians, fastest = [statistics.median(each) for each in seconds], [min(each) for each in seconds]
    return min(each[0] / min(each[1:]) for each in (medians, fastest)), kernels


def _divisible(proto: ModelProto, folder: Path) -> None:
    """Inputs without a zero, which peers that divide integers by one do not survive."""
    folder.mkdir()
    draws = np.random.default_rng(0)
    for number, value in enumerate(proto.graph.input):
        of = value.type.tensor_type
        numbers = draws.integers(1, 100, [dim.dim_value for dim in of.shape.dim])
        array = numbers.astype(helper.tensor_dtype_to_np_dtype(of.elem_type))
        (folder / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array, value.name).SerializeToString())


def _kernels(folder: Path) -> set[str]:
    report = json.loads((folder / "out" / "report.json").read_text())
    return {step["kernel"] for step in report["steps"]}


if __name__ == "__main__":
    main()
