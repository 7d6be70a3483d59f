"""A window network, and what the step network made of it gives push after push: both run by onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnxruntime
from onnx import ModelProto, numpy_helper, parser

from mccompile.base.streaming import Streamed
from mccompile.frontend.load import load_proto
from mccompile.frontend.save import to_onnx
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.option_texts import stream as option
from mccompile.passes.stream.rewrite import stream

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
PUSHES = 7  # that are compared


def floats(*shape: int) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / 2).astype(np.float32)


def model(text: str, **weights: np.ndarray) -> ModelProto:
    made = parser.parse_model(f"{HEAD} g {text}")
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def stepped(window: ModelProto, asked: str) -> tuple[Graph, Streamed]:
    graph, found = stream(load_proto(window), option((asked,)))
    verify(graph)
    return graph, found


def session(made: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    made.opset_import[0].version = min(made.opset_import[0].version, 22)
    made.ir_version = min(made.ir_version, 10)
    return onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])


@dataclass
class Steps:
    """Carries the state along."""

    graph: Graph

    def __post_init__(self) -> None:
        self.session = session(to_onnx(self.graph))
        inputs = {value.name: value.type for value in self.graph.inputs}
        self.state = {n: np.full(inputs[n].static_shape, 77, inputs[n].dtype.numpy) for n in self.graph.states}

    def push(self, frames: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = [value.name for value in self.graph.outputs]
        found = dict(zip(names, self.session.run(names, {**frames, **self.state}), strict=True))
        self.state = {before: found[after] for before, after in self.graph.states.items()}
        return found


def frames_of(window: ModelProto, found: Streamed, count: int) -> dict[str, np.ndarray]:
    graph, chance, made = load_proto(window), np.random.default_rng(1), {}
    for value in graph.inputs:
        if value.name in found.inputs:
            shape = list(value.type.static_shape)
            shape[found.inputs[value.name]] = count
            integers = value.type.dtype.is_integer
            drawn = chance.integers(-99, 100, shape) if integers else chance.standard_normal(shape)
            made[value.name] = drawn.astype(value.type.dtype.numpy)
    return made


def part(array: np.ndarray, axis: int, low: int, high: int) -> np.ndarray:
    return np.take(array, range(low, high), axis)


def pushes(window: ModelProto, asked: str) -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """For each push that gives a result what it gives, and what it should be: of the window network on the window that
    ends there. What came before the first push is in no push."""
    graph, found = stepped(window, asked)
    steps, whole = Steps(graph), session(window)
    lead = found.window  # frames that the step network never sees
    total = lead + (found.warm_up - 1 + PUSHES) * found.hop
    frames = frames_of(window, found, total)
    for number in range(1, found.warm_up + PUSHES):
        end = lead + number * found.hop
        now = {name: part(frames[name], axis, end - found.hop, end) for name, axis in found.inputs.items()}
        got = steps.push(now)
        if number < found.warm_up:
            continue
        seen = {name: part(frames[name], axis, end - found.window, end) for name, axis in found.inputs.items()}
        names = [output.name for output in found.outputs]
        wanted = dict(zip(names, whole.run(names, seen), strict=True))
        for output in found.outputs:
            if output.axis is not None:
                first = output.first
                wanted[output.name] = part(wanted[output.name], output.axis, first, first + output.count)
        yield {name: got[name] for name in names}, wanted


def agree(window: ModelProto, asked: str) -> int:
    """Asserts that every push gives what the window network gives; how many there were."""
    count = 0
    for got, wanted in pushes(window, asked):
        count += 1
        for name, array in wanted.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-5, err_msg=f"{name}, push {count}")
    return count
