"""Do samples make of a network what its training data made of it?

BatchNormalization keeps the mean and the variance of each channel, as training has left them: samples that are scaled
otherwise change the deviation, samples of which a part is held at one value, or that show something else, move the
mean. So does what standardizes an input inside of the network. Networks without either keep biases, which tell of the
scale alone. Where nothing tells that values which never move
did not move in training either, they are said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..base.errors import BadFile, Problem, warn
from ..base.records import dataclass
from ..check.oracle import Oracle
from ..graph.ir import Graph, Node
from .samples import Feed, Samples, arrays_of

_NEAR, _FAR = 4.0, 16.0  # between deviations of activations and those seen in training: 0.7 to 1.5 in trained networks
_RUN = 32  # samples
_AGREES, _MOVED = 0.05, 0.25  # deviations between means: what training data stays under, and what is said
_ERRORS = 4.0  # standard errors, below which means of few samples differ by chance
_STILL = 0.05  # the share of values that are the same in all samples
_PICTURE = 8  # positions at least along each of its two or more axes
_LOPSIDED = 1.5  # between the margins of two sides, where that is more than a position of each line
_ENOUGH = 8  # samples, below which means and values that do not move say little
_NO_BIAS, _ALL_BIAS = 0.01, 20.0  # biases per deviation of what they are added to: 0.02 to 2 in the first layers
_SHOWN = 4  # layers
_UNTRAINED = "; for a network that was not trained: --weights-only 8, which reads no samples"
_OF_STATISTIC = {"BatchNormalization": 4, "Conv": 2, "Gemm": 2}  # the operand that tells of training: variance or bias
_NONE = 99


@dataclass(frozen=True)
class _Channels:
    """What all samples make of each channel of a tensor, over all positions."""

    mean: np.ndarray
    deviation: np.ndarray
    error: np.ndarray  # standard error of the mean
    samples: int


def check_statistics(graph: Graph, file: Path, samples: Samples) -> None:
    """Compares activations with what training has left in the network; `file` is the graph. Raises BadFile."""
    known = [node for node in graph.nodes if _constant(node, _OF_STATISTIC.get(node.op.name, _NONE)) is not None]
    normalized = [node for node in known if node.op.name == "BatchNormalization"]
    layers = normalized or known
    watched = [_seen(node) for node in layers]
    if not samples.feeds:
        return
    _against_scalers(graph, samples)
    channels = _channels(file, watched, samples.feeds[:_RUN]) if watched else []
    moved = float("inf")  # where nothing tells
    if normalized:
        _against_deviations(normalized[0], channels[0], samples.path)
        moved = _against_means(normalized[0], channels[0])
    elif layers:
        _against_biases(layers, [found.deviation for found in channels])
    if moved > _AGREES:
        _still_values(samples)
    dead = {name: np.flatnonzero(found.deviation == 0) for name, found in zip(watched, channels, strict=True)}
    still = [f"{len(numbers)} channels of {name}" for name, numbers in dead.items() if len(numbers)]
    if still:
        _warn(f"{', '.join(still[:_SHOWN])} are the same in all samples")


def _against_deviations(node: Node, found: _Channels, path: Path) -> None:
    ratio = _middle(found.deviation) / max(_middle(_trained(node)), 1e-30)
    times = f"{ratio:.3g} times as large as" if ratio >= 1 else f"{1 / max(ratio, 1e-30):.3g} times smaller than"
    said = f"the activations at {_seen(node)} are {times} those that {node.provenance[0]} was trained on"
    if not 1 / _FAR <= ratio <= _FAR:
        fix = f"scale the samples as in training, such as pixels of 0 to 255 by 1/255{_UNTRAINED}"
        raise BadFile(Problem("the calibration data does not fit the model", str(path), said, fix))
    if not 1 / _NEAR <= ratio <= _NEAR:
        _warn(f"{said}: are the samples scaled as in training?")


def _against_scalers(graph: Graph, samples: Samples) -> None:
    """Where an input is standardized, by a mean and a deviation for each of its features."""
    arrays = arrays_of(samples.feeds)
    for value in graph.inputs:
        for node, _ in value.uses:
            mean = _constant(node, 1) if node.op.name == "Sub" else None
            after = None if mean is None else next(iter(node.output.uses), (None, 0))[0]
            scale = _constant(after, 1) if after is not None and after.op.name in ("Div", "Mul") else None
            if mean is None or scale is None or after is None or min(mean.size, scale.size) < 2:
                continue
            away = arrays[value.name].astype(np.float64) - mean
            away = away / scale if after.op.name == "Div" else away * scale
            features = np.broadcast_shapes(mean.shape, scale.shape, (1,) * away.ndim)
            others = tuple(axis for axis, size in enumerate(features) if size == 1)
            _warn_or_refuse(value.name, node, _middle(np.sqrt((away**2).mean(others))), samples.path)


def _warn_or_refuse(name: str, node: Node, deviations: float, path: Path) -> None:
    mean = f"the mean that {node.provenance[0]} subtracts"
    said = f"{name} is {deviations:.3g} deviations away from {mean}; 1 in training"
    if deviations > _FAR:
        fix = f"give samples as the network was trained on, in the same units and order{_UNTRAINED}"
        raise BadFile(Problem("the calibration data does not fit the model", str(path), said, fix))
    if deviations > _NEAR:
        _warn(f"{said}: are the samples in the units and the order of training?")


def _against_means(node: Node, found: _Channels) -> float:
    """How far the mean of a channel is from that of training, at most; 0 where chance may explain it."""
    mean = _constant(node, 3)
    assert mean is not None
    away = np.abs(found.mean - mean)
    is_more = away > _ERRORS * found.error if found.samples >= _ENOUGH else np.zeros(away.shape, bool)
    shifts = np.where(is_more, away / np.maximum(_trained(node), 1e-30), 0.0)
    largest = float(shifts.max(initial=0.0))
    if largest > _MOVED:
        _warn(
            f"the activations at {_seen(node)} are not those that {node.provenance[0]} was trained on: means of "
            f"{np.count_nonzero(shifts > _MOVED)} of {len(shifts)} channels are up to {largest:.2f} deviations away; "
            "is a part of the samples empty, or shifted?"
        )
    return largest


def _still_values(samples: Samples) -> None:
    """Warns of inputs of which a part is the same in all samples, but for a margin around what moves."""
    if len(samples.feeds) < _ENOUGH:
        return
    for name, array in arrays_of(samples.feeds).items():
        same = (array == array[0]).all(axis=0)
        still = same & ~_margin(array[0], same)
        if array.dtype.kind not in "fu" or still.mean() < _STILL:
            continue
        held = f", {np.count_nonzero(array[0][still] == 0)} of them 0"
        where = next(_whole_slices(still), "")
        _warn(
            f"{np.count_nonzero(still)} of {still.size} values of {name} are the same in all {len(array)} samples"
            f"{held}{where}: was it so in training?"
        )


def _margin(sample: np.ndarray, still: np.ndarray) -> np.ndarray:
    """Which still values lie around what moves: all of one value, and about as many on either side along each axis of
    a picture, as in scans whose subject is in the middle. Nowhere where they are not."""
    nowhere = np.zeros(still.shape, bool)
    axes = [axis for axis, size in enumerate(still.shape) if size >= _PICTURE]
    outside, moves = nowhere.copy(), ~still
    for axis in axes:
        others = tuple(other for other in range(still.ndim) if other != axis)
        lines = moves.any(axis=axis, keepdims=True)
        low, high = (side & lines for side in _sides(moves, axis))
        less, more = sorted((np.count_nonzero(low), np.count_nonzero(high)))
        if less == 0 or more > max(less * _LOPSIDED, less + np.count_nonzero(lines)):
            return nowhere
        outside |= low | high
        for side in _sides(np.asarray(moves.any(axis=others, keepdims=True)), axis):
            outside |= side
    is_one_value = len(axes) > 1 and len(np.unique(sample[outside])) == 1
    return outside & still if is_one_value else nowhere


def _sides(moves: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """What lies before the first that moves along an axis, and behind the last."""
    behind = np.flip(np.maximum.accumulate(np.flip(moves, axis), axis), axis)
    return ~np.maximum.accumulate(moves, axis), ~behind


def _whole_slices(still: np.ndarray) -> Iterator[str]:
    """Where all of an index along an axis is still, as text."""
    for axis in range(still.ndim):
        others = tuple(other for other in range(still.ndim) if other != axis)
        whole = np.flatnonzero(still.all(axis=others))
        if 0 < len(whole) < still.shape[axis]:
            run = whole[-1] - whole[0] + 1 == len(whole) > 1
            numbers = f"{whole[0]} to {whole[-1]}" if run else ", ".join(map(str, whole[:_SHOWN]))
            yield f", such as all of {numbers} along axis {axis}"


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


def _channels(file: Path, names: Sequence[str], feeds: Sequence[Feed]) -> list[_Channels]:
    outputs = Oracle(file).original.outputs
    oracle = Oracle(file, [name for name in dict.fromkeys(names) if name not in outputs])
    made = [oracle.run(feed) for feed in feeds]
    return [_channels_of([_rows(run[name]) for run in made]) for name in names]


def _channels_of(runs: Sequence[np.ndarray]) -> _Channels:
    means = np.stack([rows.mean(0) for rows in runs])
    squares = np.stack([(rows**2).mean(0) for rows in runs])
    mean = means.mean(0)
    deviation = np.sqrt(np.maximum(squares.mean(0) - mean**2, 0))
    return _Channels(mean, deviation, means.std(0) / len(runs) ** 0.5, len(runs))


def _rows(array: np.ndarray) -> np.ndarray:
    """A row of channels for each position."""
    exact = array.astype(np.float64)
    return np.moveaxis(exact, 1, -1).reshape(-1, array.shape[1]) if array.ndim > 1 else exact.reshape(-1, 1)


def _seen(node: Node) -> str:
    """The tensor whose statistics are asked for: what is normalized, or what a bias is in."""
    value = node.inputs[0] if node.op.name == "BatchNormalization" else node.output
    assert value is not None
    return value.name


def _trained(node: Node) -> np.ndarray:
    """Deviations that BatchNormalization saw in training."""
    variance = _constant(node, 4)
    assert variance is not None
    return np.asarray(np.sqrt(np.maximum(variance, 0)))


def _bias(node: Node) -> np.ndarray | None:
    bias = _constant(node, 2)
    return None if bias is None else bias.reshape(-1)


def _constant(node: Node, position: int) -> np.ndarray | None:
    value = node.inputs[position] if position < len(node.inputs) else None
    return None if value is None or value.constant is None else value.constant.array


def _middle(values: np.ndarray) -> float:
    return float(np.median(values))


def _warn(text: str) -> None:
    warn(text)
