"""A program that learns, batch after batch, and what it tells after every call: on this machine or emulated.

Invariant: both ways make the same calls in the same order, as board/learn_model.c has them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import prod

import numpy as np

from ..base.records import dataclass
from .elements import from_bytes, to_bytes
from .emulate import Emulated
from .model_report import Report
from .run import POISON, Model

Arrays = Mapping[str, np.ndarray]
GRADIENT = ".gradient"  # behind the name of a weight: the state that holds its gradient
_FLOAT = struct.Struct("<f")


@dataclass
class TrainingRecord:
    """Weights, and with them running averages, are those in front of the first batch, behind each, and after all was
    forgotten; of gradients the sums since the last step."""

    weights: list[Arrays] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    sums: list[Arrays] = field(default_factory=list)
    outputs: list[Arrays] = field(default_factory=list)


def learned(model: Model | Emulated, batches: Sequence[Arrays], rate: float, every: int) -> TrainingRecord:
    """Learns from batches; weights move after `every` of them."""
    if isinstance(model, Emulated):
        return _read(model.answered(_written(model.report, batches, rate, every)), model.report, len(batches))
    found, report = TrainingRecord(), model.report
    model.reset(POISON)
    found.weights.append(_weights(report, model.save_state()))
    for number, batch in enumerate(batches, 1):
        found.losses.append(model.learn(batch, rate))
        found.sums.append(_sums(report, model.save_state()))
        if number % every == 0:
            model.step(rate)
        found.weights.append(_weights(report, model.save_state()))
        found.outputs.append(model.run(batch))
    model.reset(POISON)
    found.weights.append(_weights(report, model.save_state()))
    return found


def slopes(model: Model, batches: Iterable[Arrays]) -> Iterator[Arrays]:
    """The gradients of each batch by the weights as they are in the file: plain SGD with a rate of 0 moves none."""
    model.reset(POISON)
    for batch in batches:
        model.learn(batch, 0.0)
        yield _sums(model.report, model.save_state())
        model.step(0.0)


def _written(report: Report, batches: Sequence[Arrays], rate: float, every: int) -> bytes:
    parts = [struct.pack("<2I", len(batches), every), _FLOAT.pack(rate)]
    for batch in batches:
        parts += [to_bytes(batch[tensor.name], tensor.dtype) for tensor in report.inputs]
        of_run = [tensor for tensor in report.inputs if tensor.name in report.phases[0].inputs]
        parts += [to_bytes(batch[tensor.name], tensor.dtype) for tensor in of_run]
    return b"".join(parts)


def _read(written: bytes, report: Report, count: int) -> TrainingRecord:
    found, at = TrainingRecord(), 0

    def taken(count: int) -> bytes:
        nonlocal at
        at += count
        return written[at - count : at]

    found.weights.append(_weights(report, taken(report.state_bytes)))
    for _ in range(count):
        found.losses.append(float(_FLOAT.unpack(taken(_FLOAT.size))[0]))
        found.sums.append(_sums(report, taken(report.state_bytes)))
        found.weights.append(_weights(report, taken(report.state_bytes)))
        outputs = {}
        for tensor in report.outputs:
            shape = tensor.static_shape
            outputs[tensor.name] = from_bytes(taken(tensor.dtype.nbytes(prod(shape))), tensor.dtype, shape)
        found.outputs.append(outputs)
    found.weights.append(_weights(report, taken(report.state_bytes)))
    return found


def _weights(report: Report, state: bytes) -> dict[str, np.ndarray]:
    return _of(report, state, lambda name: name in report.initial)


def _sums(report: Report, state: bytes) -> dict[str, np.ndarray]:
    names = {f"{name}{GRADIENT}" for name in report.initial}
    return {name.removesuffix(GRADIENT): array for name, array in _of(report, state, names.__contains__).items()}


def _of(report: Report, state: bytes, wanted: Callable[[str], bool]) -> dict[str, np.ndarray]:
    found, at = {}, 0
    for tensor in report.states:
        if wanted(tensor.name):
            content = state[at : at + tensor.dtype.nbytes(prod(tensor.static_shape))]
            found[tensor.name] = from_bytes(content, tensor.dtype, tensor.static_shape)
        at += tensor.nbytes
    return found
