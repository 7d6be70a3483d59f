"""What a network should learn, without anything that makes code: losses of what the judge computes in float64, central
differences of them, and optimizers as PyTorch documents them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..judge.rules import Graph, Node, NoWitness
from ..judge.run import Rounding, judge
from ..passes.learn.batch_norm import BatchNorm
from ..passes.learn.integer_weights import LearnDtype
from ..passes.learn.phase_graphs import Learning
from .unrounded import unrounded

Arrays = Mapping[str, np.ndarray]
_MOVES = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Cast")  # elements, and no more
_FLOATS = (1, 10, 11, 16)  # of TensorProto.DataType
_LARGEST = float(np.finfo(np.float32).max)
STEP = 1e-5
BEND = 1e-4  # of a slope: less than what is allowed for a gradient


class Reference:
    def __init__(self, graph: Graph, asked: Learning) -> None:
        self.graph, self.asked = graph, asked
        kind, colon, name = asked.loss.partition(":")
        self.kind, self.name = (kind, name) if colon else ("", kind)
        end = _maker(graph, self.name)
        self.of = self.name  # what the loss is taken of
        if end is not None and end.op == "QuantizeLinear":
            self.of = end.inputs[0]
            end = _maker(graph, self.of)
        self.moves: list[Node] = []  # of what a last operator made, first to last
        while end is not None and end.op in _MOVES and end.attributes.get("to", 1) in _FLOATS:
            self.moves.insert(0, end)
            end = _maker(graph, end.inputs[0])
        undone = end is not None and (self.kind, end.op) in (("cross_entropy", "Softmax"), ("bce", "Sigmoid"))
        self.logits = end.inputs[0] if end is not None and undone else ""  # whose logarithms are exact
        self.end = end
        self.schemes = self._schemes()
        self._rounding: Rounding | None = None  # which moves every result

    def rounding(self, chance: np.random.Generator | None) -> Self:
        """With chance, one whose results are all moved as rounding may move them, by the same at all weights, so that
        there are slopes: of large numbers that cancel, they have what rounding leaves."""
        if chance is None:
            return self
        found = copy.copy(self)
        found._rounding = Rounding(np.random.default_rng(int(chance.integers(1 << 30))))
        return found

    def output(self, weights: Arrays, batch: Arrays) -> np.ndarray:
        """Of inference; of integers the numbers that are rounded to them, unless what learns are integers itself."""
        rounds = self.asked.learn_dtype == LearnDtype.INT8
        return self._computed(replace(self.graph, outputs=(self.name,)), weights, batch, rounds)[self.name]

    def floats(self, weights: Arrays) -> Arrays:
        """What integers stand for that are kept of weights."""
        found = dict(weights)
        for name in weights.keys() & self.schemes.keys():
            if weights[name].dtype.kind in "iu":
                scale, zero = self.schemes[name]
                found[name] = scale * (weights[name].astype(np.float64) - zero)
        return found

    def bounds(self, name: str, before: np.ndarray, moved: np.ndarray, steps: int, off: np.ndarray) -> Any:
        """The least and the largest integers that may be kept of a weight which has moved so far, or `off` as far."""
        scale, zero = self.schemes[name]
        exact = before + (moved / scale + zero - before) + _chance(before.shape, steps)
        info = np.iinfo(before.dtype)
        return (np.clip(np.floor(exact + way * off / scale), info.min, info.max) for way in (-1, 1))

    def _schemes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Scales and zero points of integers that learn, by name, as they broadcast."""
        found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for node in self.graph.nodes if self.asked.learn_dtype == LearnDtype.INT8 else ():
            known = [self.graph.constants.get(name) for name in node.inputs]
            if node.op == "DequantizeLinear" and all(array is not None for array in known):
                integers, *spread = (np.asarray(each, np.float64) for each in known)
                rank, axis = integers.ndim, node.attributes.get("axis", 1)
                shape = [-1 if place == axis % max(1, rank) else 1 for place in range(rank)]
                spread = [each.reshape(shape) if each.size > 1 else each.reshape(()) for each in spread]
                found[node.inputs[0]] = spread[0], spread[1] if len(spread) > 1 else np.zeros(())
        return found

    def _computed(self, graph: Graph, weights: Arrays, batch: Arrays, rounds: bool = False) -> Arrays:
        if not rounds:  # weights are floats, of integers too
            made = {node.inputs[0]: node.outputs[0] for node in graph.nodes if node.op == "DequantizeLinear"}
            weights = {made[n] if n in self.schemes else n: array for n, array in self.floats(weights).items()}
        nodes = tuple(node for node in graph.nodes if node.outputs[0] not in weights)  # which made the first ones
        graph = replace(graph, constants={**graph.constants, **weights}, nodes=nodes)
        graph = graph if rounds else unrounded(graph, weights)
        given = {name: array for name, array in batch.items() if name != "target"}
        found = {name: np.asarray(array, np.float64) for name, array in judge(graph, given, self._rounding).items()}
        if not all((np.abs(array) <= _LARGEST).all() for array in found.values()):
            raise NoWitness("values are beyond the range of float32")
        return found

    def batch_norms(self, weights: Arrays) -> list[Node]:
        """Those that take the statistics of the batch, as their averages are kept."""
        if self.asked.batch_norm != BatchNorm.TRAIN:
            return []
        known = [node for node in self.graph.nodes if node.op == "BatchNormalization" and node.inputs[3] in weights]
        return [node for node in known if node.inputs[1] in weights or node.inputs[2] in weights]

    def learning(self, weights: Arrays) -> Graph:
        """The network as it learns, with what goes into these as outputs."""
        own = self.batch_norms(weights)
        changed = [
            replace(node, attributes={**node.attributes, "training_mode": 1}) if node in own else node
            for node in self.graph.nodes
        ]
        logits = [self.logits, *(node.outputs[0] for node in self.moves)] if self.logits else []
        outputs = dict.fromkeys([self.name, self.of, *logits, *(node.inputs[0] for node in own)])
        return replace(self.graph, nodes=tuple(changed), outputs=tuple(outputs))

    def averages(self, weights: Arrays, batch: Arrays) -> Arrays:
        """Running averages behind a batch."""
        own = self.batch_norms(weights)
        found, computed = dict(weights), self._computed(self.learning(weights), weights, batch) if own else {}
        for node in own:
            x, keep = computed[node.inputs[0]], node.attributes.get("momentum", 0.9)
            axes = tuple(axis for axis in range(x.ndim) if axis != 1)
            for name, now in zip(node.inputs[3:5], (x.mean(axes), x.var(axes, ddof=1)), strict=True):
                found[name] = keep * found[name] + (1 - keep) * now
        return {name: found[name] for node in own for name in node.inputs[3:5]}

    def loss(self, weights: Arrays, batch: Arrays) -> float:
        computed = self._computed(self.learning(weights), weights, batch)
        y, target = computed[self.of], batch.get("target")
        if target is None:
            return float(y.reshape(()))
        if self.kind in ("mse", "huber"):
            far = np.abs(y - target)
            each = far**2 if self.kind == "mse" else np.where(far < 1, far**2 / 2, far - 0.5)
            return float(each.mean())
        if self.kind == "bce":
            x = self._moved(computed[self.logits], computed) if self.logits else _logarithm(y) - _logarithm(1 - y)
            return float((np.maximum(x, 0) - x * target + np.log1p(np.exp(-np.abs(x)))).mean())
        axis = min(1, y.ndim - 1)
        if self.kind == "cross_entropy":
            y = _log_softmax(self._scores(computed, axis), axis)
        return float(-np.take_along_axis(y, np.expand_dims(target, axis), axis).mean())

    def _scores(self, computed: Arrays, axis: int) -> np.ndarray:
        """Of classes; where these are not what a Softmax goes along, its logarithms."""
        y = computed[self.of]
        if not self.logits or self.end is None:
            return y
        x, old = computed[self.logits], self.end.version < 13
        along = self.end.attributes.get("axis", 1 if old else -1) % x.ndim
        summed = range(along, x.ndim) if old else [along]  # up to opset 12 all axes from it on
        sums = np.arange(x.size).reshape(x.shape).min(tuple(summed), keepdims=True)
        sums = self._moved(np.broadcast_to(sums, x.shape), computed)
        is_along = y.shape[axis] == np.prod([x.shape[a] for a in summed]) and (np.ptp(sums, axis) == 0).all()
        return self._moved(x, computed) if is_along else y

    def _moved(self, array: np.ndarray, computed: Arrays) -> np.ndarray:
        """As what the last operator made is moved until it is what the loss is taken of."""
        for node in self.moves:
            turned = array.transpose(node.attributes.get("perm")) if node.op == "Transpose" else array
            array = turned.reshape(computed[node.outputs[0]].shape)
        return array

    def slope(self, weights: Arrays, batches: Sequence[Arrays], along: Arrays) -> float | None:
        """Of the sum of the losses along a direction in the space of weights; None where it bends."""
        total = 0.0
        for batch in batches:
            if self._rounding is not None:
                self._rounding.forgotten()
            middle = self.loss(weights, batch)
            ahead, behind, far = (self.loss(_moved(weights, along, step), batch) for step in (STEP, -STEP, 3 * STEP))
            first, second, third = (ahead - middle) / STEP, (middle - behind) / STEP, (far - ahead) / (2 * STEP)
            size = max(1e-2, abs(first), abs(second))
            curved = 1.5 * (first - second)  # by how much slopes of a curve without a bend differ farther away
            if not max(abs(first - second), abs(first - third)) < 1e-2 * size:
                return None
            if not abs(third - first - curved) < BEND * size:
                return None
            total += (ahead - behind) / (2 * STEP)
        return total


