"""From a float graph to an ONNX file with integers.

    graph -> float.onnx, batch normalization folded -> equalised -> onnxruntime's quantizer -> quantized.onnx

Factors and offsets in front of a layer stay apart: they bring elements to one range before these get one scale.

Both files are kept in a folder of the caller, so that they can be compared tensor by tensor. Invariant: the graph that
comes in has been loaded by `frontend.load`, so what cannot be compiled never gets here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import f32
from ..base.errors import Problem, UnsupportedModel, WrongUse, warn
from ..base.names import c_identifier
from ..base.quantizing import Recipe
from ..base.records import dataclass
from ..check.oracle import Oracle
from ..frontend.bounds import Bounds, bounds_of_tensors
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
from .bench import STARTS, Bench
from .equalise import equalise, groups, largest, pairs
from .guards import check_samples
from .improved import improve
from .narrow_layers import LAYERS
from .samples import Samples
from .training_statistics import check_statistics
from .weights_only import LEAST, quantize_weights

_LIKELY, _SURE = 0.5, 2.0  # standard errors
_EVEN = 0.05  # dB that equalised layers have to bring
_TRIES = 8  # of equalising layers
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
    bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of their tensors
    equalised: int = 0  # pairs of layers
    searched: int = 0  # tensors whose ranges are others than those of the samples
    adapted: int = 0  # layers whose weights are rounded by what samples make of them
    corrected: int = 0  # layers whose biases take back what quantizing adds on average
    gains: tuple[tuple[str, float], ...] = ()  # dB that each layer wins in float, most first; only with `auto`
    left: tuple[str, ...] = ()  # layers in float


def check_floats(graph: Graph, recipe: Recipe, file: str) -> None:
    """Raises where a network has integers already; before samples are read, which would not fit it."""
    integers = next((node for node in graph.nodes if node.op.name in _QUANTIZED), None)
    if integers is not None and not recipe.weights_only:
        why = f"it is quantized already: {integers.op.name} stands at {' '.join(integers.provenance)}"
        fix = "compile it as it is, or quantize the network of floats that it was made of"
        raise WrongUse(Problem("the model is not quantized again", file, why, fix))


def quantized(
    graph: Graph, samples: Samples | None, recipe: Recipe, folder: Path, dims: DimRanges, bounds: Bounds | None = None
) -> Quantized:
    """Writes the files into `folder`, and changes the graph; `dims` and `bounds` are those it was loaded with. Raises
    MccError."""
    recipe.check()
    check_floats(graph, recipe, graph.name)
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
    tops = bounds_of_tensors(graph) if bounds else {}
    plain, result = folder / "float.onnx", folder / "quantized.onnx"
    if recipe.weights_only:
        fuse_batchnorm(graph, context)  # or compiling would do it, and weights would be bytes no more
        GRAPH.verify(graph, "fuse_batchnorm")
        write(graph, plain)
        if not quantize_weights(graph, recipe.weights_only):
            why = f"no layer has constant f32 weights of {LEAST} elements or more"
            raise UnsupportedModel(Problem("the model is not quantized", "--weights-only", why, "compile it as it is"))
        GRAPH.verify(graph, "quantize_weights")
        write(graph, result)
        return Quantized(plain, result, dims, tops)
    through_onnxruntime.require()
    feeds = samples.first(recipe.samples).feeds if samples else ()
    bench = Bench(recipe, feeds, folder, partial(load, dims=dims, bounds=tops))
    write(graph, folder / "written.onnx")
    if samples is not None:
        check_statistics(graph, folder / "written.onnx", samples.first(recipe.samples))
    through_onnxruntime.simplified(folder / "written.onnx", plain)
    _check_layers(graph.name, bench.read(plain), recipe)
    _flatten_biases(bench, plain)
    equalised = _equalised(bench, plain) if recipe.equalise and recipe.needs_samples else 0
    bench = _started(_with_normalizations(bench, plain), plain)
    bench = replace(bench, factors=bench.searched(plain))
    made = Quantized(plain, result, dims, tops, equalised, searched=len(bench.factors))
    if recipe.auto:
        gains = _gains(bench, plain)
        made = replace(made, gains=gains, left=tuple(name for name, gain in gains[: recipe.auto] if gain > 0))
    elif recipe.sensitivity:
        made = _sensitive(bench, made)
    bench.quantize(plain, result, made.left)
    if not recipe.needs_samples:
        return made
    adapted, corrected = improve(bench, plain, result)
    return replace(made, adapted=adapted, corrected=corrected)


def _check_layers(name: str, graph: Graph, recipe: Recipe) -> None:
    """Raises where nothing would become integers."""
    wanted = through_onnxruntime.computing(recipe.dynamic)
    floats = [node.op.name for node in graph.nodes if any(out and out.type.dtype is f32 for out in node.outputs)]
    if not set(floats) & set(wanted):
        why = f"{', '.join(sorted(set(floats)))} compute in floats; {', '.join(LAYERS)} and others in integers"
        raise UnsupportedModel(Problem("there is nothing to quantize", name, why, "compile it as it is"))


def _flatten_biases(bench: Bench, plain: Path) -> None:
    """onnxruntime's quantizer takes biases of one axis only."""
    graph = bench.read(plain)
    for node in graph.nodes:
        bias = node.inputs[2] if node.op.name == "Gemm" and len(node.inputs) > 2 else None
        if bias is not None and bias.constant is not None and bias.type.rank == 2 and bias.type.shape[0] == 1:
            flat = Constant.of(bias.constant.array.reshape(-1))
            graph.set_input(node, 2, Value.of_constant(f"{bias.name}/flat", flat))
    write(graph, plain)


