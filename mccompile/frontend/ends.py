"""The names of what goes into a file's network and comes out, for suggestions: nothing else is looked at."""

from __future__ import annotations

from pathlib import Path

import onnx


def ends(path: Path) -> tuple[list[str], list[str]]:
    """Inputs and outputs; none where the file cannot be read, which is told when the options are right."""
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:
        return [], []
    stored = {each.name for each in graph.initializer}
    return [each.name for each in graph.input if each.name not in stored], [each.name for each in graph.output]
