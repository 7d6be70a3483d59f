"""Every optional pass alone, and every optional pass left out: small models keep their results, by onnx's evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from mccompile import backend
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from tests.small_models import ALL, floats, model, node, random_inputs, reference

OPTIONAL = frozenset(
    [step.name for step in GRAPH_PASSES if step.optional] + [step.name for step in PROGRAM_PASSES if step.optional]
)
CHOICES = {
    "none": OPTIONAL,
    "all": frozenset[str](),
    **{f"only {name}": OPTIONAL - {name} for name in sorted(OPTIONAL)},
    **{f"without {name}": frozenset({name}) for name in sorted(OPTIONAL)},
}


def everything() -> ModelProto:
    """Something for every pass: idioms, sums of convolutions, padding, normalization, transposes, reductions, copies of
    constants, dead nodes, and a part that concat wants in place."""
    nodes = [
        node("Pad", "x pads", "padded"),
        node("Conv", "padded w", "c"),
        node("BatchNormalization", "c scale shift mean var", "n"),
        node("Conv", "x one", "o"),
        node("Add", "n o", "sum"),
        node("Div", "sum root", "d"),
        node("Erf", "d", "e"),
        node("Add", "e unit", "f"),
        node("Mul", "sum f", "g"),
        node("Mul", "g half", "gelu"),
        node("MaxPool", "gelu", "small", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "small v", "p", pads=[1, 1, 1, 1]),
        node("Relu", "p", "r"),
        node("Clip", "r zero six", "clipped"),
        node("Concat", "clipped small", "joined", axis=1),
        node("Transpose", "joined", "last", perm=[0, 2, 3, 1]),
        node("ReduceMean", "last", "m", axes=[3]),
        node("Sub", "last m", "off"),
        node("Mul", "off off", "square"),
        node("ReduceMean", "square", "spread", axes=[3]),
        node("Add", "spread eps", "wide"),
        node("Sqrt", "wide", "deviation"),
        node("Div", "off deviation", "norm"),
        node("Mul", "norm gamma", "scaled"),
        node("Neg", "scaled", "unused"),
        node("MatMul", "scaled u", "product"),
        node("MatMul", "scaled u2", "again"),
        node("Add", "product again", "y"),
    ]
    weights = {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
        "w": floats(1, 4, 3, 3, 3), "one": floats(2, 4, 3, 1, 1), "v": floats(3, 4, 4, 3, 3), "u": floats(4, 8, 5),
        "u2": floats(4, 8, 5), "scale": floats(5, 4), "shift": floats(6, 4), "mean": floats(7, 4),
        "var": np.abs(floats(8, 4)) + np.float32(0.5), "gamma": floats(9, 8), "eps": np.float32(1e-5),
        "root": np.float32(2**0.5), "unit": np.float32(1), "half": np.float32(0.5), "zero": np.float32(0),
        "six": np.float32(6),
    }  # fmt: skip
    return model("everything", nodes, [("x", (1, 3, 8, 8))], [("y", (1, 4, 4, 5))], weights)


def agrees(made: ModelProto, choice: str) -> None:
    inputs = random_inputs(made)
    wanted = reference(made, inputs)
    got = backend.prepare(made, without=CHOICES[choice])
    results = got.run(inputs)
    for output, result in zip(wanted, results, strict=True):
        np.testing.assert_allclose(result, wanted[output], rtol=1e-3, atol=1e-4, err_msg=output)


@pytest.mark.parametrize("choice", CHOICES)
def test_results_do_not_depend_on_the_passes(choice: str) -> None:
    agrees(everything(), choice)


@pytest.mark.parametrize("name", ["conv", "branches", "mlp"])
@pytest.mark.parametrize("choice", ["none", "all"])
def test_small_models_do_without_passes(name: str, choice: str) -> None:
    agrees(ALL[name](), choice)

