"""split_strings by str.split."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.split_strings import SplitStrings


def oracle(kind: SplitStrings, x: np.ndarray) -> tuple[np.ndarray, ...]:
    pieces = [text.split(kind.delimiter or None, -1 if kind.splits is None else kind.splits) for text in x]
    if kind.kept:
        pieces = [_runs(kind, text.encode()) for text in x]
    table = np.full((len(x), 4), "", object)
    for row, found in enumerate(pieces):
        table[row, : len(found)] = found[:4]
    counts = np.array([len(found) for found in pieces])
    return table, counts, counts.max(keepdims=True)


def _runs(kind: SplitStrings, text: bytes) -> list[str]:
    kept = {byte for low, high in kind.kept for byte in range(low, high + 1)}
    marked = bytes(byte if byte in kept else 0 for byte in text)
    runs = [run.decode() for run in marked.split(b"\0")]
    return [run for run in runs if len(run) >= kind.least]
