"""What two compiled folders make of the same inputs: how far outputs move, whether answers stay right, whose weights
are other bytes. Both are built for this machine, whose integers are those of every target, or else emulated.

Invariant: what cannot be compared is said, with what keeps it from that; nothing is called the same that is not.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base import dims
from ..base.dims import Dim
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..check.inputs import random_sets
from ..graph.ir import Fact, Graph, Value
from ..quantize.guards import likely_accuracy
from ..quantize.samples import Samples, decibels, read_samples, right_answers
from ..toolchain.emulate import Emulated
from ..toolchain.model_report import Report, Tensor
from ..toolchain.run import Model
from .board import runnable

_BEGIN = struct.Struct("<32xQ")  # of a blob's header: where its data begins


@dataclass(frozen=True)
class Moved:
    """An output, over all runs."""

    name: str
    largest: float  # change of an element
    of: float  # largest element before
    noise: float  # dB of signal to noise; infinite where nothing moved

    @property
    def share(self) -> float:
        return self.largest / self.of if self.of else float(self.largest > 0)

    def show(self) -> str:
        if not self.largest:
            return "equal bits"
        return f"moves by {self.largest:.3g}, {self.share:.2%} of its largest ({self.noise:.1f} dB)"


@dataclass(frozen=True)
class Results:
    runs: int
    inputs: str  # where they come from
    outputs: tuple[Moved, ...]
    right: tuple[float, float] | None = None  # shares of right answers, where there are labels
    answers: float | None = None  # share of runs whose largest score is another one

    def as_dict(self) -> dict[str, Any]:
        outputs = [
            {"name": o.name, "largest_change": o.largest, "largest": o.of, "snr_db": o.noise if o.largest else None}
            for o in self.outputs
        ]
        found: dict[str, Any] = {"runs": self.runs, "inputs": self.inputs, "outputs": outputs}
        if self.right is not None:
            found["accuracy_percent"] = {"before": 100 * self.right[0], "after": 100 * self.right[1]}
        if self.answers is not None:
            found["other_answers_percent"] = 100 * self.answers
        return found


def results(before: Path, after: Path, data: Path | None, runs: int) -> Results | str:
    """The results of both, or why they cannot be compared."""
    (one, why), (other, problem) = _built(before), _built(after)
    if one is None or other is None:
        return (why or problem).partition("\n")[0].removeprefix("error: ")
    why = _unlike(one.report, other.report)
    if why:
        return why
    values = [Value(t.name, Fact(TensorType(t.dtype, _shape(one.report, t)))) for t in one.report.inputs]
    graph = Graph(one.report.prefix, values, values)
    samples = read_samples(data, graph) if data else Samples([each.inputs for each in random_sets(graph, 0, runs)])
    made = [(one.run(feed), other.run(feed)) for feed in samples.feeds]
    names = [tensor.name for tensor in one.report.outputs]
    first = [tuple(side[names[0]] for side in pair) for pair in made]
    right = None
    if samples.labels is not None:
        right = (
            likely_accuracy([a for a, _ in first], samples.labels),
            right_answers([b for _, b in first], samples.labels),
        )
    scored = first[0][0].ndim > 0 and first[0][0].shape[-1] > 1
    answers = float(np.mean([np.any(a.argmax(-1) != b.argmax(-1)) for a, b in first])) if scored else None
    moved = tuple(_moved(name, [(a[name], b[name]) for a, b in made]) for name in names)
    return Results(len(made), str(data) if data else "random", moved, right, answers)


def _built(folder: Path) -> tuple[Model | Emulated | None, str]:
    return runnable(folder, json.loads((folder / "report.json").read_text(encoding="utf-8")))


def _unlike(one: Report, other: Report) -> str:
    for what, before, after in (("inputs", one.inputs, other.inputs), ("outputs", one.outputs, other.outputs)):
        mine = [f"{t.name} {t}" for t in before]
        theirs = [f"{t.name} {t}" for t in after]
        if mine != theirs:
            return f"{what} are {', '.join(mine)} before, {', '.join(theirs)} after"
    ranges = [dict(report.given) for report in (one, other)]
    if ranges[0] != ranges[1]:
        sizes = [", ".join(f"{n.removeprefix('n_')}={a}..{b}" for n, (a, b) in known.items()) for known in ranges]
        return f"sizes are {sizes[0] or 'fixed'} before, {sizes[1] or 'fixed'} after"
    for tensor in (*one.inputs, *one.outputs):
        try:
            _shape(one, tensor)
        except ValueError:
            return f"how many elements {tensor.name} has follows from data"
    if any(tensor.dtype.numpy.kind not in "biuf" for tensor in (*one.inputs, *one.outputs)):
        return "its tensors are not all numbers"
    return ""


def _shape(report: Report, tensor: Tensor) -> tuple[Dim, ...]:
    """With the sizes that a run is told."""
    known = {name: dims.symbol(name, low, high) for name, (low, high) in report.given.items()}
    return tuple(dims.parse(size, known) if isinstance(size, str) else size for size in tensor.shape)


def _moved(name: str, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Moved:
    exact = [(a.astype(np.float64), b.astype(np.float64)) for a, b in pairs]
    unequal = [(a, b) for a, b in exact if not np.array_equal(a, b, equal_nan=True)]
    largest = max((float(np.max(np.abs(a - b))) for a, b in unequal if a.size), default=0.0)
    most = max((float(np.max(np.abs(a))) for a, _ in exact if a.size), default=0.0)
    return Moved(name, largest, most, decibels(exact))


def moved_weights(before: Path, after: Path, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Steps that both sides have, and whose weights are other bytes; by their names. What kernels or targets pack
    otherwise is not compared."""
    files = [folder / f"{report['prefix']}.mcb" for folder, report in ((before, one), (after, other))]
    if not all(file.is_file() for file in files) or one["target"] != other["target"]:
        return []
    mine, theirs = (_weights(file, report) for file, report in zip(files, (one, other), strict=True))
    return [step for (step, kernel), data in mine.items() if theirs.get((step, kernel), data) != data]


def _weights(file: Path, report: Mapping[str, Any]) -> dict[tuple[str, str], bytes]:
    content = file.read_bytes()
    (begin,) = _BEGIN.unpack_from(content)
    return {
        (step["name"], step["kernel"]): b"".join(content[begin + low : begin + high] for low, high in ranges)
        for step in report["steps"]
        if (ranges := step.get("weights_ranges"))
    }
