"""Biases that an exporter has left out, as they were zeros: without them in the file they do not learn."""

from __future__ import annotations

from collections.abc import Collection

from onnx import ModelProto

_CALL = "pkg.torch.onnx.fx_node"  # PyTorch's own call that a node was written for, with its parameters
_LAYERS = ("Conv", "ConvTranspose", "Gemm")  # with two operands where they have no bias


def lost_biases(model: ModelProto, learned: Collection[str]) -> list[str]:
    """Says which layers with weights that learn have lost theirs, if any."""
    found = []
    for node in model.graph.node:
        calls = [entry.value for entry in node.metadata_props if entry.key == _CALL]
        without = node.op_type in _LAYERS and sum(1 for name in node.input if name) == 2
        if without and any("_bias," in call or "_bias)" in call for call in calls):
            found += [name for name in node.input if name in learned]
    if not found:
        return []
    names = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    why = "PyTorch's exporter (dynamo=True) leaves out biases that are all zeros"
    which = "docs/learning.md says which export keeps them"
    return [f"biases of the layers of {names} are not in the file, so they do not learn: {why}; {which}"]
