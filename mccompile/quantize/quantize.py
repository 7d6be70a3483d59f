"""From a float graph to an ONNX file with integers.

    graph -> float.onnx, batch normalization folded -> equalised -> onnxruntime's quantizer -> quantized.onnx

Factors and offsets in front of a layer stay apart: they bring elements to one range before these get one scale.

Both files are kept in a folder of the caller, so that they can be compared tensor by tensor. Invariant: the graph that
comes in has been loaded by `frontend.load`, so what cannot be compiled never gets here.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.constant import Constant
from ..base.errors import MccWarning, Problem, UnsupportedModel, WrongUse
from ..base.names import c_identifier
from ..base.quantizing import MOST, PALETTE, Recipe
from ..check.oracle import Oracle
from ..frontend.inputs import DimRanges
from ..frontend.load import load
from ..frontend.save import write
from ..graph.ir import Graph, Value
from ..kernels.registry import Registry
from ..passes.api import GRAPH, Context, GraphPass, PassManager
from ..passes.graph.eliminate_common_subexpressions import eliminate_common_subexpressions
from ..passes.graph.eliminate_dead import eliminate_dead
from ..passes.graph.fold_constants import fold_constants
from ..passes.graph.fuse_batchnorm import fuse_batchnorm
from ..passes.graph.fuse_pad import fuse_pad
from ..passes.graph.simplify_algebra import simplify_algebra
from ..targets import api as targets
from . import through_onnxruntime
from .adapted_rounding import adapt_rounding
from .equalise import equalise, largest, pairs
from .guards import check_samples
from .narrow_layers import LAYERS, narrow_layers
from .palettes import palettize_layers
from .samples import Feed, Samples, decibels
from .training_statistics import check_statistics
from .weights_only import quantize_weights

_TRIED = 16  # samples that choices are made by
_WORTH = 0.2  # dB that weights rounded by samples have to bring with others: less may be luck
_PASSES = (
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("fold_constants", fold_constants),
    GraphPass("simplify_algebra", simplify_algebra),
    GraphPass("eliminate_common_subexpressions", eliminate_common_subexpressions),
    GraphPass("fuse_pad", fuse_pad),
)


_QUANTIZED = ("QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")


@dataclass(frozen=True)
class Quantized:
    float_file: Path
    file: Path
    dims: DimRanges = field(default_factory=dict)  # of the files: what is still free
    equalised: int = 0  # pairs of layers
    adapted: int = 0  # layers whose weights are rounded by what samples make of them
    gains: tuple[tuple[str, float], ...] = ()  # dB that each layer wins in float, most first; only with `auto`
    left: tuple[str, ...] = ()  # layers in float


def check_floats(graph: Graph, recipe: Recipe) -> None:
    """Raises where a network has integers already; before samples are read, which would not fit it."""
    integers = next((node for node in graph.nodes if node.op.name in _QUANTIZED), None)
    if integers is not None and not recipe.weights_only:
        why = f"it is quantized already: {integers.op.name} stands at {' '.join(integers.provenance)}"
        fix = "compile it as it is, or quantize the network of floats that it was made of"
        raise WrongUse(Problem("the model is not quantized again", graph.name, why, fix))


def quantized(graph: Graph, samples: Samples | None, recipe: Recipe, folder: Path, dims: DimRanges) -> Quantized:
    """Writes the files into `folder`, and changes the graph; `dims` are those it was loaded with. Raises MccError."""
    recipe.check()
    check_floats(graph, recipe)
    dims = {c_identifier(name): (low, high) for name, (low, high) in dims.items() if low < high}
    if graph.interface is not None:
        why = "its inputs and outputs are not only tensors"
        raise UnsupportedModel(Problem("the model is not quantized", graph.name, why, "quantize a part of it"))
    if recipe.needs_samples and samples is None:
        fix = "add --weights-only 8 (or --dynamic, or samples: --data samples.npz)"
        why = "ranges of activations are taken from what the network computes of samples"
        raise WrongUse(Problem("no calibration data", "--data", why, fix))
    if samples is not None:
        check_samples(samples)
    context = Context(targets.load("generic"), Registry.load())
    PassManager(context).run(GRAPH, graph, _PASSES)
    plain, result = folder / "float.onnx", folder / "quantized.onnx"
    if recipe.weights_only:
        fuse_batchnorm(graph, context)  # or compiling would do it, and weights would be bytes no more
        GRAPH.verify(graph, "fuse_batchnorm")
        write(graph, plain)
        if not quantize_weights(graph, recipe.weights_only):
            raise UnsupportedModel(Problem("the model is not quantized", graph.name, "it has no weights to quantize"))
        GRAPH.verify(graph, "quantize_weights")
        write(graph, result)
        return Quantized(plain, result, dims)
    through_onnxruntime.require()
    bench = _Bench(recipe, samples.first(recipe.samples).feeds if samples else (), folder, dims)
    write(graph, folder / "written.onnx")
    if samples is not None:
        check_statistics(graph, folder / "written.onnx", samples.first(recipe.samples))
    through_onnxruntime.simplified(folder / "written.onnx", plain)
    _flatten_biases(plain, dims)
    equalised = _equalised(bench, plain, dims) if recipe.equalise and recipe.needs_samples else 0
    bench = _with_normalizations(bench, plain, dims)
    made = Quantized(plain, result, dims, equalised)
    if recipe.auto:
        gains = _gains(bench, plain, dims)
        made = replace(made, gains=gains, left=tuple(name for name, gain in gains[: recipe.auto] if gain > 0))
    elif recipe.sensitivity:
        made = _sensitive(bench, made, dims)
    bench.quantize(plain, result, made.left)
    return replace(made, adapted=_adapted(bench, plain, result)) if recipe.needs_samples else made


def _flatten_biases(plain: Path, dims: DimRanges) -> None:
    """onnxruntime's quantizer takes biases of one axis only."""
    graph = load(plain, dims)
    for node in graph.nodes:
        bias = node.inputs[2] if node.op.name == "Gemm" and len(node.inputs) > 2 else None
        if bias is not None and bias.constant is not None and bias.type.rank == 2 and bias.type.shape[0] == 1:
            flat = Constant.of(bias.constant.array.reshape(-1))
            graph.set_input(node, 2, Value.of_constant(f"{bias.name}/flat", flat))
    write(graph, plain)


