"""What goes into a file's network and comes out, for suggestions: its names, and which axis is time."""

from __future__ import annotations

from pathlib import Path

import onnx


def ends(path: Path) -> tuple[list[str], list[str]]:
    """Inputs and outputs; none where the file cannot be read, which is told when the options are right."""
    graph = _graph(path)
    return [each.name for each in _inputs(graph)], [each.name for each in graph.output]


def likely_time(path: Path) -> tuple[str, int] | None:
    """The first input and its longest axis behind the batch."""
    for each in _inputs(_graph(path)):
        sizes = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        if len(sizes) > 1:
            return each.name, max(range(1, len(sizes)), key=sizes.__getitem__)
    return None


def _graph(path: Path) -> onnx.GraphProto:
    try:
        return onnx.load(path, load_external_data=False).graph
    except Exception:
        return onnx.GraphProto()


def _inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    stored = {each.name for each in graph.initializer}
    return [each for each in graph.input if each.name not in stored]
