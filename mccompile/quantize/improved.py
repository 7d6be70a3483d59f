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
from ..frontend.save import write
from .adapted_rounding import adapt_rounding
from .agreement import mean_decibels
from .bench import Bench
from .corrected_biases import correct_biases
from .narrow_layers import LAYERS
from .samples import Feed

_LEAST = 32  # samples
# Are weights rounded anew, and biases corrected? Both goes on from what the first leads to.
_WAYS = (False, True), (True, False), (True, True)

Part = Sequence[tuple[Feed, Mapping[str, np.ndarray]]]  # samples and the outputs of floats


def improve(bench: Bench, plain: Path, result: Path) -> tuple[int, int]:
    """How many layers of the result have weights rounded anew, and how many other biases."""
    if len(bench.feeds) < _LEAST:
        return 0, 0
    exact = Oracle(plain)
    samples = [(feed, exact.run(feed)) for feed in bench.feeds]
    chosen, changed, best = result, (0, 0), _closeness([(result, samples)])
    parts = samples, samples[::2], samples[1::2]
    rounded, adapted = [result] * len(parts), 0
    for way, (weights, biases) in enumerate(_WAYS):
        if weights and bench.recipe.weights != "int8":
            continue
        files = [bench.folder / f"improved{way}{part}.onnx" for part in range(len(parts))]
        before = rounded if weights and biases else [result] * len(parts)
        change = _correct if biases else _round
        counts = [change(bench, plain, *each) for each in zip(before, files, parts, strict=True)]
        if not biases:
            rounded, adapted = files, counts[0]
        seen, unseen = _closeness([(files[0], samples)]), _closeness(list(zip(files[1:], parts[:0:-1], strict=True)))
        if (seen + unseen) / 2 > best:
            chosen, best = files[0], (seen + unseen) / 2
            changed = adapted if weights else 0, counts[0] if biases else 0
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


def _round(bench: Bench, plain: Path, file: Path, made: Path, samples: Part) -> int:
    """Writes the network of `file` with weights that are rounded anew; how many layers they are of."""
    graph = bench.read(file)
    adapted = adapt_rounding(graph, bench.read(plain), file, [feed for feed, _ in samples])
    write(graph, made)
    return adapted


def _correct(bench: Bench, plain: Path, file: Path, made: Path, samples: Part) -> int:
    """Writes the network of `file` with corrected biases; how many."""
    graph, floats = bench.read(file), bench.read(plain)
    layers = {node.provenance[0]: node.output.name for node in floats.nodes if node.op.name in LAYERS}
    feeds = [feed for feed, _ in samples]
    corrected = correct_biases(graph, feeds, plain, layers, bench.folder / "tried.onnx")
    write(graph, made)
    return corrected
