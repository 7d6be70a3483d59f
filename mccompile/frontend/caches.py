"""Caches that a run makes longer: an input, what is new behind it, and an output of both.

Invariant: quantizing keeps them floats, so that `--state` finds them in the file that is written; integers begin behind
them. Rounded on the way in and on the way out, what is kept would be rounded again in every run.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import GraphProto


def caches(model: Path) -> list[str]:
    """The nodes that join an input and what is new to an output."""
    graph = onnx.load(model, load_external_data=False).graph
    given, made = ({value.name for value in values} for values in (graph.input, graph.output))
    joins = (node for node in graph.node if node.op_type == "Concat" and not node.domain)
    return [node.name for node in joins if node.input[0] in given and node.output[0] in made]


def hand_out_joined(graph: GraphProto) -> None:
    """Outputs that are rounded caches show these as they are."""
    makers = {name: node for node in graph.node for name in node.output}
    given = {value.name for value in graph.input}
    for output in graph.output:
        rounded, stored = makers.get(output.name), None
        if rounded is not None and rounded.op_type == "DequantizeLinear":
            stored = makers.get(rounded.input[0])
        join = makers.get(stored.input[0]) if stored is not None and stored.op_type == "QuantizeLinear" else None
        if rounded is None or stored is None or join is None or join.op_type != "Concat" or join.input[0] not in given:
            continue
        before, after = join.output[0], f"{output.name}_DequantizeLinear_Output"
        others = [entry for entry in graph.value_info if entry.name != before]
        del graph.value_info[:]
        graph.value_info.extend(others)
        renamed = {before: output.name, output.name: after}
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
