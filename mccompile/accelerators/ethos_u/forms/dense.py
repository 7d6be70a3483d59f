"""Gemm and MatMul by constants: fully connected layers, of as many rows as the input has."""

from __future__ import annotations

from typing import Any

from ....graph.ir import Node
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import is_activation, result_parameters, sizes, source
from .weights import Weights, weights_of
from .writing import Writing


def _axis(node: Node) -> int:
    """Of its weights, along which the results lie."""
    op: Any = node.op
    return 0 if node.op.name == "Gemm" and op.transB else 1


@form("Gemm", "MatMul")
class Dense(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        node = chain.node
        assert node is not None
        op: Any = node.op
        if node.op.name == "Gemm" and (op.alpha, op.beta, op.transA) != (1, 1, 0):
            return "only plain products: alpha and beta are 1, the input is not transposed"
        if not is_activation(node.inputs[0]) or node.inputs[1] is None or node.inputs[1].type.rank != 2:
            return "only products with a constant matrix"
        found = weights_of(node, chain, result_parameters(unit)[0], _axis(node))
        return found if isinstance(found, str) else ""

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        node, result = chain.node, unit.makes[0]
        assert node is not None
        weights, value = weights_of(node, chain, result_parameters(unit)[0], _axis(node)), source(node)
        assert isinstance(weights, Weights)
        count, width = weights.data.shape
        rows = 1
        for size in sizes(value)[:-1]:
            rows *= size
        net, known = writing.net, writing.known(result)
        given = writing.reshaped(writing.ordered(value, range(value.type.rank)), [rows, width], *writing.known(value))
        ins = [
            given,
            net.tensor((count, width), weights.scales, weights.zero, weights.data),
            writing.bias(value, weights),
        ]
        is_flat = result.type.rank == 2
        made = writing.made(result, range(result.type.rank)) if is_flat else net.tensor([rows, count], *known)
        net.operator(
            "FULLY_CONNECTED", ins, made, "FullyConnectedOptions", FusedActivationFunction=chain.activation(unit)
        )
        if not is_flat:
            writing.numbers[result] = writing.reshaped(made, sizes(result), *known)
            writing.orders[result] = tuple(range(result.type.rank))
        return ""
