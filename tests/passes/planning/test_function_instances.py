"""Calls share a function where its text is the same, and only there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import mccompile

# what is cut out of x lies in rows of 24, out of y in rows of 10
TRANSFORMS = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[3, 3, 8] x1, float[3, 3, 8] x2, float[3, 1, 10] y1, float[3, 1, 10] y2)
    => (float[3, 1, 5, 2] a1, float[3, 1, 5, 2] a2, float[3, 1, 5, 2] b1, float[3, 1, 5, 2] b2)
    <int64[2] zero = {0, 0}, int64[2] to = {1, 8}, int64[2] axes = {1, 2}, int64[1] last = {3}, int64 along = {2}> {
        %s
    }"""
ONE = """%(out)s_cut = Slice(%(x)s, zero, to, axes)
        %(out)s_wide = Unsqueeze(%(out)s_cut, last)
        %(out)s = DFT <onesided = 1> (%(out)s_wide, , along)"""


def test_transforms_of_other_strides_have_functions_of_their_own(tmp_path: Path) -> None:
    """Their templates are given Python functions, of which a later one may lie where an earlier one lay."""
    nodes = "\n".join(ONE % {"x": x, "out": out} for x, out in (("x1", "a1"), ("y1", "b1"), ("x2", "a2"), ("y2", "b2")))
    path = tmp_path / "dft.onnx"
    path.write_bytes(parser.parse_model(TRANSFORMS % nodes).SerializeToString())
    for _ in range(5):
        steps = mccompile.compile(path).report["steps"]
        functions = [step["function"] for step in steps if step["kernel"].startswith("dft/")]
        assert len(functions) == 4 and len(set(functions)) == 2


LAYERS = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2, 320] x) => (float[2, 320] y)
    {
        a = DequantizeLinear <axis = 0, block_size = 32> (v, w)
        h = MatMul(x, a)
        b = DequantizeLinear <axis = 0, block_size = 32> (v2, w2)
        y = MatMul(h, b)
    }"""


@pytest.mark.parametrize("target", ["generic", "x86-64-v3"])
def test_layers_with_weights_of_few_bits_have_one_function(tmp_path: Path, target: str) -> None:
    """Its template is given an object that shows nothing of itself."""
    chance = np.random.default_rng(1)
    model = parser.parse_model(LAYERS)
    for number in ("", "2"):
        levels, scales = chance.integers(-8, 8, (320, 320)), chance.random((10, 320))
        model.graph.initializer.append(helper.make_tensor(f"v{number}", TensorProto.INT4, (320, 320), levels.flat))
        model.graph.initializer.append(helper.make_tensor(f"w{number}", TensorProto.FLOAT, (10, 320), scales.flat))
    path = tmp_path / "layers.onnx"
    path.write_bytes(model.SerializeToString())
    steps = mccompile.compile(path, mccompile.Options(target=target)).report["steps"]
    functions = [step["function"] for step in steps if step["kernel"].startswith("block_gemm/")]
    assert len(functions) == 2 and len(set(functions)) == 1
