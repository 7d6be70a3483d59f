"""Every operator over floats has a rule for its gradient, or says why it has none; and some rules, each in a moment."""

from __future__ import annotations

from itertools import islice

import pytest
from onnx import defs

from mccompile.ops.api import OWN, Operator, registry
from tests.gradients.nodes import outcomes

NAMES = (
    "Add", "AffineGrid", "AveragePool", "BatchNormalization", "Col2Im", "Concat", "Conv", "ConvTranspose", "Einsum",
    "GRU", "Gather", "Gelu", "GlobalAveragePool", "GridSample", "LSTM", "LayerNormalization", "Loop", "LpPool",
    "MatMul", "MaxPool", "Pad", "ReduceProd", "Resize", "Scan", "Softmax",
)  # fmt: skip


def test_no_operator_is_forgotten() -> None:
    missing = [
        name
        for (domain, name), operator in registry().items()
        if domain != OWN and of_floats(domain, name)
        if operator.gradient is Operator.gradient and not operator.no_gradient
    ]
    assert not missing


def of_floats(domain: str, name: str) -> bool:
    """Does it make floats of floats?"""
    if not defs.has(name, domain):
        return False
    schema = defs.get_schema(name, domain)
    sides = schema.inputs, schema.outputs
    return all(any("tensor(float)" in each.types for each in side) for side in sides)


@pytest.mark.parametrize("name", NAMES)
def test_rules_agree_with_differences(name: str) -> None:
    """Of random nodes; `python -m tests.gradients` draws more of them, of all operators."""
    right = 0
    for _, outcome in islice(outcomes(5, name), 20):
        assert outcome.word != "wrong", outcome.detail
        right += outcome.checks > 0
        if right == 2:
            break
    assert right == 2
