"""Products of uint8 and int8 (U8S8) as products of uint8 and uint8 (U8U8), which onnxruntime computes exactly on every
machine.

On x86 processors without VNNI it adds pairs of U8S8 products in 16 bits, which saturate; its documentation of
quantization says so. Products of uint8 and uint8 are exact everywhere. Invariant: int8 operands with 128 added, to them
and to their zero points, give the same products.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from ..base.records import dataclass
from .element_types import element_types

_CONTRIB = "com.microsoft"
_OFFSET = 128


@dataclass(frozen=True)
class _Product:
    """Which inputs of an operator are what."""

    left: tuple[int, int] | None  # an operand and its zero point; None: the operator quantizes it to uint8 itself
    right: tuple[tuple[int, int], ...]  # weights and their zero points


_PRODUCTS: Mapping[tuple[str, str], _Product] = {
    ("", "ConvInteger"): _Product((0, 2), ((1, 3),)),
    ("", "MatMulInteger"): _Product((0, 2), ((1, 3),)),
    ("", "QLinearConv"): _Product((0, 2), ((3, 5),)),
    ("", "QLinearMatMul"): _Product((0, 2), ((3, 5),)),
    (_CONTRIB, "DynamicQuantizeLSTM"): _Product(None, ((1, 9), (2, 11))),
    (_CONTRIB, "DynamicQuantizeMatMul"): _Product(None, ((1, 3),)),
    (_CONTRIB, "MatMulIntegerToFloat"): _Product((0, 4), ((1, 5),)),
    (_CONTRIB, "QAttention"): _Product((0, 6), ((1, 7),)),
    (_CONTRIB, "QGemm"): _Product((0, 2), ((3, 5),)),
    (_CONTRIB, "QLinearConv"): _Product((0, 2), ((3, 5),)),
}


def u8s8_to_u8u8(model: ModelProto) -> ModelProto:
    """The model with such products where operands are known to be uint8 and int8; itself where it has none."""
    if not any((node.domain, node.op_type) in _PRODUCTS for graph in _graphs(model.graph) for node in graph.node):
        return model
    changed = ModelProto()
    changed.CopyFrom(model)
    _change(changed.graph, {entry.domain: entry.version for entry in model.opset_import}, {})
    return changed


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and those in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _change(graph: GraphProto, versions: Mapping[str, int], around: Mapping[str, int]) -> None:
    types = element_types(graph, versions, around)
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _change(attribute.g, versions, types)
        product = _PRODUCTS.get((node.domain, node.op_type))
        if product is not None and _is_type(node, product.left, types, TensorProto.UINT8):
            for right in product.right:
                if _is_type(node, right, types, TensorProto.INT8):
                    nodes += _moved(node, *right, f"{node.output[0]}_unsaturated_{right[0]}")
        nodes.append(node)
    changed = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(changed)


def _is_type(node: NodeProto, pair: tuple[int, int] | None, types: Mapping[str, int], wanted: int) -> bool:
    """An operand has the type of its zero point."""
    return pair is None or any(types.get(node.input[at]) == wanted for at in pair if at < len(node.input))


def _moved(node: NodeProto, weights: int, zero: int, name: str) -> Iterator[NodeProto]:
    """Nodes that add the offset; the product then reads what they make."""
    offset = f"{name}_offset"
    value = helper.make_tensor(offset, TensorProto.INT64, [], [_OFFSET])
    yield helper.make_node("Constant", [], [offset], value=value)
    yield from _sum(node.input[weights], offset, name)
    node.input[weights] = name
    node.input.extend([""] * (zero + 1 - len(node.input)))
    if node.input[zero]:
        yield from _sum(node.input[zero], offset, f"{name}_zero")
    else:
        yield helper.make_node("Cast", [offset], [f"{name}_zero"], to=TensorProto.UINT8)
    node.input[zero] = f"{name}_zero"


def _sum(operand: str, offset: str, name: str) -> Iterator[NodeProto]:
    yield helper.make_node("Cast", [operand], [f"{name}_wide"], to=TensorProto.INT64)
    yield helper.make_node("Add", [f"{name}_wide", offset], [f"{name}_sum"])
    yield helper.make_node("Cast", [f"{name}_sum"], [name], to=TensorProto.UINT8)
