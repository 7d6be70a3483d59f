"""Samples to calibrate with and to count right answers on: .npz files, .npy files, folders of test data.

Arrays go by the names of inputs; their first axis counts samples. Invariant: every feed fits the model's inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..base.errors import BadFile, Problem, warn
from ..base.meanings import ours
from ..base.near import near_file
from ..base.records import dataclass
from ..check.inputs import stored_sets
from ..graph.ir import Graph, Value
from .pictures import refuse_pictures
from .sample_fixes import (
    LABELS,
    changed,
    converted,
    counted,
    fits,
    python,
    renamed,
    stored,
    turned,
    wanted,
    without_labels,
)

_NAMELESS = {"", "arr_0"}  # what arrays without a name are called by numpy and here
Feed = dict[str, np.ndarray]


@dataclass(frozen=True)
class Samples:
    feeds: Sequence[Feed]  # each is what one run takes
    labels: np.ndarray | None = None  # one number per sample, in the order of the runs
    path: Path = Path()  # where they come from

    def first(self, count: int) -> Samples:
        """What is calibrated with; labels are of no use for that."""
        return Samples(self.feeds[:count], path=self.path)


def read_samples(path: Path, graph: Graph) -> Samples:
    """The samples in a file or folder. Raises BadFile."""
    if path.is_dir():
        inputs = [value.name for value in graph.inputs]
        refuse_pictures(path, graph)
        return Samples([data.inputs for data in stored_sets(path, inputs, graph)], path=path)
    names = {value.name for value in graph.inputs}
    arrays = _arrays(path, names)
    label = next((name for name in LABELS if name in arrays and name not in names), None)
    labels = arrays.pop(label) if label else None
    if len(graph.inputs) == 1 and len(arrays) == 1 and arrays.keys() <= _NAMELESS:
        arrays = {graph.inputs[0].name: next(iter(arrays.values()))}
    strange = ", ".join(sorted(arrays.keys() - names))
    if not names <= arrays.keys():
        why = f"it has {', '.join(sorted(arrays)) or 'no arrays'}; the model takes {', '.join(sorted(names))}"
        raise BadFile(Problem("the samples do not fit the model", str(path), why, renamed(path, graph, arrays)))
    if strange:
        warn(f"{path}: the model has no input {strange}, so that is not used")
    parts = {value.name: _runs(path, value, arrays[value.name]) for value in graph.inputs}
    counts = {name: len(runs) for name, runs in parts.items()}
    if 0 in counts.values():
        why = ", ".join(
            f"{name} has the shape {list(arrays[name].shape)}" for name, count in counts.items() if not count
        )
        raise BadFile(Problem("there are no samples", str(path), why, "store some: the first axis counts them"))
    if len(set(counts.values())) != 1:
        why = ", ".join(f"{name} for {count} runs" for name, count in counts.items())
        fix = counted(path, names, min(len(arrays[name]) for name in names))
        raise BadFile(Problem("inputs have different numbers of samples", str(path), why, fix))
    feeds = [{name: runs[number] for name, runs in parts.items()} for number in range(next(iter(counts.values())))]
    if labels is not None:
        labels = _labels(path, str(label), labels)
        _require_as_many(path, str(label), labels, {name: arrays[name] for name in names})
    return Samples(feeds, labels, path)


def _arrays(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    try:
        found = np.load(path, allow_pickle=False)
        return {"": found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        usual = "give an .npz file of arrays named like the inputs, an .npy file, or a folder with test_data_set_0"
        fix = "" if path.exists() else near_file(path, "*.npz", "*.npy")
        if path.exists() and "allow_pickle" in why:
            begins = path.read_bytes()[:6]
            is_one = begins.startswith((b"\x93NUMPY", b"PK"))
            why = "it holds Python objects, not numbers" if is_one else "it is not a file of numpy's"
            if begins.startswith(b"\x80"):
                why = "it is a pickle, and loading one runs whatever code it names"
                anew = python(f"numpy.savez('{path.with_suffix('.npz')}', **numpy.load('{path}', allow_pickle=True))")
                fix = f"{anew} # a dictionary, from somebody you trust; then give {path.with_suffix('.npz')}"
        if isinstance(error, BadZipFile):
            why, usual = "it is an archive that was cut off", "store or copy it again"
        if path.suffix == ".csv" and path.exists():
            table = f"numpy.loadtxt('{path}', delimiter=',', dtype='float32', ndmin=2)"
            fix = python(f"numpy.savez('{path.with_suffix('.npz')}', {table})")
        if not path.exists() and "--quantize" in ours(path.name):
            why, fix = f"--quantize names a file of samples; {path} is what it makes anyway", stored(names)
        if path.suffix == ".onnx" and path.exists():
            why, fix = "it is a model, not samples for it", stored(names)
        raise BadFile(Problem("cannot read the samples", str(path), why, fix or usual)) from None


def _runs(path: Path, value: Value, array: np.ndarray) -> list[np.ndarray]:
    """What each run takes: as many samples as the model's batch, which is 1 where it is free."""
    shape = wanted(value)
    numpy = value.type.dtype.numpy
    if not np.can_cast(array.dtype, numpy, "same_kind"):
        why = f"{value.name} is {value.type}, the samples are {array.dtype}"
        fix = converted(path, value, array)
        raise BadFile(Problem("the samples are of another type", str(path), why, fix))
    if array.dtype == np.uint8 and np.dtype(numpy).kind == "f":
        told = f"{path}: {value.name} is {value.type}; the samples are bytes, which are taken as 0.0 to 255.0"
        warn(f"{told}: scale them as in training, and store floats")
    array = array.astype(numpy, copy=False)
    if shape and array.ndim == len(shape) and fits(array.shape[1:], shape[1:]):
        batch = shape[0] or 1
        return [array[start : start + batch] for start in range(0, len(array) - batch + 1, batch)]
    if array.ndim == len(shape) + 1 and fits(array.shape[1:], shape):
        return list(array)
    why = f"{value.name} is {value.type}, the array has the shape {list(array.shape)}, whose first axis counts samples"
    raise BadFile(Problem("the samples do not fit the model", str(path), why, turned(path, value, array.shape)))


