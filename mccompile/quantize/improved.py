"""Weights and biases that samples improve, in the way that brings the outputs closest.

Each way is judged twice: made of all samples, on these, and made of either half, on the other one. The first flatters
what fits itself to samples, the second has only half of them to fit itself to. Invariant: with fewer than `_LEAST`
samples nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..check.oracle import Oracle
from ..frontend.load import load
from ..frontend.save import write
from .adapted_rounding import adapt_rounding
from .agreement import mean_decibels
from .bench import Bench
from .corrected_biases import correct_biases
from .narrow_layers import LAYERS
from .samples import Feed

_LEAST = 32  # samples
_WAYS = (False, True), (True, False), (True, True)  # are weights rounded anew, and biases corrected?

Part = Sequence[tuple[Feed, Mapping[str, np.ndarray]]]  # samples and the outputs of floats


def improve(bench: Bench, plain: Path, result: Path) -> tuple[int, int]:
    """How many layers of the result have weights rounded anew, and how many other biases."""
    if len(bench.feeds) < _LEAST:
        return 0, 0
    exact = Oracle(plain)
    samples = [(feed, exact.run(feed)) for feed in bench.feeds]
    chosen, changed, best = result, (0, 0), _closeness([(result, samples)])
    for number, (weights, biases) in enumerate(_WAYS):
        if weights and bench.recipe.weights != "int8":
            continue
        made, *others = (bench.folder / f"improved{number}{part}.onnx" for part in range(3))
        parts = samples, samples[::2], samples[1::2]
        found = [
            _make(bench, plain, result, file, part, weights, biases)
            for file, part in zip((made, *others), parts, strict=True)
        ]
        seen, unseen = _closeness([(made, samples)]), _closeness(list(zip(others, parts[:0:-1], strict=True)))
        if (seen + unseen) / 2 > best:
            chosen, changed, best = made, found[0], (seen + unseen) / 2
    if chosen != result:
        chosen.replace(result)
    return changed


def _closeness(judged: Sequence[tuple[Path, Part]]) -> float:
    """Decibels of the outputs of files, each on samples of its own, taken together."""
    runs = []
    for file, part in judged:
        oracle = Oracle(file)
        runs += [(wanted, oracle.run(feed)) for feed, wanted in part]
    return mean_decibels([[(wanted[name], got[name]) for wanted, got in runs] for name in runs[0][0]])


def _make(
    bench: Bench, plain: Path, file: Path, made: Path, samples: Part, weights: bool, biases: bool
) -> tuple[int, int]:
    feeds = [feed for feed, _ in samples]
    graph, floats = load(file, bench.dims), load(plain, bench.dims)
    adapted = adapt_rounding(graph, floats, file, feeds) if weights else 0
    layers = {node.provenance[0]: node.output.name for node in floats.nodes if node.op.name in LAYERS}
    corrected = correct_biases(graph, feeds, plain, layers, bench.folder / "tried.onnx") if biases else 0
    write(graph, made)
    return adapted, corrected
