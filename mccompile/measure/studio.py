"""What the page of `mccompile studio` is told besides the analysis of each build: measurements, where integers lose
accuracy, the best plans, and which steps do the same work.

Invariant: a figure is measured or absent; why it is absent is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import BadFile, MccError, Problem
from ..base.records import dataclass
from ..base.stages import stage
from ..check.inputs import random_sets
from ..driver import Options, best_plans, compile, settled
from ..emit.analysis import analysis_of
from ..emit.package import Package
from ..fitting import SMALLEST, Point
from ..frontend.load import load
from ..frontend.original import Original
from ..graph.ir import Graph, Value
from ..quantize.samples import Feed, read_samples
from ..toolchain.tools import missing
from .cost import cost
from .matching import matched
from .noise import noise, on_steps, twins, twins_by_work
from .speed import speed

_SMALL = 64 * 1024  # bytes of RAM: the budget that the page begins with where none is given
_RAM = ("arena_bytes", "struct_bytes", "run_stack_bytes", "external_bytes")  # what counts there, as far as it is known
_RANDOM = 8  # sets of inputs, where there are no samples
_MOST_HEARD = 256  # samples that noise is measured with
Job = tuple[Path, Options]


@dataclass
class Build:
    """A model, compiled with options."""

    path: Path
    options: Options
    package: Package
    analysis: dict[str, Any]
    without: list[str] = field(default_factory=list)  # what could not be measured, and why
    heard: str = ""  # the inputs that noise is of


def built(path: Path, options: Options, measure: bool, plans: bool) -> Build:
    package = compile(path, options)
    build = Build(path, options, package, {})
    measured = build_measured(build, options, by_step=True) if measure else None
    best = _frontier(build, measured, measure) if plans else None
    build.analysis = analysis_of(package, measured, frontier=best)
    return build


def add_smallest(build: Build) -> None:
    """The plan of least RAM, where that of the build takes more than the page's budget; it is not measured."""
    takes = sum(build.analysis.get(name) or 0 for name in _RAM)
    if takes > _SMALL and "frontier" not in build.analysis:
        options = replace(settled(build.path, build.options), **SMALLEST)
        build.analysis["smallest"] = Point(SMALLEST, compile(build.path, options)).as_dict()


def build_measured(build: Build, options: Options, by_step: bool = False) -> Mapping[str, Any] | None:
    """What `bench` says, and how much each step takes; nothing where a program for that is missing."""
    target = options.resolved_target()
    if absent := missing([target.compiler, *target.run.split()[:1]]):
        reason = f"{target.name} was not measured: {', '.join(absent)} is not installed"
        build.without += [] if reason in build.without else [reason]
        return None
    try:
        if target.run:
            return dict(cost(build.path, options, by_step=by_step).as_dict())
        return dict(speed(build.path, options).as_dict())
    except MccError as error:  # a model that does not fit the emulated board is compiled all the same
        build.without.append(f"{target.name} was not measured: {error.problems[0].what}")
        return None


def _frontier(build: Build, measured: Mapping[str, Any] | None, measure: bool) -> list[Mapping[str, Any]]:
    """The best plans, and that of the build, with what they take."""
    shown = Point({"prefer": build.options.prefer}, build.package)
    found = []
    for point in best_plans(build.path, build.options):
        own = replace(settled(build.path, build.options), **point.changes)
        if point.figures == shown.figures:
            found.append(_taken(point, measured) | {"shown": True})
        else:
            found.append(_taken(point, build_measured(build, own) if measure else None))
    if not any("shown" in each for each in found):
        found.append(_taken(shown, measured) | {"options": _asked(build.options), "shown": True})
    return undominated(found)


def _asked(options: Options) -> str:
    """What leads to the plan of a build, as flags."""
    budget = ",".join(f"{what}={most}" for what, most in options.budget.items())
    return " ".join([f"--prefer {options.prefer}"] * bool(options.prefer) + [f"--budget {budget}"] * bool(budget))


def _taken(point: Point, measured: Mapping[str, Any] | None) -> dict[str, Any]:
    """By a plan."""
    names = {"us": "median_us", "instructions": "run_instructions"}
    names |= {name: name for name in ("code_bytes", "struct_bytes", "run_stack_bytes")}
    known = {key: measured[name] for key, name in names.items() if measured and measured.get(name) is not None}
    return point.as_dict() | known