@dataclass(frozen=True)
class _Bench:
    """Where variants are tried."""

    recipe: Recipe
    feeds: Sequence[Feed]
    folder: Path
    dims: DimRanges
    more: tuple[str, ...] = ()  # operators to quantize that need not be
    ranges: dict[bytes, Any] = field(default_factory=dict)  # of the float files that were tried, by their contents

    def quantize(self, plain: Path, result: Path, left: Collection[str] = ()) -> None:
        if self.recipe.dynamic:
            through_onnxruntime.dynamic(plain, result, left)
            return
        contents = plain.read_bytes()
        if contents not in self.ranges:
            self.ranges[contents] = through_onnxruntime.ranges(plain, self.feeds, self.recipe.method)
        through_onnxruntime.static(plain, result, self.ranges[contents], self.recipe.symmetric, left, self.more)
        if self.recipe.weights != "int8":
            graph = load(result, self.dims)
            if self.recipe.weights == PALETTE:
                palettize_layers(graph)
            else:
                narrow_layers(graph, MOST[self.recipe.weights])
            write(graph, result)

    def quality(self, plain: Path, left: Collection[str] = ()) -> float:
        """Decibels between outputs of the float file and of what it becomes."""
        tried = self.folder / "tried.onnx"
        self.quantize(plain, tried, left)
        return self.distance(plain, tried)

    def distance(self, plain: Path, other: Path) -> float:
        """Decibels between outputs of both files."""
        return decibels([pair for pairs in outputs(plain, other, self.feeds[:_TRIED]) for pair in pairs])