def _labels(path: Path, name: str, labels: np.ndarray) -> np.ndarray:
    found = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    why, fix = f"they are {labels.dtype} of the shape {list(labels.shape)}", without_labels(path)
    if found.ndim == 1 and found.dtype.kind == "f" and (found == np.rint(found)).all():
        why = f"they are {labels.dtype}, though each is whole"
        fix = changed(path, name, ".astype('int64')")
    elif found.ndim == 2 and found.dtype.kind in "fiub" and (np.sort(found)[:, -2:] == [0, 1]).all():
        why = f"they are one-hot: each row of {list(labels.shape)} has a single 1"
        fix = changed(path, name, ".argmax(1)")
    elif found.ndim == 1 and found.dtype.kind in "iu":
        return found
    raise BadFile(Problem("the labels are not one whole number per sample", str(path), why, fix))


def _require_as_many(path: Path, name: str, labels: np.ndarray, arrays: Mapping[str, np.ndarray]) -> None:
    """A label for each sample, or as many for each; what is shifted by one is wrong throughout."""
    samples = min(map(len, arrays.values()))
    if len(labels) % samples:
        why = f"{name} are {len(labels)}, the samples {samples}"
        raise BadFile(Problem("there are not as many labels as samples", str(path), why, without_labels(path)))


def arrays_of(feeds: Sequence[Feed]) -> dict[str, np.ndarray]:
    """Of each input, what all runs take."""
    return {name: np.stack([feed[name] for feed in feeds]) for name in (feeds[0] if feeds else ())}


def _require_classes(labels: np.ndarray, classes: int) -> None:
    beyond = np.flatnonzero((labels < 0) | (labels >= classes))
    if beyond.size:
        first = beyond[0]
        why = f"the first output has {classes} scores per sample; the label of sample {first} is {labels[first]}"
        raise BadFile(Problem("labels do not fit the model", "labels", why, f"count classes from 0 to {classes - 1}"))


def answers(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """The class with the largest score, or what is said itself; `outputs` are of all runs in order."""
    scores = np.concatenate([np.atleast_1d(output) for output in outputs])
    if scores.size == len(scores):
        return scores.reshape(-1)
    return np.asarray(scores.argmax(-1)).reshape(-1)


def right_answers(outputs: Sequence[np.ndarray], labels: np.ndarray) -> float:
    """The share of samples whose largest score is that of their label."""
    given = answers(outputs)
    if len(given) > len(labels) or not len(given):
        why = f"the first output says {len(given)} things about {len(labels)} samples"
        fix = "give one for each sample, or leave them out"
        raise BadFile(Problem("labels do not fit the model", "labels", why, fix))
    first = np.atleast_1d(outputs[0])
    if first.size != len(first):
        _require_classes(labels, first.shape[-1])
    return float(np.mean(given == labels[: len(given)]))


def decibels(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Signal to noise of (wanted, got) of all runs; infinite where nothing differs."""
    return ratio(sum((energies(*pair) for pair in pairs), np.zeros(2)))


def energies(wanted: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Of signal and noise; those of several runs are added."""
    exact = wanted.astype(np.float64)
    return np.array([np.sum(exact**2), np.sum((exact - got) ** 2)])


def ratio(energy: np.ndarray) -> float:
    """Of signal to noise, in dB."""
    signal, noise = map(float, energy)
    if noise == 0:
        return float("inf")
    return 10 * float(np.log10(max(signal, 1e-300) / noise))
