"""Is this calibration data for this model? What cannot be is refused, what is unlikely is a warning with the figure.

Ranges that come from wrong data quantize a network without a complaint, and only its answers show it. Refused: values
that are not finite, inputs that are one number in all samples, and data whose activations are over `_FAR` times larger
or smaller than those that the network's own BatchNormalization layers were trained on. Warned of: activations `_NEAR`
times off; few samples; channels that never move; without statistics, biases that are nothing beside activations, or
everything; ranges that the samples of --test leave.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..base.errors import BadFile, MccWarning, Problem
from ..check.oracle import Oracle
from ..graph.ir import Graph, Node
from .samples import Feed, Samples

_FEW = 8  # samples
_NEAR, _FAR = 4.0, 16.0  # between deviations of activations and those seen in training: 0.7 to 1.5 in trained networks
_NO_BIAS, _ALL_BIAS = 0.01, 20.0  # biases per deviation of what they are added to: 0.02 to 2 in the first layers
_SHOWN = 4  # layers
_OF_STATISTIC = {"BatchNormalization": 4, "Conv": 2, "Gemm": 2}  # the operand that tells of training: variance or bias
_NONE = 99


def check_samples(samples: Samples) -> None:
    """Raises BadFile for what no range comes from."""
    for name, array in _arrays(samples.feeds).items():
        if not np.isfinite(array).all():
            bad = np.count_nonzero(~np.isfinite(array))
            why = f"{bad} of {array.size} values of {name} are NaN or infinite"
            raise BadFile(Problem("the calibration data is not finite", str(samples.path), why, "remove those samples"))
        if array.size > 1 and array.dtype.kind == "f" and array.min() == array.max():
            why = f"every value of {name} is {array.flat[0]:g}"
            fix = "give samples of what the model will see"
            raise BadFile(Problem("the calibration data is constant", str(samples.path), why, fix))
    if len(samples.feeds) < _FEW:
        _warn(f"ranges come from {len(samples.feeds)} samples; 100 that look like what the model will see are better")


def check_test_set(samples: Samples, test: Samples) -> None:
    """Warns where the ranges of inputs differ from those that results are measured with."""
    of_test = _arrays(test.feeds)
    for name, array in _arrays(samples.feeds).items():
        low, high = float(array.min()), float(array.max())
        other = of_test[name]
        spread, whole = high - low, float(other.max()) - float(other.min())
        if whole > _NEAR * spread or spread > _NEAR * whole:
            _warn(
                f"{name} is {low:g} to {high:g} in the calibration data, {other.min():g} to {other.max():g} in the "
                "test set: is one of them scaled otherwise?"
            )


def check_statistics(graph: Graph, file: Path, samples: Samples) -> None:
    """Compares activations with what training has left in the network; `file` is the graph. Raises BadFile."""
    known = [node for node in graph.nodes if _constant(node, _OF_STATISTIC.get(node.op.name, _NONE)) is not None]
    normalized = [node for node in known if node.op.name == "BatchNormalization"]
    layers = normalized or known
    watched = [_seen(node) for node in layers]
    if not watched or not samples.feeds:
        return
    deviations = _deviations(file, watched, samples.feeds)
    if normalized:
        _against_training(normalized[0], deviations[0], samples.path)
    else:
        _against_biases(layers, deviations)
    dead = {name: np.flatnonzero(found == 0) for name, found in zip(watched, deviations, strict=True)}
    still = [f"{len(channels)} channels of {name}" for name, channels in dead.items() if len(channels)]
    if still:
        _warn(f"{', '.join(still[:_SHOWN])} are the same in all samples")


def _against_training(node: Node, found: np.ndarray, path: Path) -> None:
    variance = _constant(node, 4)
    assert variance is not None
    ratio = _middle(found) / max(_middle(np.sqrt(np.maximum(variance, 0))), 1e-30)
    times = f"{ratio:.3g} times as large as" if ratio >= 1 else f"{1 / max(ratio, 1e-30):.3g} times smaller than"
    said = f"the activations at {_seen(node)} are {times} those that {node.provenance[0]} was trained on"
    if not 1 / _FAR <= ratio <= _FAR:
        fix = "scale the samples as in training, such as pixels of 0 to 255 by 1/255"
        raise BadFile(Problem("the calibration data does not fit the model", str(path), said, fix))
    if not 1 / _NEAR <= ratio <= _NEAR:
        _warn(f"{said}: are the samples scaled as in training?")


def _against_biases(layers: Sequence[Node], deviations: Sequence[np.ndarray]) -> None:
    biases = [np.abs(bias) for bias in map(_bias, layers) if bias is not None]
    shares = [_middle(bias) / max(_middle(found), 1e-30) for bias, found in zip(biases, deviations, strict=True)]
    if max(shares) < _NO_BIAS and any(bias.any() for bias in biases):
        _warn(
            f"biases are at most {max(shares):.1%} of the activations that they are added to: "
            "are the samples larger than those of training, such as pixels of 0 to 255 for 0 to 1?"
        )
    if shares[0] > _ALL_BIAS:
        _warn(
            f"the bias of {layers[0].provenance[0]} is {shares[0]:.3g} times as large as what the samples make: "
            "are they smaller than those of training?"
        )


def _deviations(file: Path, names: Sequence[str], feeds: Sequence[Feed]) -> list[np.ndarray]:
    """The standard deviation of each channel over all samples and positions."""
    outputs = Oracle(file).original.outputs
    oracle = Oracle(file, [name for name in dict.fromkeys(names) if name not in outputs])
    sums = [np.zeros(1) for _ in names]
    squares, counts = [np.zeros(1) for _ in names], [0] * len(names)
    for feed in feeds:
        made = oracle.run(feed)
        for number, name in enumerate(names):
            array = made[name].astype(np.float64)
            rows = np.moveaxis(array, 1, -1).reshape(-1, array.shape[1]) if array.ndim > 1 else array.reshape(-1, 1)
            sums[number] = sums[number] + rows.sum(0)
            squares[number] = squares[number] + (rows**2).sum(0)
            counts[number] += len(rows)
    return [
        np.sqrt(np.maximum(square / count - (total / count) ** 2, 0))
        for total, square, count in zip(sums, squares, counts, strict=True)
    ]


def _seen(node: Node) -> str:
    """The tensor whose deviation is asked for: what is normalized, or what a bias is in."""
    value = node.inputs[0] if node.op.name == "BatchNormalization" else node.output
    assert value is not None
    return value.name


def _bias(node: Node) -> np.ndarray | None:
    bias = _constant(node, 2)
    return None if bias is None else bias.reshape(-1)


def _constant(node: Node, position: int) -> np.ndarray | None:
    value = node.inputs[position] if position < len(node.inputs) else None
    return None if value is None or value.constant is None else value.constant.array


def _middle(values: np.ndarray) -> float:
    return float(np.median(values))


def _arrays(feeds: Sequence[Feed]) -> dict[str, np.ndarray]:
    return {name: np.stack([feed[name] for feed in feeds]) for name in (feeds[0] if feeds else ())}


def _warn(text: str) -> None:
    warnings.warn(MccWarning(text), stacklevel=2)
