"""Copies that are left are listed, each with its reason; most are not left."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests.small_models import compiled, conv, floats, model, node

SHUFFLE = {"cut": np.array([1, 2, 3, 4], np.int64), "whole": np.array([1, 6, 4], np.int64)}


def shuffled(first: str) -> ModelProto:
    nodes = [
        node(first, "x", "s"),
        node("Reshape", "s cut", "c"),
        node("Transpose", "c", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t whole", "y"),
    ]
    return model("shuffled", nodes, [("x", (1, 6, 4))], [("y", (1, 6, 4))], SHUFFLE)


def moves(made: ModelProto) -> list[tuple[str, int, str]]:
    report = json.loads(compiled(made).files["report.json"])
    return [(move["name"], move["bytes"], move["reason"]) for move in report["moves"]]


@pytest.mark.parametrize("made", [conv(), shuffled("Exp")], ids=["layout", "elementwise"])
def test_nothing_is_left_where_the_producer_can_write_elsewhere(made: ModelProto) -> None:
    assert moves(made) == []


def test_what_only_a_copy_can_do_is_listed() -> None:
    """A softmax over the channels runs over an axis that a shuffle cuts in two."""
    ((name, size, reason),) = moves(shuffled("Softmax"))
    assert (name, size) == ("c/Reshape + t/Transpose + y/Reshape", 96)
    assert reason == "an output is stored in the order of ONNX"


# Shapes in between, the order of their axes, and channels of the result of 8 x 6 x 6.
SPELLED = {
    "channel shuffle": ((1, 2, 4, 6, 6), (0, 2, 1, 3, 4), (1, 8, 6, 6)),
    "space to depth": ((1, 8, 3, 2, 3, 2), (0, 3, 5, 1, 2, 4), (1, 32, 3, 3)),
    "depth to space": ((1, 2, 2, 2, 6, 6), (0, 3, 4, 1, 5, 2), (1, 2, 12, 12)),
    "pixel shuffle": ((1, 2, 2, 2, 6, 6), (0, 1, 4, 2, 5, 3), (1, 2, 12, 12)),
}


@pytest.mark.parametrize("without", [frozenset[str](), frozenset({"assign_layout"})], ids=["layout", "no layout"])
@pytest.mark.parametrize("move", SPELLED)
def test_what_moves_channels_is_one_copy_at_most(move: str, without: frozenset[str]) -> None:
    """Between convolutions, which write and read channels at even distances: reshape, transpose and reshape are views,
    and only what no strides can say is copied, once."""
    cut, order, whole = SPELLED[move]
    nodes = [
        node("Conv", "x v", "a"),
        node("Reshape", "a cut", "c"),
        node("Transpose", "c", "t", perm=list(order)),
        node("Reshape", "t whole", "m"),
        node("Conv", "m w", "y"),
    ]
    weights = {
        "v": floats(1, 8, 3, 1, 1), "w": floats(2, 4, whole[1], 1, 1),
        "cut": np.array(cut, np.int64), "whole": np.array(whole, np.int64),
    }  # fmt: skip
    made = model("moved", nodes, [("x", (1, 3, 6, 6))], [("y", (1, 4, *whole[2:]))], weights)
    package = compile_graph(load_proto(made), Options(without=without), "moved")
    kernels = [step.function.kernel.kind.name for step in package.plan.steps()]
    assert kernels == ["conv", "map", "conv"]


def test_a_shuffle_that_several_read_is_copied_once() -> None:
    nodes = [
        node("Conv", "x v", "a"),
        node("Relu", "a", "r"),
        node("Reshape", "r cut", "c"),
        node("Transpose", "c", "t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t whole", "m"),
        node("Conv", "m w", "p"),
        node("MaxPool", "m", "q", kernel_shape=[1, 1]),
        node("Concat", "p q r", "y", axis=1),
    ]
    cut, _, whole = SPELLED["channel shuffle"]
    weights = {"v": floats(1, 8, 3, 1, 1), "w": floats(2, 4, 8, 1, 1), "cut": np.array(cut), "whole": np.array(whole)}
    made = model("moved", nodes, [("x", (1, 3, 6, 6))], [("y", (1, 20, 6, 6))], weights)
    assert len(moves(made)) <= 1
