"""Cast to float8e8m0: every way to round, against onnx's own conversion."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from mccompile import backend

NUMBERS = [0.0, 1e-45, 1e-39, 2.0**-127, 1.0, 1.25, 1.5, 1.6, -3.0, 4.0, 6.0, 1.8e38, 3.4e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_every_mode(mode: str, saturate: int) -> None:
    x = np.array(NUMBERS, np.float32)
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode)
    graph = helper.make_graph(
        [node],
        "powers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT8E8M0, x.shape)],
    )
    (y,) = backend.prepare(helper.make_model(graph), flags=("-O1",)).run([x])
    want = numpy_helper.to_float8e8m0(x, bool(saturate), mode)
    np.testing.assert_array_equal(y.view(np.uint8), want.view(np.uint8))
