"""Small networks that keep errors as small as they are made, and others that do not; and their programs as limit_errors
meets them."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
from onnx import ModelProto, numpy_helper, parser

from mccompile.driver import Options
from mccompile.driver.compiling import pass_manager
from mccompile.frontend.load import load_proto
from mccompile.passes.api import GRAPH, PROGRAM
from mccompile.passes.lower import lower
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from mccompile.program.ir import Program
from tests.small_models import model, node

CHANNELS = 16


def plain(layers: int = 3, seed: int = 0) -> ModelProto:
    """Convolutions and ReLUs: the usual case."""
    chance = np.random.default_rng(seed)
    weights = [chance.standard_normal((CHANNELS, CHANNELS, 3, 3)) / np.sqrt(72) for _ in range(layers)]
    return _layers("Conv", "Relu", weights, [chance.standard_normal(CHANNELS) / 10 for _ in range(layers)])


def cancelling(op: str = "Conv", spread: float = 0.005, layers: int = 3, seed: int = 0) -> ModelProto:
    """Sigmoids of sums that are small, so that results lie near 1/2, and biases that take that away. What is left is
    made large again by the last layer."""
    chance, window = np.random.default_rng(seed), (3, 3) if op == "Conv" else ()
    depth, weights, biases = CHANNELS * int(np.prod(window)), [], []
    for n in range(layers):
        scale = (spread if n < layers - 1 else 1) / (spread / 4 if n else 1)
        w = scale * chance.standard_normal((CHANNELS, CHANNELS, *window)) / np.sqrt(depth)
        weights.append(w)
        biases.append(-w.reshape(CHANNELS, -1).sum(1) / 2 if n else np.zeros(CHANNELS))
    return _layers(op, "Sigmoid", weights, biases)


def _layers(op: str, activation: str, weights: list[np.ndarray], biases: list[np.ndarray]) -> ModelProto:
    nodes, x, last, size = [], "x", len(weights) - 1, 4 + 2 * len(weights)
    stored: dict[str, np.ndarray] = {}
    for n, (w, b) in enumerate(zip(weights, biases, strict=True)):
        y = "y" if n == last else f"c{n}"
        nodes.append(node(op, f"{x} w{n} b{n}", y, **({"transB": 1} if op == "Gemm" else {})))
        stored |= {f"w{n}": w.astype(np.float32), f"b{n}": b.astype(np.float32)}
        if n < last:
            nodes.append(node(activation, y, f"a{n}"))
        x = f"a{n}"
    ends = [(1, CHANNELS, each, each) if op == "Conv" else (size, CHANNELS) for each in (size, 4)]
    return model("net", nodes, [("x", ends[0])], [("y", ends[1] if op == "Conv" else ends[0])], stored)


def prepared(made: ModelProto, options: Options) -> Program:
    """The program that limit_errors is given."""
    manager, graph = pass_manager(options), load_proto(made)
    manager.run(GRAPH, graph, GRAPH_PASSES)
    program = lower(graph)
    manager.run(PROGRAM, program, tuple(takewhile(lambda step: step.name != "limit_errors", PROGRAM_PASSES)))
    return program


def of_text(text: str, **weights: np.ndarray) -> ModelProto:
    """A model in ONNX's text form: `(float[1,8,4,4] x) => (float[1,8,4,4] y) { y = Relu(x) }`."""
    made = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g ' + text)
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made
