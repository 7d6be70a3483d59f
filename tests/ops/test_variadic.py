"""Sum, Mean, Max and Min of more operands than one expression takes."""

from __future__ import annotations

import pytest
from onnx import ModelProto

from mccompile.driver import Options
from mccompile.ops.variadic import AT_ONCE
from tests.small_models import compiled, model, node


def of(op: str, count: int) -> ModelProto:
    names = [f"x{n}" for n in range(count)]
    return model(op, [node(op, " ".join(names), "y")], [(name, [3]) for name in names], [("y", [3])])


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
def test_many_operands_go_a_few_at_a_time(op: str) -> None:
    package = compiled(of(op, 100), Options(optimize=False))
    calls = [step.function.call for step in package.plan.steps()]
    assert len(calls) == 7 and max(len(call.ins) for call in calls) == AT_ONCE
