"""ConvTranspose over pictures and signals, of which TFLite keeps all results or as many as there are steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.ir import Node
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import result_parameters, source
from .weights import Weights, weights_of
from .windows import SAME, VALID, not_a_window, window_of
from .writing import Writing, picture_sizes


def _padding(node: Node) -> int | None:
    """The word of TFLite, if there is one."""
    window = window_of(node)
    assert node.inputs[0] is not None
    given, made = (picture_sizes(value)[1:3] for value in (node.inputs[0], node.output))
    sizes = list(zip(given, made, window.kernel, window.strides, window.pads[:2], strict=True))
    if all(out == (size - 1) * stride + k and k >= stride and not begin for size, out, k, stride, begin in sizes):
        return VALID
    if all(out == size * stride and begin == max(k - stride, 0) // 2 for size, out, k, stride, begin in sizes):
        return SAME
    return None


@form("ConvTranspose")
class Transposed(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        node = chain.node
        assert node is not None and node.inputs[1] is not None
        op: Any = node.op
        if node.inputs[1].type.rank not in (3, 4) or op.group != 1 or any(d != 1 for d in op.dilations or ()):
            return "only transposed convolutions of one group, without dilations"
        if chain.activation(unit) != 0:
            return "a transposed convolution has no activation"
        found = weights_of(node, chain, result_parameters(unit)[0], 1)
        if isinstance(found, str):
            return found
        return not_a_window(node) or ("" if _padding(node) is not None else f"padding {op.pads} has no word in TFLite")

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        node, result = chain.node, unit.makes[0]
        assert node is not None
        weights, value = weights_of(node, chain, result_parameters(unit)[0], 1), source(node)
        assert isinstance(weights, Weights)
        data = weights.data if weights.data.ndim == 4 else np.expand_dims(weights.data, 2)
        laid = data.transpose((0, 2, 3, 1))
        ins = [
            writing.net.ints(picture_sizes(result)),
            writing.net.tensor(laid.shape, weights.scales, weights.zero, laid),
        ]
        ins += [writing.picture(value), writing.bias(value, weights)]
        fields = window_of(node).fields | {"Padding": _padding(node)}
        writing.made_picture(
            result, lambda made: writing.net.operator("TRANSPOSE_CONV", ins, made, "TransposeConvOptions", **fields)
        )
        return ""