def _equalised(bench: Bench, plain: Path) -> int:
    """Equalises the layers of the file where that helps, as many at a time as do; the number of pairs."""
    graph = bench.read(plain)
    parts = [groups(pairs(graph))]
    if not parts[0]:
        return 0
    ranges = _largest(bench, plain, [pair.between.name for pair in pairs(graph)])
    best, done, tried = bench.unseen(plain), 0, bench.folder / "equalised.onnx"
    for _ in range(_TRIES):
        if not parts:
            break
        part = parts.pop()
        graph = bench.read(plain)
        wanted = {pair.between.name for group in part for pair in group}
        found = [pair for pair in pairs(graph) if pair.between.name in wanted]
        equalise(graph, found, ranges)
        write(graph, tried)
        quality = bench.unseen(tried)
        if quality.gain(best, _SURE) > _EVEN:
            best, done = quality, done + len(found)
            tried.replace(plain)
        elif len(part) > 1:
            parts += [part[len(part) // 2 :], part[: len(part) // 2]]
    return done


def _largest(bench: Bench, plain: Path, between: Sequence[str]) -> dict[str, np.ndarray]:
    """Of all samples, in each channel of tensors."""
    oracle = Oracle(plain, list(dict.fromkeys(between)))
    ranges: dict[str, np.ndarray] = {}
    for feed in bench.feeds:
        results: Mapping[str, np.ndarray] = oracle.run(feed)
        for name in between:
            seen = largest(results[name])
            ranges[name] = np.maximum(ranges.get(name, seen), seen)
    return ranges


def _with_normalizations(bench: Bench, plain: Path) -> Bench:
    """With integers around normalizations as well, where that brings the outputs closer."""
    name = through_onnxruntime.NORMALIZATION
    if not (bench.recipe.needs_samples and any(node.op.name == name for node in bench.read(plain).nodes)):
        return bench
    wider = replace(bench, more=(name,))
    return wider if wider.unseen(plain).gain(bench.unseen(plain), _LIKELY) > 0 else bench


def _started(bench: Bench, plain: Path) -> Bench:
    """Searching from the ranges that bring the outputs closest."""
    if not bench.searches:
        return bench
    best = bench.unseen(plain)
    for start in STARTS[1:]:
        tried = replace(bench, start=start)
        quality = tried.unseen(plain)
        if quality.gain(best, 0) > 0:
            bench, best = tried, quality
    return bench


def _sensitive(bench: Bench, made: Quantized) -> Quantized:
    """With as few layers in float as lead to the decibels that are asked for, taking more with each one as given."""
    wanted, plain = bench.recipe.sensitivity, made.float_file
    reached = bench.quality(plain)
    if reached >= wanted:
        return made
    gains = _gains(bench, plain)
    names = [name for name, _ in gains]
    qualities: dict[int, float] = {}

    def enough(count: int) -> bool:
        qualities[count] = bench.quality(plain, names[:count])
        return qualities[count] >= wanted

    count = bisect_left(range(1, len(names) + 1), True, key=enough) + 1
    if count > len(names):
        count = max(qualities, key=qualities.__getitem__, default=0)
        said = f"{qualities.get(count, reached):.1f} dB are reached with {count} of {len(names)} layers in float"
        warn(f"outputs do not reach {wanted:g} dB: {said}")
    return replace(made, gains=gains, left=tuple(names[:count]))


def _gains(bench: Bench, plain: Path) -> tuple[tuple[str, float], ...]:
    """What each layer wins in float, the others being integers."""
    if not bench.feeds:
        fix = "give --data"
        raise WrongUse(Problem("--auto needs samples", "--auto", "it measures the accuracy of each layer", fix))
    layers = [node.provenance[0] for node in bench.read(plain).nodes if node.op.name in LAYERS]
    before = bench.quality(plain)
    gains = [(name, bench.quality(plain, [name]) - before) for name in layers]
    return tuple(sorted(gains, key=lambda item: -item[1]))