def _chance(shape: Sequence[int], steps: int) -> np.ndarray:
    """What is added to integers that have moved before they are cut off, from 0 to below 1."""
    mixed: Any = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint32) * np.uint32(0x9E3779B1)
    mixed += np.uint32(steps * 0x85EBCA77 & 0xFFFFFFFF)
    mixed = (mixed ^ mixed >> 15) * np.uint32(0x2C1B3C6D)
    return np.asarray((mixed >> 8) * 2.0**-24).reshape(shape)


def _maker(graph: Graph, name: str) -> Node | None:
    return next((node for node in graph.nodes if name in node.outputs), None)


def _logarithm(array: np.ndarray) -> np.ndarray:
    if not (array > 1e-9).all():
        raise NoWitness("a logarithm of nearly 0")
    return np.asarray(np.log(array))


def _log_softmax(y: np.ndarray, axis: int) -> np.ndarray:
    y = y - y.max(axis, keepdims=True)
    return np.asarray(y - np.log(np.exp(y).sum(axis, keepdims=True)))


def _moved(weights: Arrays, along: Arrays, step: float) -> Arrays:
    return {**weights, **{name: weights[name].astype(np.float64) + step * way for name, way in along.items()}}


def shaken(arrays: Arrays, chance: np.random.Generator | None) -> Arrays:
    """Floats, moved by a millionth, in their own type: what rounds does so in that."""
    if chance is None:
        return arrays
    moved = {name: 1 + 1e-6 * chance.normal(size=array.shape) for name, array in arrays.items()}
    return {
        name: np.asarray(array * moved[name], array.dtype) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }


