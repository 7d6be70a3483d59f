"""BatchNormalization of networks that learn: with the statistics of the file, or with those of the batch.

Invariant: `<model>_run` always takes running averages; those of layers that learn from batches are kept, begin with the
file's, and move with every batch as PyTorch moves them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from ...base.dtypes import f32
from ...base.errors import Problem, WrongUse
from ...base.provenance import show
from ...graph.ir import Graph, Node, Value
from ...ops.normalization import BatchNormalization
from ...ops.rules.backward import Writer, static_shape
from .optimizers import add, mul, place

MEAN = 3  # the operand in front of the variance


class BatchNorm(StrEnum):
    """Which statistics BatchNormalization takes while it learns."""

    FROZEN = "frozen"  # those of the file
    TRAIN = "train"  # those of the batch, where its scale or bias learn


def freeze(graph: Graph) -> None:
    """All normalize with running averages, in whatever mode the file was exported."""
    for node in graph.nodes:
        op, rest = node.op, [value for value in node.outputs[1:] if value is not None]
        if isinstance(op, BatchNormalization) and op.training_mode:
            if any(value.uses or graph.is_output(value) for value in rest):
                where = f'node "{show(node.provenance)}"'
                fix = "export the network for inference"
                raise WrongUse(Problem("BatchNormalization gives its statistics away", where, "", fix))
            node.op, node.outputs = replace(op, training_mode=0), node.outputs[:1]


def of_batches(nodes: Iterable[Node], learned: Collection[Value]) -> list[Node]:
    """Layers whose scale or bias learn."""
    return [
        node
        for node in nodes
        if isinstance(node.op, BatchNormalization) and any(value in learned for value in node.inputs[1:MEAN])
    ]


def unlearned(nodes: Sequence[Node], learned: Collection[Value]) -> list[str]:
    """Where layers do not take the statistics of batches, which were asked for: why, and what to do, in words."""
    layers = [node for node in nodes if isinstance(node.op, BatchNormalization)]
    taking = len(of_batches(layers, learned))
    if taking:
        kept = (
            f"--batch-norm train: {len(layers) - taking} of {len(layers)} BatchNormalizations keep the averages of the "
            "file, as neither their scale nor their bias learns, where PyTorch's train() takes the statistics of the "
            "batch in all of them; --learn all does so, too"
        )
        return [kept] if taking < len(layers) else []
    if layers:
        return ["--batch-norm train changes nothing: no BatchNormalization is among what learns; --learn all"]
    return [
        "--batch-norm train changes nothing: the model has no BatchNormalization. An exporter may have folded it into "
        "the layer in front of it; torch.onnx.export(..., training=torch.onnx.TrainingMode.PRESERVE, "
        "do_constant_folding=False, dynamo=False) leaves it there"
    ]


def statistics(nodes: Iterable[Node], learned: Collection[Value]) -> list[Value]:
    """Constants that become running averages."""
    found = dict[Value, None]()
    for node in nodes:
        where = f'node "{show(node.provenance)}"'
        channels, count = _counted(node)
        if count < 2:
            why = f"of each of its {channels} channels a batch has {count} elements, and these do not vary"
            fix = "a larger batch with --dim batch=8, or --batch-norm frozen"
            raise WrongUse(Problem("BatchNormalization has no statistics of a batch", where, why, fix))
        if why := _cannot_be_kept(node, learned):
            raise WrongUse(Problem("running averages cannot be kept", where, why, "--batch-norm frozen"))
        found |= {value: None for value in _averages(node)}
    return list(found)


def _cannot_be_kept(node: Node, learned: Collection[Value]) -> str:
    for value in _averages(node):
        if value.constant is None or value.type.dtype is not f32:
            return f"{value.name} is {value.type}, not a constant of f32"
        if value in learned or value in node.inputs[1:MEAN]:
            return f"{value.name} is a weight as well, perhaps as the exporter merged equal initializers"
    return f"{_averages(node)[0].name} is mean and variance at once" if len(set(_averages(node))) < 2 else ""


def _averages(node: Node) -> list[Value]:
    return [value for value in node.inputs[MEAN : MEAN + 2] if value is not None]


def measure(graph: Graph, writer: Writer, nodes: Iterable[Node]) -> dict[Value, Value]:
    """Has layers take the statistics of the batch. Gives running averages before a batch with those after it."""
    after = dict[Value, Value]()
    for node in nodes:
        op, before = node.op, _averages(node)
        assert isinstance(op, BatchNormalization)
        now = [after.get(value, value) for value in before]  # a layer that is there twice moves them twice
        for position, value in enumerate(now, MEAN):
            graph.set_input(node, position, value)
        moved = [Value(writer.name(f"{value.name}_moved"), value.fact) for value in before]
        node.op, node.outputs = replace(op, training_mode=1), [node.output, *moved]
        for value in moved:
            value.producer = node
        count = _counted(node)[1]
        after |= {before[0]: moved[0], before[1]: _unbiased(writer, moved[1], now[1], op.momentum, count)}
    return after


def _unbiased(writer: Writer, moved: Value, before: Value, momentum: float, count: int) -> Value:
    """ONNX averages the variance of n elements, PyTorch that times n / (n - 1)."""
    more = count / (count - 1)
    return writer.pointwise(add(mul(more, place(0)), mul(momentum * (1 - more), place(1))), moved, before)


def _counted(node: Node) -> tuple[int, int]:
    """Channels, and elements of a batch of each."""
    x = node.inputs[0]
    assert x is not None
    shape = static_shape(x)
    channels = shape[1] if len(shape) > 1 else 1
    return channels, math.prod(shape) // max(1, channels)
