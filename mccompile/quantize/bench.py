"""Where variants of a network are quantized and compared, so that choices are measured.

Invariant: what `unseen` says is measured on samples that the ranges do not come from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from ..base.quantizing import MOST, PALETTE, SEARCH, Recipe
from ..base.records import dataclass
from ..check.oracle import Oracle
from ..frontend.save import write
from ..graph.ir import Graph
from . import through_onnxruntime
from .agreement import Agreement, mean_decibels
from .narrow_layers import narrow_layers
from .palettes import palettize_layers
from .samples import Feed
from .searched_ranges import COMPARED, LEAST, Search, samples_for

STARTS = ("minmax", "percentile", "folded", "clipped")  # methods, whose ranges a search may begin with
TRIED = 16  # samples that choices are made by
Pairs = list[tuple[np.ndarray, np.ndarray]]


def outputs(plain: Path, other: Path, feeds: Sequence[Feed]) -> list[Pairs]:
    """Of both files, for each output those of all runs."""
    first, second = Oracle(plain), Oracle(other)
    runs = [(first.run(feed), second.run(feed)) for feed in feeds]
    return [[(a[name], b[name]) for a, b in runs] for name in first.original.outputs]


@dataclass(frozen=True)
class Bench:
    recipe: Recipe
    feeds: Sequence[Feed]
    folder: Path
    read: Callable[[Path], Graph]  # a file, with sizes of the network that is quantized
    more: tuple[str, ...] = ()  # operators to quantize that need not be
    factors: Mapping[str, float] = field(default_factory=dict)  # of ranges of tensors, where they are not 1
    start: str = "minmax"  # the method whose ranges a search begins with
    ranges: dict[tuple[bytes, str], Any] = field(default_factory=dict)  # of files that were tried, by their contents

    def quantize(self, plain: Path, result: Path, left: Collection[str] = ()) -> None:
        if self.recipe.dynamic:
            through_onnxruntime.dynamic(plain, result, left)
            return
        self._static(plain, result, left)
        if self.recipe.weights != "int8":
            graph = self.read(result)
            if self.recipe.weights == PALETTE:
                palettize_layers(graph)
            else:
                narrow_layers(graph, MOST[self.recipe.weights])
            write(graph, result)

    def _static(self, plain: Path, result: Path, left: Collection[str] = ()) -> None:
        method = self.start if self.recipe.method == SEARCH else self.recipe.method
        key = plain.read_bytes(), method
        if key not in self.ranges:
            self.ranges[key] = through_onnxruntime.ranges(plain, self.feeds, method)
        ranges = through_onnxruntime.multiplied(self.ranges[key], self.factors)
        through_onnxruntime.static(plain, result, ranges, self.recipe.symmetric, left, self.more)

    def quality(self, plain: Path, left: Collection[str] = ()) -> float:
        """Decibels between outputs of the float file and of what it becomes."""
        tried = self.folder / "tried.onnx"
        self.quantize(plain, tried, left)
        return self.distance(plain, tried)

    def distance(self, plain: Path, other: Path) -> float:
        """Decibels between outputs of both files."""
        return mean_decibels(outputs(plain, other, self.feeds[:TRIED]))

    def unseen(self, plain: Path) -> Agreement:
        """What the file becomes, as far as that holds of other samples."""
        if len(self.feeds) < LEAST:
            tried = self.folder / "tried.onnx"
            self.quantize(plain, tried)
            return Agreement.of(outputs(plain, tried, self.feeds))
        return self._search(plain, COMPARED).quality({})

    def searched(self, plain: Path) -> dict[str, float]:
        """By what ranges are to be multiplied."""
        return self._search(plain).factors() if self.searches else {}

    @property
    def searches(self) -> bool:
        return self.recipe.method == SEARCH and self.recipe.needs_samples and len(self.feeds) >= LEAST

    def _search(self, plain: Path, compared: int = 0) -> Search:
        """Of `compared` samples, of as many as there is time for if that is 0."""
        tried = self.folder / "tried.onnx"
        self._static(plain, tried)
        scratch = self.folder / "searched.onnx"
        return Search(plain, tried, self.feeds, scratch, self.recipe.symmetric, compared or samples_for(tried))
