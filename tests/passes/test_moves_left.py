"""Copies that are left are listed, each with its reason; most are not left."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import ModelProto

from tests.small_models import compiled, conv, model, node

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