class Optimizer:
    """One step after the other, in float64."""

    def __init__(self, asked: Learning) -> None:
        self.asked, self.chosen = asked, asked.optimizer
        self.steps = 0
        self.kept: dict[str, dict[str, Any]] = {}

    def step(self, weights: Arrays, sums: Arrays, count: int) -> Arrays:
        """The weights after a step with the sums of the gradients of so many batches."""
        self.steps += 1
        means = {name: array.astype(np.float64) / count for name, array in sums.items()}
        if self.asked.clip is not None:
            norm = np.sqrt(sum((mean**2).sum() for mean in means.values()))
            means = {name: mean * min(1.0, self.asked.clip / (norm + 1e-6)) for name, mean in means.items()}
        return {name: self._moved(name, weights[name].astype(np.float64), means[name]) for name in means}

    def _moved(self, name: str, w: Any, g: Any) -> Any:
        o: Any = self.chosen
        kept = self.kept.setdefault(name, {"v": 0.0, "m": 0.0})
        if o.name == "adamw":
            w = w * (1 - o.lr * o.weight_decay)
        else:
            g = g + o.weight_decay * w
        if o.name == "sgd":
            return w - o.lr * g
        if o.name == "momentum":
            kept["v"] = o.momentum * kept["v"] + g
            return w - o.lr * (g + o.momentum * kept["v"] if o.nesterov else kept["v"])
        if o.name == "adagrad":
            kept["v"] = kept["v"] + g * g
            return w - o.lr * g / (np.sqrt(kept["v"]) + o.eps)
        kept["m"] = o.beta1 * kept["m"] + (1 - o.beta1) * g
        kept["v"] = o.beta2 * kept["v"] + (1 - o.beta2) * g * g
        mean, variance = kept["m"] / (1 - o.beta1**self.steps), kept["v"] / (1 - o.beta2**self.steps)
        return w - o.lr * mean / (np.sqrt(variance) + o.eps)
