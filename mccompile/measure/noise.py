"""What a network of integers loses against the same one in floats: signal to noise of each tensor, in dB.

Tensors are paired by their names, else by the operators that make them, in the order of both files; so a model may come
from another tool than its float form. Invariant: what is paired has one shape and is float in both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..check.oracle import Oracle
from ..frontend.original import Original
from ..graph.ir import Graph, Node
from ..importers.api import AS_IT_IS, Reading
from ..quantize.samples import Feed, energies, ratio
from ..quantize.through_onnxruntime import integer_form
from .matching import aligned

_MOVES = ("Transpose", "Reshape", "Cast", "Flatten")
_ENDS = ("Relu", "Clip", "Identity", "QuantizeLinear", "DequantizeLinear")  # of a layer: quantizing clips as Relu does
Pairs = Mapping[str, str]


def twins(first: Original, second: Original) -> dict[str, str]:
    """Float tensors that both files have, by their name in the first. Weights may be dequantized in both, by one name:
    their noise is not that of a layer."""
    known, computed = {*second.inner, *second.outputs}, first.computed
    own = [name for name in (*first.inner, *first.outputs) if name in computed]
    forms = {name: integer_form(name) for name in own if name not in first.outputs}
    found = {name: form for name, form in forms.items() if form in known}
    return found | {name: name for name in own if name in known and name not in found}


def twins_by_work(plain: Graph, result: Graph) -> dict[str, str]:
    """Results of layers of the same operator over the same shapes, in order."""
    one, other = _layers(plain), _layers(result)
    pairs = aligned([work for work, _ in one], [work for work, _ in other])
    return {one[i][1]: other[j][1] for i, j in pairs}


def _layers(graph: Graph) -> list[tuple[Hashable, str]]:
    """What each layer is, and the tensor that it ends with: behind its activation and its rounding to integers."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for value in node.present_inputs:
            readers.setdefault(value.name, []).append(node)
    found: list[tuple[Hashable, str]] = []
    for node in graph.nodes:
        last = next(iter(node.present_outputs), None)
        if last is None or node.op.name in (*_MOVES, *_ENDS):
            continue
        work = node.op.name, str(last.type.shape)
        while (there := readers.get(last.name)) and all(reader.op.name in _ENDS for reader in there):
            last = next(there[0].present_outputs)
        found.append((work, last.name))
    return found


def noise(
    plain: Path,
    result: Path,
    feeds: Sequence[Feed],
    pairs: Pairs | None = None,
    readings: tuple[Reading, Reading] = (AS_IT_IS, AS_IT_IS),
    handed: Callable[[Feed], Feed] | None = None,
) -> dict[str, float]:
    """Of all pairs, by their name in the first file. `pairs`: others than `twins`. `handed`: what the second model
    takes in place of what the first one does."""
    first, second = (Original(path, reading) for path, reading in zip((plain, result), readings, strict=True))
    names = twins(first, second) if pairs is None else pairs
    wanted = Oracle(plain, [name for name in names if name not in first.outputs], readings[0])
    got = Oracle(result, [name for name in names.values() if name not in second.outputs], readings[1])
    found: dict[str, np.ndarray] = {}  # energies
    for feed in feeds:
        a, b = wanted.run(feed), got.run(handed(feed) if handed is not None else feed)
        for name, twin in names.items():
            if _is_comparable(a[name], b[twin]):
                found[name] = found.get(name, 0) + energies(a[name], b[twin])
    return {name: ratio(energy) for name, energy in found.items()}


def _is_comparable(a: Any, b: Any) -> bool:
    return bool(a.dtype.kind == "f" and b.dtype.kind == "f" and a.shape == b.shape)


def on_steps(steps: Iterable[Mapping[str, Any]], graph: Graph, found: Mapping[str, float]) -> list[float | str | None]:
    """For each step the noise of the last tensor that its nodes make; `found` by names of the graph's file."""
    makers = {value.name: (number, node) for number, node in enumerate(graph.nodes) for value in node.present_outputs}
    owner: dict[str, tuple[int, str]] = {}  # of nodes: the place of what they make in the graph, and its name
    for name in (name for name in makers if name in found):
        place, node, before = _made_by(name, makers)
        owner |= dict.fromkeys(node.provenance, (place, name))
        for own in before.provenance if before else ():
            owner.setdefault(own, (place, name))
    made: list[float | str | None] = []
    for step in steps:
        last = max((owner[name] for name in step["nodes"] if name in owner), default=None)
        made.append(None if last is None else rounded(found[last[1]]))
    return made


def _made_by(name: str, makers: Mapping[str, tuple[int, Node]]) -> tuple[int, Node, Node | None]:
    """The place of the node that makes a tensor, the node, and where it only rounds, the one before it. For what
    DequantizeLinear makes the node is that of the integers: it is itself part of each step that reads them."""
    place, node = makers[name]
    if node.op.name == "DequantizeLinear":
        place, node = _before(node, makers) or (place, node)
    before = _before(node, makers) if node.op.name == "QuantizeLinear" else None
    return place, node, before[1] if before else None


def _before(node: Node, makers: Mapping[str, tuple[int, Node]]) -> tuple[int, Node] | None:
    return makers.get(next(node.present_inputs).name)


def rounded(decibels: float) -> float | str:
    return round(decibels, 2) if np.isfinite(decibels) else "exact"
