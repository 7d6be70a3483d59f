"""What the options of a model can name: its tensors, and its free dimensions."""

from __future__ import annotations

import re

from onnx import ModelProto


def known_names(model: ModelProto) -> set[str]:
    """Dimensions in arithmetic too."""
    graph = model.graph
    found = {name for node in graph.node for name in (*node.input, *node.output)}
    for entry in (*graph.input, *graph.output):
        found.add(entry.name)
        sizes = [dim.dim_param for dim in entry.type.tensor_type.shape.dim if dim.dim_param]
        found.update(sizes, *(re.findall(r"[A-Za-z_]\w*", size) for size in sizes))
    return found
