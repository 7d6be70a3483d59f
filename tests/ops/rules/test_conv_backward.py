"""The gradients of convolutions: each element is what the loss is of a one at its place, as it is linear in x and w."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from mccompile.frontend.load import load_proto
from mccompile.passes.learn.gradients import gradients
from tests.gradients.evaluate import Evaluator

FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((1, 2, 5, 4), (3, 2, 3, 3), {"pads": (1, 1, 1, 1)}),
    "unequal_pads": ((1, 1, 5, 5), (2, 1, 3, 2), {"pads": (2, 0, 0, 1)}),
    "strided": ((2, 2, 7, 6), (3, 2, 3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "fewer_taps_than_a_stride": ((1, 2, 8), (2, 2, 2), {"strides": (3,)}),
    "fewer_positions_than_a_stride": ((1, 1, 2, 5), (1, 1, 2, 3), {"strides": (4, 2), "pads": (0, 2, 0, 2)}),
    "wide_pads": ((1, 1, 4), (1, 1, 2), {"strides": (2,), "pads": (3, 3)}),
    "dilated": ((1, 2, 9), (2, 2, 3), {"dilations": (2,), "pads": (1, 3)}),
    "strided_and_dilated": ((1, 1, 9), (1, 1, 3), {"strides": (2,), "dilations": (2,)}),
    "groups": ((1, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "strides": (2, 1), "pads": (1, 1, 1, 1)}),
    "one_tap": ((2, 3, 4, 5), (4, 3, 1, 1), {}),
    "one_tap_strided": ((2, 2, 5, 6), (3, 2, 1, 1), {"strides": (2, 3)}),
    "depthwise": ((2, 3, 5, 6), (3, 1, 3, 3), {"group": 3, "strides": (2, 1), "pads": (1, 2, 0, 1)}),
    "depthwise_dilated": ((1, 2, 6), (2, 1, 3), {"group": 2, "dilations": (4,), "pads": (1, 2)}),
    "depthwise_never_met": ((1, 2, 2), (2, 1, 3), {"group": 2, "pads": (0, 1), "dilations": (1,)}),
    "one_tap_padded": ((1, 2, 3), (2, 2, 1), {"pads": (1, 2)}),
}


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_the_definition(form: str) -> None:
    x, w, attributes = FORMS[form]
    conv = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    ins = [helper.make_tensor_value_info(name, 11, shape) for name, shape in (("x", x), ("w", w))]
    graph = helper.make_graph([conv], "g", ins, [helper.make_tensor_value_info("y", 11, None)])
    opset = [helper.make_opsetid("", 18)]
    alone = ReferenceEvaluator(helper.make_model(graph, opset_imports=opset))
    draw = np.random.default_rng(0)
    feeds = {"x": draw.standard_normal(x), "w": draw.standard_normal(w)}
    factors = draw.standard_normal(np.asarray(alone.run(None, feeds)[0]).shape)
    graph.node.append(helper.make_node("Mul", ["y", "k"], ["z"]))
    graph.node.append(helper.make_node("ReduceSum", ["z"], ["loss"], keepdims=0))
    graph.initializer.append(numpy_helper.from_array(factors, "k"))
    graph.output[0].CopyFrom(helper.make_tensor_value_info("loss", 11, ()))
    loaded = load_proto(helper.make_model(graph, opset_imports=opset, ir_version=8))
    found = gradients(loaded, loaded.outputs[0], loaded.inputs)
    loaded.outputs.extend(found)
    for name, mine in zip(("x", "w"), Evaluator(loaded)(feeds, found), strict=True):
        right = np.zeros(feeds[name].shape)
        for place in np.ndindex(right.shape):
            one = np.zeros(right.shape)
            one[place] = 1
            right[place] = (np.asarray(alone.run(None, {**feeds, name: one})[0]) * factors).sum()
        np.testing.assert_allclose(mine, right, atol=1e-9)
