"""Parameters that PyTorch's exporter has left out or folded into others: they do not learn as they would there. And
constants that it has filled in: they are not parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto

_CALL = "pkg.torch.onnx.fx_node"  # PyTorch's own call that a node was written for: its parameters begin with p_
_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"  # PyTorch's word for what its module holds
_LAYERS = ("Conv", "ConvTranspose", "Gemm")  # with two operands where they have no bias
_WHICH = "docs/learning.md says which export keeps them"


def lost_parameters(model: ModelProto, learned: Collection[str]) -> list[str]:
    """Says which are lost, of nodes with weights that learn."""
    found = []
    biases = [name for node in model.graph.node if _has_lost_bias(node) for name in node.input if name in learned]
    if biases:
        why = "PyTorch's exporter (dynamo=True) leaves out biases that are all zeros"
        found.append(f"the file has no biases for the layers of {_few(biases)}, so none learn: {why}; {_WHICH}")
    folded = [name for node in model.graph.node for name in _computed(node) if name in learned]
    if folded:
        why = "PyTorch's exporter (dynamo=True) makes one constant of parameters that are computed with, as weight_norm"
        found.append(f"what {_few(folded)} is computed of in PyTorch does not learn, but its result: {why}; {_WHICH}")
    return found


def filled_in(graph: GraphProto) -> frozenset[str]:
    """Constants that are not parameters as the exporter knows them: those of nodes; and where it says what the module
    holds, all else."""
    held = _held(graph)
    rest = {tensor.name for tensor in graph.initializer} - held.keys() if held else set[str]()
    return frozenset(rest.union(*(node.output for node in graph.node if node.op_type == "Constant")))


def parameters(graph: GraphProto) -> frozenset[str]:
    """Initializers of which the exporter says that they are."""
    return frozenset(name for name, kind in _held(graph).items() if kind == "PARAMETER")


def _held(graph: GraphProto) -> dict[str, str]:
    """What PyTorch's module holds, by name: what kind it is."""
    return {info.name: entry.value for info in graph.value_info for entry in info.metadata_props if entry.key == _KIND}


def _calls(node: NodeProto) -> list[str]:
    return [entry.value for entry in node.metadata_props if entry.key == _CALL]


def _has_lost_bias(node: NodeProto) -> bool:
    without = node.op_type in _LAYERS and sum(1 for name in node.input if name) == 2
    return without and any("_bias," in call or "_bias)" in call for call in _calls(node))


def _computed(node: NodeProto) -> Iterator[str]:
    """The operands that are results of other calls in PyTorch."""
    for name in node.input:
        if any(f"%{name}," in call or f"%{name})" in call for call in _calls(node)):
            yield name


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
