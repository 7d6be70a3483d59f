"""Optimizers of ai.onnx.preview.training: each result is a function of its own."""

from __future__ import annotations

import pytest
from onnx import parser

from mccompile.expr.ir import operands_used
from mccompile.frontend.load import load_proto
from mccompile.kinds.map import Map
from mccompile.passes.lower import lower
from mccompile.program.ir import Call, walk

FORMS = {
    "Adagrad": ("V", "decay_factor = 0.1, epsilon = 0.001, norm_coefficient = 0.001"),
    "Adam": ("V, H", "alpha = 0.95, beta = 0.1, epsilon = 0.001, norm_coefficient = 0.001"),
    "Momentum": ("V", 'alpha = 0.95, beta = 0.1, mode = "standard", norm_coefficient = 0.001'),
}


@pytest.mark.parametrize("op", sorted(FORMS))
def test_a_result_takes_only_what_it_reads(op: str) -> None:
    """A parameter of a C function that nothing reads is a warning: the new statistics do not read the rate."""
    statistics, attributes = FORMS[op]
    names = statistics.split(", ")
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
        g (float R, int64 T, float[2] X, float[2] G, {", ".join(f"float[2] {n}" for n in names)})
        => (float[2] X2, {", ".join(f"float[2] {n}2" for n in names)}) {{
            X2, {", ".join(f"{n}2" for n in names)} = ai.onnx.preview.training.{op} <{attributes}>
                (R, T, X, G, {statistics})
        }}""")
    program = lower(load_proto(model))
    for item in walk(program.body):
        if isinstance(item, Call) and isinstance(item.kind, Map):
            (expression,) = item.kind.expressions()
            assert operands_used(expression) == set(range(len(item.ins)))