def undominated(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that no other one is at least as good as, by what was measured, and the one that is shown."""
    clock = next((key for key in ("us", "instructions") if all(key in p for p in points)), "estimated_time")

    def figures(point: Mapping[str, Any]) -> tuple[float, ...]:
        return point[clock], point["ram_bytes"], point["weights_bytes"] + point.get("code_bytes", 0)

    kept: list[Mapping[str, Any]] = []
    for point in sorted(points, key=figures):
        beaten = any(all(a <= b for a, b in zip(figures(k), figures(point), strict=True)) for k in kept)
        if not beaten or point.get("shown"):
            kept.append(point)
    return kept


def require_alike(plain: Path, other: Path, options: Options) -> None:
    """Is what --float names the network that the other one was made of, as far as inputs tell?"""
    if not are_alike(plain, other, options, options):
        said = (f"{path.name} takes {_inputs(path, options)}" for path in (plain, other))
        fix = f"name the network of floats that {other.name} was made of, or leave out --float {plain}"
        raise BadFile(Problem("--float names another network", f"--float {plain}", "; ".join(said), fix))


def are_alike(plain: Path, other: Path, plain_options: Options, options: Options) -> bool:
    """Have both as many inputs, of the same sizes in any order? Layouts differ, and types."""
    first, second = _graph(plain, plain_options).inputs, _graph(other, options).inputs
    return len(first) == len(second) and all(_sizes(a) == _sizes(b) for a, b in zip(first, second, strict=True))


def _sizes(value: Value) -> list[str]:
    return sorted(str(size) for size in value.type.shape if size != 1)


def _inputs(path: Path, options: Options) -> str:
    return ", ".join(f"{value.name} {value.type}" for value in _graph(path, options).inputs)


@stage("compare with floats")
def hear(build: Build, plain: Path, plain_options: Options, data: Path | None) -> None:
    """Puts the signal to noise against the float model into the steps of a build."""
    first, second = _graph(plain, plain_options), _graph(build.path, build.options)
    pairs = twins(Original(plain, plain_options.reading), Original(build.path, build.options.reading))
    by_work = twins_by_work(first, second)
    pairs = pairs if len(pairs) >= len(by_work) else by_work
    feeds: Sequence[Feed]
    if data is None:
        feeds = [each.inputs for each in random_sets(first, 0, _RANDOM)]
        build.heard = f"{_RANDOM} sets of random inputs (give real ones with --data)"
    else:
        feeds = read_samples(data, first).feeds
        build.heard = f"{counted(len(feeds))} of {data.name}"
    readings = plain_options.reading, build.options.reading
    try:
        found = noise(
            plain, build.path, feeds[:_MOST_HEARD], pairs, readings, _Handing(first, build.analysis["inputs"])
        )
    except MccError as error:
        build.without.append(f"the error against {plain.name} was not measured: {error.problems[0].what}")
        return
    heard = on_steps(build.analysis["steps"], second, {pairs[name]: value for name, value in found.items()})
    if all(value is None for value in heard):
        build.without.append(f"the error against {plain.name} was not measured: no layer there has one like it here")
    for step, value in zip(build.analysis["steps"], heard, strict=True):
        if value is not None:
            step["signal_to_noise"] = value


def counted(count: int) -> str:
    if count > _MOST_HEARD:
        return f"the first {_MOST_HEARD} of {count:,} samples"
    return f"all {count} samples" if count > 1 else "the only sample"


class _Handing:
    """Floats as a model takes them whose inputs may be integers, in the order of the float model's inputs."""

    def __init__(self, plain: Graph, inputs: Sequence[Mapping[str, Any]]) -> None:
        self.names, self.inputs = [value.name for value in plain.inputs], inputs

    def __call__(self, feed: Feed) -> Feed:
        values = [feed[name] for name in self.names]
        return {t["name"]: _stored(t, value) for t, value in zip(self.inputs, values, strict=False)}


def _stored(tensor: Mapping[str, Any], value: np.ndarray) -> np.ndarray:
    scheme = tensor.get("quantized")
    if scheme is None or value.dtype.kind != "f" or scheme["axis"] is not None:
        return value
    wanted = np.dtype({"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16"}[tensor["dtype"]])
    limits = np.iinfo(wanted)
    counted = np.rint(value / scheme["scales"][0]) + scheme["zeros"][0]
    stored: np.ndarray = np.clip(counted, limits.min, limits.max).astype(wanted)
    return stored


def _graph(path: Path, options: Options) -> Graph:
    return load(path, options.dims, options.shapes, options.bounds, options.reading)


def pairs_of(builds: Sequence[Build]) -> list[list[list[int]]]:
    """For each further build quadruples: the first build, that one, and numbers of steps of both that do the same."""
    first = builds[0].analysis["steps"] if builds else []
    return [
        [[0, number, *pair] for pair in matched(first, build.analysis["steps"], by_work=True).items()]
        for number, build in enumerate(builds[1:], 1)
    ]


def is_quantized(build: Build) -> bool:
    return Original(build.path, build.options.reading).is_quantized
