"""Draws small models and races each against the peers that are installed: `make race SECONDS=600 SEED=1`.

A case is an operator with its attributes, a shape, an element type, and what stands before and behind it. All
contestants take turns in one process, on one thread. What is slower than the fastest peer by `SLOW`, by medians and by
the fastest runs, is made smaller as long as it stays so, and printed with the kernels that it got. The same seed draws
the same cases.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks.networks import ours_of
from benchmarks.peers import missing, peers_of
from mccompile.base.errors import UnsupportedModel

SLOW = 1.2
ROUNDS = 5
TURN = 0.01  # seconds of one contestant
LEAST = 1 << 12  # elements that a smaller case still has: below, calls are what is timed
# fmt: off
UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
    "ThresholdedRelu", "Celu",
)
# fmt: on
BINARY = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Mod", "PRelu")
REDUCED = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd", "ReduceLogSumExp")
NORMALIZED = ("Softmax", "LogSoftmax", "LayerNormalization", "InstanceNormalization", "LRN")
POOLED = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
MOVED = ("Transpose", "TopK", "Concat", "CumSum")
INTEGERS = ("Add", "Sub", "Mul", "Div", "Max", "BitwiseAnd", "BitwiseXor")
TYPES = {"f32": TensorProto.FLOAT, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "u8": TensorProto.UINT8}
MOVING, RESHAPING = ("Transpose", "Conv"), (*REDUCED, *POOLED, *MOVED)  # these need shapes that those change
NEIGHBOURS = ("", "Relu", "Sigmoid", "Transpose", "Conv")


@dataclass(frozen=True)
class Case:
    op: str
    shape: tuple[int, ...]
    dtype: str = "f32"
    number: float = 2.0  # what a binary operator takes, and where it comes from
    constant: bool = True
    axes: tuple[int, ...] = ()
    window: int = 3
    stride: int = 1
    before: str = ""
    behind: str = ""


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


def shown(case: Case) -> str:
    """The fields that are not what they are by default."""
    usual = Case(case.op, case.shape)
    always = ("op", "shape")
    said = [key for key, value in vars(case).items() if key in always or value != getattr(usual, key)]
    return ", ".join(f"{key}={getattr(case, key)}" for key in said)


def drawn(draws: random.Random) -> Case:
    family = draws.choice((UNARY, UNARY, BINARY, REDUCED, NORMALIZED, POOLED, MOVED, INTEGERS))
    op, rank = draws.choice(family), draws.choice((2, 3, 4))
    if family is POOLED or op in ("InstanceNormalization", "LRN"):
        rank = 4
    most = {2: 4096, 3: 512, 4: 96}[rank]
    shape = tuple(round(math.exp(draws.uniform(math.log(8), math.log(most)))) for _ in range(rank))
    shape = (draws.choice((1, 1, 8, shape[0])), *shape[1:])
    while math.prod(shape) < 2 * LEAST:
        shape = (*shape[:-1], 2 * shape[-1])
    dtype = draws.choice(("i32", "i64", "u8")) if family is INTEGERS else "f32"
    neighbours = [draws.choice(NEIGHBOURS) if dtype == "f32" else "" for _ in range(2)]
    count = draws.randint(1, rank) if family is REDUCED else 1
    return Case(
        op,
        shape,
        dtype,
        draws.choice((2.0, 0.5, 3.0, -1.0, 1.5, 2.5)) if dtype == "f32" else 3.0,
        draws.random() < 0.5,
        tuple(sorted(draws.sample(range(rank), count))),
        draws.choice((2, 3, 5)),
        draws.choice((1, 2)),
        *neighbours,
    )


def shrunk(
    case: Case, ratio: float, kernels: list[str], peers: list[str], ended: float
) -> tuple[Case, float, list[str]]:
    """Smaller as long as it is as slow, and there is time."""
    for less in smaller(case):
        found, its = race(less, peers) if time.monotonic() < ended else (0.0, [])
        if found > SLOW:
            return shrunk(less, found, its, peers, ended)
    return case, ratio, kernels


def smaller(case: Case) -> Iterator[Case]:
    if case.before:
        yield replace(case, before="")
    if case.behind:
        yield replace(case, behind="")
    for axis, size in enumerate(case.shape):
        half = (*case.shape[:axis], size // 2, *case.shape[axis + 1 :])
        if size >= 16 and math.prod(half) >= LEAST:
            yield replace(case, shape=half)


def race(case: Case, peers: list[str]) -> tuple[float, list[str]]:
    """mccompile's time over that of the fastest peer, the smaller of medians and fastest runs, and the kernels; 0 where
    one side cannot run it."""
    given = argparse.Namespace(target="native", prefer="time", dim=[], shape=[])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "case.onnx"
        proto = model(case)
        onnx.save(proto, path)
        if case.op == "Div" and case.dtype != "f32" and not case.constant:
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


def model(case: Case) -> ModelProto:
    """x goes through what stands before, the operator, and what stands behind."""
    made, given = _Graph(TYPES[case.dtype], len(case.shape)), case.shape
    if case.before == "Transpose":
        case = replace(case, shape=(*case.shape[:-2], case.shape[-1], case.shape[-2]))
    last = made.neighbour("x", case.before, given)
    last = made.operator(case, last)
    last = made.neighbour(last, "" if case.behind in MOVING and case.op in RESHAPING else case.behind, case.shape)
    made.nodes.append(helper.make_node("Identity", [last], ["y"]))
    ends = [helper.make_tensor_value_info("x", made.dtype, given)]
    if made.second:
        ends.append(helper.make_tensor_value_info("second", made.dtype, case.shape))
    y = helper.make_tensor_value_info("y", made.dtype, None)
    graph = helper.make_graph(made.nodes, "case", ends, [y], made.constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(proto)


class _Graph:
    def __init__(self, dtype: int, rank: int) -> None:
        self.dtype, self.rank, self.second = dtype, rank, False
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def node(self, op: str, *ins: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, list(ins), names, **attributes))
        return names[0]

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def neighbour(self, x: str, op: str, shape: tuple[int, ...]) -> str:
        if op == "Transpose":
            return self.node(op, x, perm=[*range(self.rank - 2), self.rank - 1, self.rank - 2])
        if op == "Conv":
            return self.pointwise(x, shape[1]) if self.rank == 4 else x
        return self.node(op, x) if op else x

    def pointwise(self, x: str, channels: int) -> str:
        weights = np.random.default_rng(0).normal(0, 0.1, (channels, channels, 1, 1)).astype(np.float32)
        return self.node("Conv", x, self.constant(weights))

    def operator(self, case: Case, x: str) -> str:
        channels = case.shape[1]
        window: dict[str, Any] = {"kernel_shape": [case.window] * 2, "strides": [case.stride] * 2}
        window["auto_pad"] = "SAME_UPPER"
        match case.op:
            case op if op in (*BINARY, *INTEGERS):
                more = {"fmod": 1} if op == "Mod" else {}
                return self.node(op, x, self.other(case), **more)
            case op if op in REDUCED:
                return self.node(op, x, self.constant(np.array(case.axes, np.int64)), keepdims=1)
            case "Softmax" | "LogSoftmax":
                return self.node(case.op, x, axis=case.axes[0])
            case "LayerNormalization":
                return self.node(case.op, x, self.constant(np.ones(case.shape[-1:], np.float32)), axis=-1)
            case "InstanceNormalization":
                scale, bias = (self.constant(np.full(channels, value, np.float32)) for value in (1, 0))
                return self.node(case.op, x, scale, bias)
            case "LRN":
                return self.node(case.op, x, size=case.window)
            case "MaxPool" | "AveragePool":
                return self.node(case.op, x, **window)
            case "Transpose":
                return self.node(case.op, x, perm=[*reversed(range(self.rank))])
            case "TopK":
                count = self.constant(np.array([min(8, case.shape[-1])], np.int64))
                return self.node(case.op, x, count, outputs=2, axis=-1)
            case "Concat":
                return self.node(case.op, x, x, axis=case.axes[0])
            case "CumSum":
                return self.node(case.op, x, self.constant(np.array(case.axes[0], np.int64)))
        return self.node(case.op, x)

    def other(self, case: Case) -> str:
        """The second operand: a number that is constant, or a tensor that is given."""
        if case.constant:
            return self.constant(np.array(case.number, helper.tensor_dtype_to_np_dtype(self.dtype)))
        self.second = True
        return "second"


if __name__ == "__main__":
    main()
