"""Every optional pass alone, and every optional pass left out: small models keep their results, by onnx's evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile import backend
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from tests.small_models import ALL, floats, random_inputs, reference
from tests.thorough import some

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
    made = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    everything (float[1,3,8,8] x) => (float[1,4,4,5] y) {
        padded = Pad (x, pads)
        c = Conv (padded, w)
        n = BatchNormalization (c, scale, shift, mean, var)
        o = Conv (x, one)
        sum = Add (n, o)
        d = Div (sum, root)
        e = Erf (d)
        f = Add (e, unit)
        g = Mul (sum, f)
        gelu = Mul (g, half)
        small = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (gelu)
        p = Conv <pads = [1, 1, 1, 1]> (small, v)
        r = Relu (p)
        clipped = Clip (r, zero, six)
        joined = Concat <axis = 1> (clipped, small)
        last = Transpose <perm = [0, 2, 3, 1]> (joined)
        m = ReduceMean <axes = [3]> (last)
        off = Sub (last, m)
        square = Mul (off, off)
        spread = ReduceMean <axes = [3]> (square)
        wide = Add (spread, eps)
        deviation = Sqrt (wide)
        norm = Div (off, deviation)
        scaled = Mul (norm, gamma)
        unused = Neg (scaled)
        product = MatMul (scaled, u)
        again = MatMul (scaled, u2)
        y = Add (product, again)
    }""")
    weights = {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
        "w": floats(1, 4, 3, 3, 3), "one": floats(2, 4, 3, 1, 1), "v": floats(3, 4, 4, 3, 3), "u": floats(4, 8, 5),
        "u2": floats(4, 8, 5), "scale": floats(5, 4), "shift": floats(6, 4), "mean": floats(7, 4),
        "var": np.abs(floats(8, 4)) + np.float32(0.5), "gamma": floats(9, 8), "eps": np.float32(1e-5),
        "root": np.float32(2**0.5), "unit": np.float32(1), "half": np.float32(0.5), "zero": np.float32(0),
        "six": np.float32(6),
    }  # fmt: skip
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    return made


def agrees(made: ModelProto, choice: str) -> None:
    inputs = random_inputs(made)
    wanted = reference(made, inputs)
    got = backend.prepare(made, without=CHOICES[choice])
    results = got.run(inputs)
    for output, result in zip(wanted, results, strict=True):
        np.testing.assert_allclose(result, wanted[output], rtol=1e-3, atol=1e-4, err_msg=output)


@some(40, "choice", CHOICES)
def test_results_do_not_depend_on_the_passes(choice: str) -> None:
    agrees(everything(), choice)


@pytest.mark.parametrize("name", ["conv", "branches", "mlp"])
@pytest.mark.parametrize("choice", ["none", "all"])
def test_small_models_do_without_passes(name: str, choice: str) -> None:
    agrees(ALL[name](), choice)
