"""What quantizing a model costs and brings: right answers before and after, noise of every tensor, bytes, and how often
the compiled integers differ from DequantizeLinear, the operator and QuantizeLinear in floats.

"After" is the compiled C: it is built for this machine and run; integers are the same on every target.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import MccError, Problem, UnsupportedModel, WrongUse
from ..base.quality import Accuracy, Quality
from ..base.quantizing import Recipe
from ..base.records import dataclass
from ..base.writing import cannot_write
from ..check.oracle import Oracle
from ..driver import Options, compile
from ..emit.package import Package
from ..emit.summary import table
from ..frontend.load import load, read_proto
from ..frontend.original import Original
from ..frontend.written import checked_bytes
from ..graph.ir import Graph
from ..importers import ranges
from ..passes.io.call_functions import refuse_functions
from ..quantize.guards import check_test_set, likely_accuracy
from ..quantize.quality import COMPARED
from ..quantize.quantize import Quantized, check_floats, quantized
from ..quantize.samples import Feed, Samples, read_samples, right_answers
from .correctness import build
from .noise import noise

_WORST = 8  # tensors that are shown
_NAMED = 3  # nodes that stay float for one reason


@dataclass(frozen=True)
class Differences:
    """Of integers, over all tensors that are quantized."""

    elements: int = 0
    different: int = 0
    most: int = 0  # steps


@dataclass(frozen=True)
class Size:
    file: int
    weights: int
    arena: int

    @staticmethod
    def of(file: Path, package: Package) -> Size:
        plan, files = package.plan, file.glob("*.safetensors") if file.is_dir() else [file]
        return Size(sum(each.stat().st_size for each in files), package.weights_bytes, plan.arena_bytes)


@dataclass(frozen=True)
class Report:
    before: Size
    after: Size
    quality: Quality
    tensors: Mapping[str, float]  # noise of inner ones, in dB
    differences: Differences | None  # where there are samples
    made: Quantized
    compiled: Package
    left_in_float: Sequence[Mapping[str, str]]  # what compiling could not make integers, and why

    def as_dict(self) -> dict[str, Any]:
        plan, accuracy = self.compiled.plan, self.quality.accuracy
        heard = {**self.tensors, **self.quality.outputs}
        return {
            "model": plan.name,
            "target": plan.target,
            "arena_bytes": plan.arena_bytes,
            "weights_bytes": self.compiled.weights_bytes,
            "macs": sum(step.macs for step in plan.steps()),
            **({"accuracy_percent": 100 * accuracy.after} if accuracy else {}),
            "before": vars(self.before),
            "after": vars(self.after),
            "accuracy": vars(accuracy) if accuracy else None,
            "signal_to_noise": {name: _finite(noise) for name, noise in heard.items()},
            "differences": vars(self.differences) if self.differences else None,
            "equalised": self.made.equalised,
            "searched": self.made.searched,
            "adapted": self.made.adapted,
            "corrected": self.made.corrected,
            "gains_in_float": dict(self.made.gains),
            "left_in_float": list(self.made.left),
            "float_in_quantized": list(self.left_in_float),
        }

    def show(self) -> str:
        rows = [
            [what, f"{getattr(self.before, what)}", f"{getattr(self.after, what)}"]
            for what in ("file", "weights", "arena")
        ]
        lines = table(["bytes", "before", "after"], rows, frozenset({0}))
        lines += self.quality.lines()
        worst = sorted(self.tensors.items(), key=lambda item: item[1])[:_WORST]
        lines += [f"tensor    {name}: {noise:.1f} dB" for name, noise in worst]
        if self.differences and self.differences.elements:
            found = self.differences
            share = found.different / found.elements
            lines.append(
                f"integers  {found.different} of {found.elements} values ({share:.3%}) differ from the float "
                f"simulation (max {found.most} LSB)"
            )
        done = {
            "equalised": (self.made.equalised, "pair", "of layers"),
            "ranges": (self.made.searched, "tensor", "with others than the samples' minimum and maximum"),
            "rounding": (self.made.adapted, "layer", "with weights adapted to the samples"),
            "biases": (self.made.corrected, "layer", "corrected by the mean error"),
        }
        lines += [f"{what:<9} {n} {of}{'s' * (n != 1)} {how}" for what, (n, of, how) in done.items() if n]
        for name, gain in self.made.gains:
            lines.append(f"layer     {name}: {gain:+.1f} dB in float{', left there' if name in self.made.left else ''}")
        lines += list(_in_float(self.left_in_float))
        return "\n".join(lines)


def _in_float(left: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """What stayed float, a line for each reason."""
    why = {each["why"]: [other["node"] for other in left if other["why"] == each["why"]] for each in left}
    for reason, nodes in why.items():
        more = len(nodes) - _NAMED
        yield f"float     {', '.join(nodes[:_NAMED])}{f' and {more} more' if more > 0 else ''}: {reason}"


def _finite(number: float) -> float | None:
    return round(number, 2) if np.isfinite(number) else None


_TRIED = 1, 16  # for sizes that nobody gives


def quantize(
    model: Path, result: Path, data: Path | None, options: Options, recipe: Recipe, test: Path | None = None
) -> Report:
    """Writes the quantized model to `result`. `test` are samples to measure with, if not those of `data`."""
    if options.quantize is not None:  # of a caller in Python
        fix = "give the samples as data"
        raise WrongUse(Problem("the model is quantized already by this call", "quantize", "samples are data", fix))
    refuse_functions(options.functions, "quantize")
    graph, options = _loaded(model, options, recipe)
    check_floats(graph, recipe, str(model))
    samples = read_samples(data, graph) if data else None
    heard = read_samples(test, graph) if test else samples
    if test and samples and heard:
        check_test_set(samples, heard)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        made = quantized(graph, samples, recipe, Path(scratch), options.dims, options.bounds)
        try:
            result.write_bytes(checked_bytes(read_proto(made.file), result.parent))
        except OSError as error:
            raise cannot_write("the model", result, error) from None
        return _measured(model, result, made, heard, options)


def _loaded(model: Path, options: Options, recipe: Recipe) -> tuple[Graph, Options]:
    """Weights alone do not depend on sizes: those that nobody gives stay free, and what is measured has 1 to 16."""
    try:
        return load(model, options.dims, options.shapes, options.bounds, options.reading), options
    except UnsupportedModel:
        free = ranges.free(read_proto(model, options.reading), options.shapes) if recipe.weights_only else set()
        free -= options.dims.keys()
        if not free:
            raise
        options = replace(options, dims={**options.dims, **dict.fromkeys(free, _TRIED)})
        with suppress(MccError):
            return load(model, options.dims, options.shapes, options.bounds, options.reading), options
        raise


def _measured(model: Path, result: Path, made: Quantized, samples: Samples | None, options: Options) -> Report:
    options = replace(options, budget={})
    before = compile(model, options)
    reading = options.reading
    options = replace(options, dims=made.dims, bounds=made.bounds, shapes={})  # of the file that was written
    options = replace(options, signature="", trust=False, prepend=())
    after = compile(result, options)
    left = json.loads(after.files["report.json"])["float_in_quantized"]
    report = Report(Size.of(model, before), Size.of(result, after), Quality(), {}, None, made, after, left)
    if samples is None or not samples.feeds:
        return report
    here = Options(dims=options.dims, shapes=options.shapes, bounds=options.bounds, kernels=options.kernels)
    some = samples.feeds[:COMPARED]
    heard = noise(made.float_file, result, some)
    names = Original(model, reading).outputs
    return replace(
        report,
        quality=Quality(
            {name: heard[name] for name in names if name in heard},
            _accuracy(Oracle(model, (), reading), result, samples, here),
        ),
        tensors={name: value for name, value in heard.items() if name not in names},
        differences=_differences(result, some, here),
    )


def _accuracy(oracle: Oracle, result: Path, samples: Samples, options: Options) -> Accuracy | None:
    if samples.labels is None:
        return None
    compiled = build(compile(result, options), options.resolved_target())
    first = oracle.original.outputs[0]
    wanted = [oracle.run(feed)[first] for feed in samples.feeds]
    got = [compiled.run(feed)[first] for feed in samples.feeds]
    labels = samples.labels
    return Accuracy(likely_accuracy(wanted, labels), right_answers(got, labels), len(labels))


def _differences(result: Path, feeds: Sequence[Feed], options: Options) -> Differences:
    """Every tensor that QuantizeLinear makes becomes an output of a build of its own."""
    names = _quantized(load(result, options.dims, options.shapes, options.bounds))
    if not names:
        return Differences()
    compiled = build(compile(result, replace(options, observe=names)), options.resolved_target())
    oracle = Oracle(result, names)
    elements = different = most = 0
    for feed in feeds:
        got, wanted = compiled.run(feed), oracle.run(feed)
        for name in names:
            steps = np.abs(got[name].astype(np.int64) - wanted[name])
            elements, different = elements + steps.size, different + int(np.count_nonzero(steps))
            most = max(most, int(steps.max(initial=0)))
    return Differences(elements, different, most)


def _quantized(graph: Graph) -> tuple[str, ...]:
    names = (node.output.name for node in graph.nodes if node.op.name == "QuantizeLinear")
    outputs = {value.name for value in graph.outputs}
    return tuple(name for name in names if name not in outputs)