def outputs(plain: Path, other: Path, feeds: Sequence[Feed]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Of both files, for each output those of all runs."""
    first, second = Oracle(plain), Oracle(other)
    runs = [(first.run(feed), second.run(feed)) for feed in feeds]
    return [[(a[name], b[name]) for a, b in runs] for name in first.original.outputs]


def _equalised(bench: _Bench, plain: Path, dims: DimRanges) -> int:
    """Equalises the layers of the file where that helps; the number of pairs."""
    graph = load(plain, dims)
    found = pairs(graph)
    if not found:
        return 0
    between = list(dict.fromkeys(pair.between.name for pair in found))
    oracle = Oracle(plain, between)
    ranges: dict[str, np.ndarray] = {}
    for feed in bench.feeds:
        results: Mapping[str, np.ndarray] = oracle.run(feed)
        for name in between:
            seen = largest(results[name])
            ranges[name] = np.maximum(ranges.get(name, seen), seen)
    before = bench.quality(plain)
    equalise(graph, found, ranges)
    tried = bench.folder / "equalised.onnx"
    write(graph, tried)
    if bench.quality(tried) <= before:
        return 0
    tried.replace(plain)
    return len(found)


def _with_normalizations(bench: _Bench, plain: Path, dims: DimRanges) -> _Bench:
    """With integers around normalizations as well, where that brings the outputs closer."""
    name = through_onnxruntime.NORMALIZATION
    if not (bench.recipe.needs_samples and any(node.op.name == name for node in load(plain, dims).nodes)):
        return bench
    wider = replace(bench, more=(name,))
    return max(bench, wider, key=lambda each: each.quality(plain))


def _adapted(bench: _Bench, plain: Path, result: Path) -> int:
    """Rounds weights by samples, where others say that it helps; the number of layers."""
    some = bench.feeds[_TRIED:]
    if bench.recipe.weights != "int8" or len(some) < _TRIED:
        return 0
    graph = load(result, bench.dims)
    found = adapt_rounding(graph, load(plain, bench.dims), result, some)
    tried = bench.folder / "adapted.onnx"
    write(graph, tried)
    if not found or bench.distance(plain, tried) < bench.distance(plain, result) + _WORTH:
        return 0
    tried.replace(result)
    return found


def _sensitive(bench: _Bench, made: Quantized, dims: DimRanges) -> Quantized:
    """With as few layers in float as lead to the decibels that are asked for, taking more with each one as given."""
    wanted, plain = bench.recipe.sensitivity, made.float_file
    reached = bench.quality(plain)
    if reached >= wanted:
        return made
    gains = _gains(bench, plain, dims)
    names = [name for name, _ in gains]
    qualities: dict[int, float] = {}

    def enough(count: int) -> bool:
        qualities[count] = bench.quality(plain, names[:count])
        return qualities[count] >= wanted

    count = bisect_left(range(1, len(names) + 1), True, key=enough) + 1
    if count > len(names):
        count = max(qualities, key=qualities.__getitem__, default=0)
        said = f"{qualities.get(count, reached):.1f} dB are reached with {count} of {len(names)} layers in float"
        warnings.warn(MccWarning(f"outputs do not reach {wanted:g} dB: {said}"), stacklevel=2)
    return replace(made, gains=gains, left=tuple(names[:count]))


def _gains(bench: _Bench, plain: Path, dims: DimRanges) -> tuple[tuple[str, float], ...]:
    """What each layer wins in float, the others being integers."""
    if not bench.feeds:
        fix = "give --data"
        raise WrongUse(Problem("there is nothing to choose layers by", "--auto", "it needs samples", fix))
    layers = [node.provenance[0] for node in load(plain, dims).nodes if node.op.name in LAYERS]
    before = bench.quality(plain)
    gains = [(name, bench.quality(plain, [name]) - before) for name in layers]
    return tuple(sorted(gains, key=lambda item: -item[1]))
