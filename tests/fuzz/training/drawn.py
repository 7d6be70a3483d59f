"""Random networks that learn: a graph of the fuzzer with an end that a loss fits, what learns, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mccompile.frontend.judged import judged
from mccompile.frontend.ordering import names_read
from mccompile.passes.learn.batch_norm import BatchNorm
from mccompile.passes.learn.integer_weights import LearnDtype
from mccompile.passes.learn.optimizers import Optimizer, optimizer
from mccompile.passes.learn.phase_graphs import Learning, Saved
from mccompile.passes.learn.weights import BATCH_NORM, LAYERS
from tests.fuzz import subject
from tests.fuzz.subject import Arrays

DRAWN = frozenset(LAYERS | BATCH_NORM) - {"RMSNormalization"}  # which opsets of these graphs do not have
ENDS = {"cross_entropy": ("", "Softmax", "LogSoftmax"), "nll": ("LogSoftmax",), "bce": ("Sigmoid",)}
OPTIMIZERS = (
    "sgd,lr=0.1",
    "sgd,lr=0.02,weight_decay=0.1",
    "momentum,lr=0.05",
    "momentum,lr=0.05,nesterov=1,weight_decay=0.01,momentum=0.5",
    "adam,lr=0.01,weight_decay=0.01",
    "adam,lr=0.01,beta1=0.5,beta2=0.9,eps=0.001",
    "adamw,lr=0.01,weight_decay=0.1",
    "adagrad,lr=0.05,weight_decay=0.01",
)
NARROW = {"float16", "bfloat16"}  # how far these may be off is not known
BATCHES = 3
QUANTIZED = 0.1  # of networks: in front of what learns, they stay in integers
SIZES = {"Range": 0, "Resize": 1, "Upsample": 1}  # operators, and from which operand on floats say sizes
CUT = 0.95  # of graphs, to what the loss depends on: the rest costs time, and learns nothing


@dataclass(frozen=True)
class Drawn:
    """What is learned from: a model, what it is asked to learn, and batches, which hold the target."""

    model: ModelProto
    asked: Learning
    batches: tuple[Arrays, ...]

    @property
    def kind(self) -> str:
        return self.asked.loss.partition(":")[0]

    @property
    def output(self) -> str:
        return self.asked.loss.partition(":")[2]

    @property
    def optimizer(self) -> Optimizer:
        return self.asked.optimizer


def draw(seed: int, number: int) -> Drawn:
    chance = np.random.default_rng([seed, number, 11])
    if np.random.default_rng([seed, number, 13]).random() < QUANTIZED:
        return _quantized(chance)
    while True:
        made = subject.draw(int(chance.integers(1 << 30)), number, DRAWN)
        texts = any(entry.dtype.kind in "OSU" for entry in made.inputs)
        if not (made.free or made.state or made.bounds or texts):
            found = next(_lessons(chance, made), None)
            if found is not None and not NARROW & set(judged(found.model).types.values()):
                return found


def _quantized(chance: np.random.Generator) -> Drawn:
    """What is made of integers learns as floats. Without normalizations: rows of equal numbers, which integers often
    are, have slopes that cancel, and what floats leave of them is not an error."""
    while True:
        made = subject.quantized_network(chance)
        operators = {node.op_type for node in made.model.graph.node}
        if operators & DRAWN and not any("Normalization" in name for name in operators):
            break
    output = made.model.graph.output[0]
    shape = tuple(dim.dim_value for dim in output.type.tensor_type.shape.dim)
    loss = f"{chance.choice(['mse', 'huber'])}:{output.name}"
    batches = []
    for _ in range(BATCHES):
        batch = {entry.name: entry.draw(chance, {}) for entry in made.inputs}
        batches.append({**batch, "target": chance.standard_normal(shape).astype(np.float32)})
    at_once = bool(chance.random() < 0.3)
    chosen = optimizer("sgd,lr=1" if at_once else str(chance.choice(OPTIMIZERS)))
    learn, save = str(chance.choice(["all", "last:1"])), Saved(chance.choice(list(Saved)))
    asked = Learning(loss, learn, chosen, at_once=at_once, save=save)
    if chance.random() < 0.5:  # integers do not show the gradients by which they moved at once
        every = int(chance.choice([1, 1, 2]))
        asked = replace(asked, at_once=False, accumulate=every, learn_dtype=LearnDtype.INT8)
    return Drawn(made.model, asked, tuple(batches))


def _lessons(chance: np.random.Generator, made: subject.Subject) -> Iterator[Drawn]:
    model = ModelProto()
    model.CopyFrom(made.model)
    runs = [{i.name: i.draw(chance, {}) for i in made.inputs} for _ in range(BATCHES)]
    sizes = {name for node in model.graph.node for name in node.input[SIZES.get(node.op_type, len(node.input)) :]}
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in sizes:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(_shaken(array, chance), tensor.name))
    for output in chance.permutation(np.array([o.name for o in model.graph.output], object)):
        info = next(o for o in model.graph.output if o.name == output)
        tensor = info.type.tensor_type
        shape = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)
        behind = _behind(model, str(output))
        layers = {name for node in behind if node.op_type in LAYERS for name in node.input}
        if tensor.elem_type == TensorProto.FLOAT and min(shape, default=1) > 0 and layers & _weights(model):
            if chance.random() < CUT:
                _cut(model, behind, str(output))
            kind = str(chance.choice(["cross_entropy", "nll", "mse", "huber", "bce"] if shape else ["mse", "huber"]))
            name, axis = _ended(chance, model, str(output), kind, shape)
            inputs = [value.name for value in model.graph.input]
            batches = [_batch(chance, {n: run[n] for n in inputs}, kind, shape, axis) for run in runs]
            if any(value.name == "target" for value in model.graph.input):
                return
            yield Drawn(model, _asked(chance, model, f"{kind}:{name}", behind), tuple(batches))


def _weights(model: ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT}


def _behind(model: ModelProto, output: str) -> list[NodeProto]:
    """The nodes that lead to it."""
    found, needed = list[NodeProto](), {output}
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            found.insert(0, node)
            needed.update(names_read(node))
    return found


def _cut(model: ModelProto, nodes: list[NodeProto], output: str) -> None:
    """Leaves the nodes, what these read and what comes out."""
    needed = {output, *(name for node in nodes for name in names_read(node))}
    graph = GraphProto(name=model.graph.name, node=nodes)
    for field in ("input", "output", "initializer"):
        of = getattr(model.graph, field)
        getattr(graph, field).extend(e for e in of if e.name == output or (field != "output" and e.name in needed))
    model.graph.CopyFrom(graph)


def _ended(
    chance: np.random.Generator, model: ModelProto, output: str, kind: str, shape: tuple[int, ...]
) -> tuple[str, int]:
    """The output that the loss is taken of, and its axis of classes."""
    axis = min(1, len(shape) - 1)
    end = str(chance.choice(ENDS.get(kind, ("",))))
    if not end:
        return output, axis
    attributes = {} if end == "Sigmoid" else {"axis": axis}
    model.graph.node.append(helper.make_node(end, [output], ["ended"], **attributes))
    model.graph.output.append(helper.make_tensor_value_info("ended", TensorProto.FLOAT, shape))
    return "ended", axis


def _batch(chance: np.random.Generator, run: Arrays, kind: str, shape: tuple[int, ...], axis: int) -> Arrays:
    batch = {name: _shaken(array, chance) for name, array in run.items()}
    if kind in ("cross_entropy", "nll"):
        batch["target"] = chance.integers(0, shape[axis], shape[:axis] + shape[axis + 1 :], np.int64)
    elif kind == "bce":
        batch["target"] = chance.random(shape).astype(np.float32)
    else:
        batch["target"] = chance.standard_normal(shape).astype(np.float32)
    return batch


def _asked(chance: np.random.Generator, model: ModelProto, loss: str, behind: Sequence[NodeProto]) -> Learning:
    several = sum(node.op_type in LAYERS and bool(_weights(model) & set(node.input)) for node in behind) > 1
    learn = str(chance.choice(["all", "all", "all", "last:1", "last:1", "last:1", "last:2" if several else "all"]))
    floats = sorted(_weights(model) & {name for node in behind for name in node.input})
    if floats and chance.random() < 0.2:  # any of them, as --learn auto chooses
        learn = ",".join(chance.choice(floats, int(chance.integers(1, min(4, len(floats)) + 1)), replace=False))
    batch_norm = BatchNorm(chance.choice(list(BatchNorm)))
    if chance.random() < 0.15:
        return Learning(loss, learn, optimizer("sgd,lr=1"), at_once=True, batch_norm=batch_norm)
    clip = float(chance.choice([0.01, 0.5])) if chance.random() < 0.3 else None
    chosen = optimizer(str(chance.choice(OPTIMIZERS)))
    save = Saved(chance.choice(list(Saved)))
    return Learning(loss, learn, chosen, False, clip, int(chance.choice([1, 1, 2])), batch_norm, save)


def _shaken(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Without ties, where functions bend."""
    return array + (1e-2 * chance.normal(size=array.shape)).astype(np.float32) if array.dtype == np.float32 else array
