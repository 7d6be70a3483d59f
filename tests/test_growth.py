"""Compiling takes time that grows with the model, not with its square: counted in calls, never timed.

Each function is looked at alone, so one that is called too often shows even where others take most of the time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from onnx import ModelProto

from mccompile.driver import compile_graph
from mccompile.frontend.load import load_proto
from tests.small_models import PLAIN, compiled, model, node
from tests.thorough import some

FEW, TIMES = 20, 4
PLANNING = "memory/"  # its effort is bounded by a count of work; its own tests say so


def branches(count: int, many: str = "x") -> ModelProto:
    """Slices of an input or of a result, each multiplied by a number of its own, in one Concat."""
    nodes = [node("Sigmoid", "x", "made")]
    weights = {"axis": np.array([1])}
    for n in range(count):
        nodes += [node("Slice", f"{many} from{n} to{n} axis", f"part{n}"), node("Mul", f"part{n} k{n}", f"scaled{n}")]
        weights |= {f"from{n}": np.array([4 * n]), f"to{n}": np.array([4 * n + 4]), f"k{n}": np.float32([n + 2])}
    nodes.append(node("Concat", " ".join(f"scaled{n}" for n in range(count)), "joined", axis=1))
    nodes.append(node("Add", "joined made", "y"))
    return model("branches", nodes, [("x", (1, 4 * count))], [("y", (1, 4 * count))], weights)


def made_branches(count: int) -> ModelProto:
    return branches(count, "made")


def many_inputs(op: str) -> Callable[[int], ModelProto]:
    def made(count: int) -> ModelProto:
        names = [f"x{n}" for n in range(count)]
        attributes = {"axis": 1} if op == "Concat" else {}
        shape = (1, 4 * count if op == "Concat" else 4)
        nodes = [node(op, " ".join(names), "y", **attributes)]
        return model("inputs", nodes, [(name, (1, 4)) for name in names], [("y", shape)])

    return made


def calls(made: ModelProto) -> Counter[str]:
    """How often each function of the compiler runs; generators count each time they go on."""
    graph = load_proto(made)
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found[f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno} {frame.f_code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        compile_graph(graph, PLAIN, "net").output()
    finally:
        sys.setprofile(before)
    return Counter({name: often for name, often in found.items() if "mccompile/" in name and PLANNING not in name})


@some(
    2,
    "build",
    [branches, made_branches, *(many_inputs(op) for op in ("Concat", "Sum", "Max"))],
    ids=["branches", "made branches", "Concat", "Sum", "Max"],
)
def test_no_function_runs_more_often_than_the_model_is_large(build: Callable[[int], ModelProto]) -> None:
    compiled(build(FEW)).output()  # templates and kernels are loaded once
    few, many = calls(build(FEW)), calls(build(FEW * TIMES))
    begun = 6 * FEW * TIMES  # by what long functions need and short ones do not
    grown = {name: (few[name], often) for name, often in many.items() if often > 2 * TIMES * few[name] + begun}
    assert not grown
