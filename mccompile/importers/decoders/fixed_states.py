"""Decoders whose states have a fixed size as ONNX: for some new tokens, the logits behind the last one.

Invariant: the states are declared, and zeros begin a text, so nothing has to be said to compile the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from ...base.records import dataclass
from .. import ranges, states
from .as_onnx import MOST_TOKENS, TOKENS
from .config import damaged
from .nodes import Nodes
from .weights import Weight

Step = Callable[[Nodes, Sequence[str], Sequence[str]], tuple[Sequence[str], str]]
_MOST_LAYERS = 4096


@dataclass(frozen=True)
class Recurrent:
    vocabulary: int
    width: int  # of what goes from layer to layer
    layers: int
    states: Mapping[str, tuple[int, ...]]  # of a layer, by name
    layer: Callable[[Writer, str, int], str]  # (writer, what comes in, its number): what goes out
    epsilon: float = 1e-5
    last_epsilon: float = 0.0  # of the norm in front of the head, where it has one of its own
    rms: bool = True  # RMSNorm, else LayerNorm
    tied: bool = False  # the head is the table of the embedding


def recurrent_model(made: Recurrent, weights: RecurrentWeights, name: str) -> ModelProto:
    if made.layers > _MOST_LAYERS:
        raise damaged(f"num_hidden_layers is {made.layers}")
    return Writer(made, weights).model(name)


class RecurrentWeights:
    """Weights of a file by role. names: of whole tensors; {} is the layer."""

    def __init__(self, names: Mapping[str, str], tensors: Mapping[str, Weight]) -> None:
        self.names, self.tensors, self.used = names, tensors, set[str]()

    def find(self, role: str, shape: tuple[int, ...], number: int | None = None) -> Weight | None:
        weight = self.tensors.get(self.named(role, number))
        if weight is None:
            return None
        self.used.add(weight.name)
        if weight.shape != shape and _cut(weight.shape) == _cut(shape):  # axes of one element are left out or not
            weight = weight.shaped(shape)
        if weight.shape != shape:
            raise damaged(f"{weight.name} is {list(weight.shape)}, not {list(shape)}")
        return weight

    def named(self, role: str, number: int | None) -> str:
        return self.names.get(role, "").format(*(() if number is None else (number,)))

    def left(self) -> list[str]:
        return sorted(name for name in self.tensors if name not in self.used)


def _cut(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


class Writer:
    def __init__(self, made: Recurrent, weights: RecurrentWeights) -> None:
        self.made, self.weights, self.nodes = made, weights, Nodes()

    def model(self, name: str) -> ModelProto:
        made, nodes = self.made, self.nodes
        table = self.need("embed", (made.vocabulary, made.width))
        x = nodes.rows(table, "input_ids", made.width)
        if self.weights.find("embed_norm", (made.width,)):
            x = self.norm(x, "embed_norm")
        for number in range(made.layers):
            x = made.layer(self, x, number)
        x = self.norm(nodes.op("Gather", x, nodes.ints(-1), axis=1), "final_norm")  # only behind the last token
        copy = self.weights.find("head", (made.vocabulary, made.width))  # of the embedding, where they are tied
        head = table if made.tied or copy is None else copy
        if copy is None and not made.tied:
            self.need("head", (made.vocabulary, made.width))
        nodes.op("Identity", nodes.product(x, head, None), made="logits")
        return self.whole(name)

    def need(self, role: str, shape: tuple[int, ...], number: int | None = None) -> Weight:
        found = self.weights.find(role, shape, number)
        if found is None:
            raise damaged(f"there is no tensor {self.weights.named(role, number) or role}")
        return found

    def array(self, role: str, shape: tuple[int, ...], number: int) -> np.ndarray:
        """Of numbers that are not multiplied as a matrix."""
        return self.need(role, shape, number).floats

    def norm(self, x: str, role: str, number: int | None = None) -> str:
        made, nodes = self.made, self.nodes
        epsilon = (made.last_epsilon if role == "final_norm" else 0) or made.epsilon
        scale = nodes.floats(self.need(role, (made.width,), number))
        if made.rms:
            return nodes.op("RMSNormalization", x, scale, axis=-1, epsilon=epsilon)
        bias = nodes.floats(self.need(f"{role}.bias", (made.width,), number))
        return nodes.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def linear(self, x: str, role: str, number: int, rows: int, columns: int) -> str:
        weight = self.need(role, (rows, columns), number)
        return self.nodes.product(x, weight, self.weights.find(f"{role}.bias", (rows,), number))

    def behind(self, x: str, state: str, number: int) -> str:
        """[1, tokens, channels] behind what the state keeps of the tokens before; it keeps the last ones anew."""
        rows = self.made.states[state][1]
        whole = self.nodes.op("Concat", f"state.{number}.{state}", x, axis=1)
        ends = self.nodes.ints(-rows), self.nodes.ints(np.iinfo(np.int64).max), self.nodes.ints(1)
        self.nodes.op("Slice", whole, *ends, made=f"next.{number}.{state}")
        return whole

    def convolved(self, x: str, state: str, number: int, role: str) -> str:
        """Each channel with those of the tokens before, and SiLU."""
        nodes, (_, rows, channels) = self.nodes, self.made.states[state]
        kernel = nodes.floats(self.need(role, (channels, 1, rows + 1), number))
        bias = self.weights.find(f"{role}.bias", (channels,), number)
        turned = nodes.op("Transpose", self.behind(x, state, number), perm=[0, 2, 1])
        made = nodes.op("Conv", turned, kernel, *([nodes.floats(bias)] if bias else []), group=channels)
        return nodes.activated(nodes.op("Transpose", made, perm=[0, 2, 1]), "silu")

    def scanned(
        self, number: int, roles: Sequence[str], given: Mapping[str, tuple[int, ...]], out: tuple[int, ...], step: Step
    ) -> str:
        """Token by token: `step` makes states and a result of the states and what a token gives. given: shapes of what
        a token has, by tensors of [1, tokens, ...]."""
        body = Nodes(f"layer_{number}_")
        body.constants = self.nodes.constants
        olds, slices = ([f"{body.prefix}{kind}_{at}" for at in range(count)] for kind, count in _kinds(roles, given))
        news, result = step(body, olds, slices)
        shapes = [self.made.states[role] for role in roles]
        graph = helper.make_graph(
            body.made,
            f"layer_{number}",
            [*map(_floats, olds, shapes), *map(_floats, slices, given.values())],
            [*map(_floats, news, shapes), _floats(result, out)],
        )
        inputs = [*(f"state.{number}.{role}" for role in roles), *given]
        outputs = [*(f"next.{number}.{role}" for role in roles), f"scanned_{number}"]
        axes = {"scan_input_axes": [1] * len(given), "scan_output_axes": [1]}
        node = helper.make_node("Scan", inputs, outputs, f"scan_{number}", body=graph, num_scan_inputs=len(given))
        node.attribute.extend(helper.make_attribute(key, value) for key, value in axes.items())
        self.nodes.made.append(node)
        return outputs[-1]

    def whole(self, name: str) -> ModelProto:
        made = self.made
        kept = {f"{number}.{role}": shape for number in range(made.layers) for role, shape in made.states.items()}
        tokens = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, TOKENS])
        inputs = [tokens, *(_floats(f"state.{role}", shape) for role, shape in kept.items())]
        outputs = [_floats("logits", (1, 1, made.vocabulary))]
        outputs += [_floats(f"next.{role}", shape) for role, shape in kept.items()]
        graph = helper.make_graph(self.nodes.made, name, inputs, outputs, self.nodes.constants)
        model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        states.declare(model, {f"next.{role}": f"state.{role}" for role in kept})
        ranges.declare(model, {TOKENS: (1, MOST_TOKENS)})
        return model


def _kinds(roles: Sequence[str], given: Mapping[str, tuple[int, ...]]) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("state", len(roles)), ("token", len(given))


def _floats(name: str, shape: tuple[int, ...]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
