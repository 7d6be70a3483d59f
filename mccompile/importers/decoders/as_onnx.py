"""A decoder as ONNX: for some new tokens and a cache of keys and values that grows, the logits behind the last token.

Invariant: the cache is declared as states, and its sizes have ranges, so nothing has to be said to compile the model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from .. import ranges, states
from .description import Decoder, Experts, Layer, Rotary
from .mixtures import mixture
from .nodes import Nodes
from .weights import Weight

PAST, TOKENS = "past", "tokens"  # names of the free sizes
MOST_TOKENS = 16  # of a run, where nobody says more
MOST_CONTEXT = 1024  # of the cache, where nobody says more
Place = int | tuple[int, ...] | None  # a layer, or an expert of one
Find = Callable[..., Weight | None]  # (role, shape, layer): None where there is none


def most_sizes(context: int) -> dict[str, tuple[int, int]]:
    """Ranges of the free sizes, where nobody says more."""
    tokens = max(1, min(MOST_TOKENS, context // 2))
    return {PAST: (0, max(0, min(MOST_CONTEXT, context) - tokens)), TOKENS: (1, tokens)}


def decoder_model(decoder: Decoder, find: Find, name: str) -> ModelProto:
    return _Writer(decoder, find).model(name)


class _Writer:
    def __init__(self, decoder: Decoder, find: Find) -> None:
        self.decoder, self.find, self.nodes = decoder, find, Nodes()
        self.turns: dict[int, tuple[str, str]] = {}  # cosines and sines by rotary
        self.masks: dict[int, str] = {}  # what is seen, by window
        self.cut_heads = self.nodes.ints(0, 0, -1, decoder.head)
        self.joined = self.nodes.ints(0, 0, decoder.heads * decoder.head)

    def model(self, name: str) -> ModelProto:
        d, nodes = self.decoder, self.nodes
        table = self.need("embed", (d.vocabulary, d.width))
        self.positions()
        x = nodes.rows(table, "input_ids", d.width)
        if d.embedding_factor != 1:
            x = nodes.op("Mul", x, nodes.number(d.embedding_factor))
        if d.learned:
            places = nodes.floats(self.need("positions", (d.context, d.width)))
            x = nodes.op("Add", x, nodes.op("Gather", places, self.own))
        x = self.norm(x, "embed_norm")
        for number, layer in enumerate(d.layers):
            x = self.layer(x, number, layer)
        x = nodes.op("Gather", x, nodes.ints(-1), axis=1)  # only behind the last token
        x = self.norm(x, "final_norm")
        head = table if d.tied else self.need("head", (d.vocabulary, d.width))
        self.logits(nodes.product(x, head, self.find("head.bias", (d.vocabulary,), None)))
        return self.whole(name)

    def logits(self, x: str) -> None:
        d, nodes = self.decoder, self.nodes
        if d.logit_factor != 1:
            x = nodes.op("Mul", x, nodes.number(d.logit_factor))
        if d.logit_cap:
            x = self.capped(x, d.logit_cap)
        nodes.op("Identity", x, made="logits")

    def positions(self) -> None:
        """Of the new tokens, and of all."""
        nodes = self.nodes
        length = nodes.op("Shape", "input_ids", start=1, end=2)
        past = nodes.op("Shape", "past_key_values.0.key", start=2, end=3)
        self.length = nodes.op("Squeeze", length)
        start = nodes.op("Squeeze", past)
        self.total = nodes.op("Add", start, self.length)
        self.own = nodes.op("Range", start, self.total, nodes.index(1))
        self.all = nodes.op("Range", nodes.index(0), self.total, nodes.index(1))

    def layer(self, x: str, number: int, layer: Layer) -> str:
        d, nodes = self.decoder, self.nodes
        mixed = self.attention(self.norm(x, "attn_norm", number), number, layer)
        mixed = self.norm(mixed, "attn_post_norm", number)
        if d.parallel:
            other = self.norm(x, "mlp_norm" if self.has("mlp_norm", number) else "attn_norm", number)
            return nodes.op("Add", nodes.op("Add", mixed, self.mlp(other, number)), x)
        x = self.added(x, mixed)
        inner = self.norm(x, "mlp_norm", number)
        made = self.mixture(inner, number, layer.experts) if layer.experts else self.mlp(inner, number)
        return self.added(x, self.norm(made, "mlp_post_norm", number))

    def added(self, x: str, more: str) -> str:
        factor = self.decoder.residual_factor
        return self.nodes.op("Add", x, more if factor == 1 else self.nodes.op("Mul", more, self.nodes.number(factor)))

    def norm(self, x: str, role: str, number: int | None = None, width: int = 0) -> str:
        """As it is where the file has no such norm."""
        d, nodes = self.decoder, self.nodes
        shape = (width or d.width,)
        weight = self.find(role, shape, number)
        if weight is None and not (d.plain_norms and role in ("attn_norm", "mlp_norm", "final_norm")):
            return x
        ones = nodes.once(("ones", shape), lambda: nodes.constant(np.ones(shape, np.float32)))
        scale = ones if weight is None else nodes.floats(weight)
        if d.rms:
            return nodes.op("RMSNormalization", x, scale, axis=-1, epsilon=d.epsilon)
        bias = self.find(f"{role}.bias", shape, number)
        more = [nodes.floats(bias)] if bias else []
        return nodes.op("LayerNormalization", x, scale, *more, axis=-1, epsilon=d.epsilon)

    def attention(self, x: str, number: int, layer: Layer) -> str:
        d, nodes = self.decoder, self.nodes
        query = self.side(x, "q", number, d.heads, layer.rotary)
        key = self.side(x, "k", number, d.groups, layer.rotary)
        value = self.heads(self.linear(x, "v", number, d.groups * d.head, d.width))
        key = nodes.op("Concat", f"past_key_values.{number}.key", key, made=f"present.{number}.key", axis=2)
        value = nodes.op("Concat", f"past_key_values.{number}.value", value, made=f"present.{number}.value", axis=2)
        if d.groups != d.heads:  # heads of a group share keys and values, which are not repeated
            query = nodes.op("Reshape", query, nodes.ints(1, d.groups, d.heads // d.groups, -1, d.head))
            key, value = (nodes.op("Unsqueeze", each, nodes.ints(2)) for each in (key, value))
        turned = [0, 1, 3, 2] if d.groups == d.heads else [0, 1, 2, 4, 3]
        scores = nodes.op("MatMul", query, nodes.op("Transpose", key, perm=turned))
        scores = nodes.op("Mul", scores, nodes.number((d.score_factor or d.head**-0.5) * layer.score_factor))
        if d.slopes is not None:
            scores = nodes.op("Add", scores, self.distances(d.slopes))
        if d.score_cap:
            scores = self.capped(scores, d.score_cap)
        scores = nodes.op("Where", self.seen(layer.window), scores, nodes.number(-np.inf))
        mixed = nodes.op("MatMul", nodes.op("Softmax", scores, axis=-1), value)
        if d.groups != d.heads:
            mixed = nodes.op("Reshape", mixed, nodes.ints(1, d.heads, -1, d.head))
        mixed = nodes.op("Reshape", nodes.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.joined)
        return self.linear(mixed, "o", number, d.width, d.heads * d.head)

    def side(self, x: str, role: str, number: int, heads: int, rotary: Rotary | None) -> str:
        """Queries or keys, by heads."""
        d = self.decoder
        made = self.linear(x, role, number, heads * d.head, d.width)
        if d.wide_norms:
            made = self.norm(made, f"{role}_norm", number, heads * d.head)
        made = self.heads(made)
        if not (d.wide_norms or d.late_norms):
            made = self.head_norm(made, role, number, heads)
        made = made if rotary is None else self.rotated(made, rotary)
        return self.norm(made, f"{role}_norm", number, d.head) if d.late_norms else made

    def head_norm(self, x: str, role: str, number: int, heads: int) -> str:
        d, nodes = self.decoder, self.nodes
        if not d.norms_by_head:
            return self.norm(x, f"{role}_norm", number, d.head)
        weight = self.find(f"{role}_norm", (heads * d.head,), number)
        if weight is None:
            return x
        ones = nodes.once(("ones", d.head), lambda: nodes.constant(np.ones(d.head, np.float32)))
        made = nodes.op("LayerNormalization", x, ones, axis=-1, epsilon=d.epsilon)
        return nodes.op("Mul", made, nodes.op("Reshape", nodes.floats(weight), nodes.ints(heads, 1, d.head)))

    def heads(self, x: str) -> str:
        return self.nodes.op("Transpose", self.nodes.op("Reshape", x, self.cut_heads), perm=[0, 2, 1, 3])

    def rotated(self, x: str, rotary: Rotary) -> str:
        nodes, half = self.nodes, len(rotary.frequencies)
        cosines, sines = self.turned(rotary)
        sizes = [half, half] + ([self.decoder.head - 2 * half] if 2 * half < self.decoder.head else [])
        parts = nodes.op("Split", x, nodes.ints(*sizes), outputs=len(sizes), axis=3)
        first, second, rest = parts, f"{parts}_1", [f"{parts}_2"] if len(sizes) > 2 else []
        one = nodes.op("Sub", nodes.op("Mul", first, cosines), nodes.op("Mul", second, sines))
        other = nodes.op("Add", nodes.op("Mul", second, cosines), nodes.op("Mul", first, sines))
        return nodes.op("Concat", one, other, *rest, axis=3)

    def turned(self, rotary: Rotary) -> tuple[str, str]:
        """Cosines and sines of the new tokens."""
        nodes = self.nodes
        if id(rotary) not in self.turns:
            places = nodes.op("Unsqueeze", nodes.op("Cast", self.own, to=TensorProto.FLOAT), nodes.ints(1))
            angles = nodes.op("Mul", places, nodes.constant(np.asarray(rotary.frequencies, np.float32)))
            made = [nodes.op(name, angles) for name in ("Cos", "Sin")]
            if rotary.factor != 1:
                made = [nodes.op("Mul", each, nodes.number(rotary.factor)) for each in made]
            self.turns[id(rotary)] = made[0], made[1]
        return self.turns[id(rotary)]

    def distances(self, slopes: np.ndarray) -> str:
        """What is added to the scores of all tokens, by head: [..., 1, all]."""
        d, nodes = self.decoder, self.nodes
        shape = (d.heads, 1, 1) if d.groups == d.heads else (d.groups, d.heads // d.groups, 1, 1)

        def make() -> str:
            places = nodes.op("Cast", self.all, to=TensorProto.FLOAT)
            return nodes.op("Mul", nodes.constant(np.asarray(slopes, np.float32).reshape(shape)), places)

        return nodes.once("distances", make)

    def seen(self, window: int) -> str:
        """Which tokens each new one looks at: [new, all]."""
        nodes = self.nodes
        if window not in self.masks:
            own = nodes.op("Unsqueeze", self.own, nodes.ints(1))
            seen = nodes.op("LessOrEqual", self.all, own)
            if window:
                begin = nodes.op("Sub", own, nodes.index(window))
                seen = nodes.op("And", seen, nodes.op("Greater", self.all, begin))
            self.masks[window] = seen
        return self.masks[window]

    def mlp(self, x: str, number: int) -> str:
        d, nodes = self.decoder, self.nodes
        made = self.linear(x, "gate" if d.gated else "up", number, d.hidden, d.width)
        made = nodes.activated(made, d.activation)
        if d.gated:
            made = nodes.op("Mul", made, self.linear(x, "up", number, d.hidden, d.width))
        return self.linear(made, "down", number, d.width, d.hidden)

    def mixture(self, x: str, number: int, experts: Experts) -> str:
        def linear(nodes: Nodes, x: str, role: str, place: tuple[int, ...], rows: int, columns: int) -> str:
            return nodes.product(x, self.need(role, (rows, columns), place), None)

        return mixture(self.nodes, x, number, experts, self.decoder.width, self.decoder.activation, linear)

    def capped(self, x: str, cap: float) -> str:
        nodes = self.nodes
        return nodes.op("Mul", nodes.op("Tanh", nodes.op("Div", x, nodes.number(cap))), nodes.number(cap))

    def linear(self, x: str, role: str, number: int, rows: int, columns: int) -> str:
        weight = self.need(role, (rows, columns), number)
        return self.nodes.product(x, weight, self.find(f"{role}.bias", (rows,), number))

    def need(self, role: str, shape: tuple[int, ...], number: Place = None) -> Weight:
        found = self.find(role, shape, number, True)
        assert found is not None
        return found

    def has(self, role: str, number: int) -> bool:
        return self.find(role, (self.decoder.width,), number) is not None

    def whole(self, name: str) -> ModelProto:
        d = self.decoder
        names = [f"{number}.{side}" for number in range(len(d.layers)) for side in ("key", "value")]

        def cache(prefix: str, length: str) -> list[ValueInfoProto]:
            shape: list[int | str | None] = [1, d.groups, length, d.head]
            return [helper.make_tensor_value_info(f"{prefix}.{n}", TensorProto.FLOAT, shape) for n in names]

        tokens = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, TOKENS])
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, d.vocabulary])
        inputs, outputs = [tokens, *cache("past_key_values", PAST)], [logits, *cache("present", f"{PAST} + {TOKENS}")]
        graph = helper.make_graph(self.nodes.made, name, inputs, outputs, self.nodes.constants)
        model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        states.declare(model, {f"present.{n}": f"past_key_values.{n}" for n in names})
        ranges.declare(model, most_sizes(d.context))
        return model
