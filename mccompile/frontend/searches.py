"""GreedySearch of onnxruntime, which runs a decoder for every token: written out as a run over the tokens that are
given and a Loop over those that follow.

The decoder is a graph: tokens, positions, mask and the keys and values of each layer go in, scores and longer keys and
values come out. In the Loop they grow, which growing_loops.py writes as buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from ..graph.ir import Invalid, Unsupported, Value
from . import search_steps
from .composed_body import CONTRIB
from .functions import attributes_of
from .graphs import GraphReader
from .growing_loops import OWN, Along, written_out
from .scope import Found, Missing, Scope
from .tensors import attribute_value

NAMES = frozenset({(CONTRIB, "GreedySearch")})
_KNOWN = {"decoder", "init_decoder", "eos_token_id", "pad_token_id", "model_type", "no_repeat_ngram_size", "vocab_size"}
_FIX = "fix it with --dim or --shape"
_LAYER = 3  # number of the decoder's first operand that is the past of a layer, and of its first result behind scores


def read(reader: GraphReader, node: NodeProto, scope: Scope) -> Sequence[Found]:
    """The result of a search."""
    operands = [scope.find(name) for name in node.input]
    if any(value in (Missing.BROKEN, None) for value in operands):
        return [Missing.BROKEN] * len(node.output)
    reader.functions.update(search_steps.functions())
    return _Search(reader, node, scope, [value if isinstance(value, Value) else None for value in operands]).run()


class _Search:
    """Names of its own values are two words, of which the first is `search`, `first`, `now` or `next`."""

    def __init__(self, reader: GraphReader, node: NodeProto, scope: Scope, operands: Sequence[Value | None]) -> None:
        self.reader, self.scope, self.origin = reader, scope, scope.origin(node)
        attributes = attributes_of(node, scope.attributes)
        graphs = {a.name: a.g for a in attributes if a.HasField("g")}
        numbers = {a.name: attribute_value(a, None) for a in attributes if a.name not in graphs}
        if more := sorted({*graphs, *numbers} - _KNOWN):
            raise Unsupported(f"attribute {more[0]} of {node.op_type} is not known")
        if "decoder" not in graphs:
            raise Invalid("it has no decoder")
        self.decoder, self.begins = graphs["decoder"], graphs.get("init_decoder", graphs["decoder"])
        self.layers = [entry.name for entry in self.decoder.input[_LAYER:]]
        self.end, self.pad = (int(numbers.get(f"{name}_token_id", -1)) for name in ("eos", "pad"))
        self.window = int(numbers.get("no_repeat_ngram_size", 0))
        names = ("ids", "most", "least", "penalty", "kept", "kept at first", "given")
        self.operands = {f"search {name}": value for name, value in zip(names, operands, strict=False) if value}
        self.mask = "given" if "search given" in self.operands else "mask"
        self._check(int(numbers.get("model_type", 0)), int(numbers.get("vocab_size", -1)))
        self.given, self.most = self._lengths()

    def _check(self, kind: int, vocabulary: int) -> None:
        if kind != 0:
            raise Unsupported("its model has an encoder", "export encoder and decoder as models of their own")
        for graph in (self.decoder, self.begins):
            if len(graph.input) != _LAYER + len(self.layers) or len(graph.output) != 1 + len(self.layers):
                raise Unsupported(
                    f"its decoder has {len(graph.input)} inputs and {len(graph.output)} outputs",
                    "tokens, positions, mask and the past of each layer go in, scores and present come out",
                )
        made = self.decoder.output[0].type.tensor_type.shape.dim
        if vocabulary > 0 and made and made[-1].dim_value not in (0, vocabulary):
            why = f"its decoder gives scores of {made[-1].dim_value} tokens, vocab_size is {vocabulary}"
            raise Unsupported(why, "let both be the same")

    def _lengths(self) -> tuple[int, int]:
        """How many tokens are given, and how many there are in the end."""
        ids, most = (self.operands.get(f"search {name}") for name in ("ids", "most"))
        if ids is None or most is None or ids.type.rank != 2:
            raise Invalid("it needs tokens of a batch, and how many there are at most")
        given = ids.type.shape[1]
        if not isinstance(given, int):
            raise Unsupported(f"{given} tokens are given: how many is known only at run time", _FIX)
        if most.fact.value is None:
            raise Unsupported("max_length is known only at run time", "make it a constant of the model")
        room = int(most.fact.value.item())
        if not 0 < given < room:
            raise Invalid(f"max_length {room} has no room behind {given} tokens")
        return given, room

    def run(self) -> Sequence[Found]:
        begin = self._inside("begin", self.scope)
        begin.values.update(self.operands)
        begin.values["search length"] = self._constant(np.int64(self.given))
        begin.values["search later"] = self._constant(np.int64(self.given + 1))
        begin.values["search trips"] = self._constant(np.int64(self.most - self.given - 1))
        begin.values["search lowest"] = self._constant(np.finfo(np.float32).min)
        self.reader.constants(self.decoder, begin)
        self.reader.nodes(self._beginning(), begin)

        first = self._inside("first", begin)
        if self.begins is not self.decoder:
            self.reader.constants(self.begins, first)
        names = ["ids", "positions", self.mask, *self.layers]
        for entry, name in zip(self.begins.input, names, strict=True):
            first.values[entry.name] = begin.find(f"search {name}") or Missing.BROKEN
        self.reader.nodes(self.begins.node, first)

        later = self._inside("later", begin)
        for entry, name in zip(self.begins.output, ["scores", *self.layers], strict=True):
            later.values[f"first {name}"] = first.find(entry.name) or Missing.BROKEN
        nodes = self._choice("first ", "search length", "search ", self._at_first)
        if self.given + 1 < self.most:
            nodes += self._loop()
        self.reader.nodes(nodes, later)
        result = "search result" if self.given + 1 < self.most else "first sequences"
        return [later.find(result) or Missing.BROKEN]

    def _beginning(self) -> list[NodeProto]:
        """What the first run of the decoder is given."""
        made = [f"search {name}" for name in ("mask", "positions", "count", "sequences", "done")]
        begin = _step("SearchBegin", ["search ids"], made, most=[self.most], pad=self.pad)
        return [begin, *(self._past(entry) for entry in self.decoder.input[_LAYER:])]

    def _past(self, entry: ValueInfoProto) -> NodeProto:
        """Keys and values of no token."""
        tensor = entry.type.tensor_type
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if len(sizes) != 5 or sizes[0] != 2 or sizes[2] < 1 or sizes[4] < 1:
            raise Unsupported(f"past {entry.name!r} is not keys and values of batch, heads, tokens and channels")
        behind = [sizes[2], 0, sizes[4]]
        made = [f"search {entry.name}"]
        return _step("SearchPast", ["search ids"], made, before=[2], behind=behind, type=tensor.elem_type)

    def _choice(self, made: str, length: str, known: str, steps: Sequence[str]) -> list[NodeProto]:
        """Chooses a token. Names of scores and choice begin with `made`, those of what was known with `known`."""
        scores = f"{made}last"
        nodes = [_step("SearchScores", [f"{made}scores"], [scores])]
        sequences = f"{known}sequences"
        for step in steps:
            more: dict[str, Any] = {}
            match step:
                case "penalty":
                    name, others = "SearchPenalty", [sequences, length, "search penalty"]
                case "window" if self.window == 1:
                    name, others = "SearchOnce", [sequences, length, "search lowest"]
                case "window":
                    name, others = "SearchWindows", [sequences, length, "search lowest"]
                    more["before"] = list(range(self.window - 1))
                case "least":
                    name, others, more["eos"] = "SearchLonger", [length, "search least", "search lowest"], self.end
                case _:
                    name, others = "SearchMask", [f"search {step}", "search lowest"]
            nodes.append(_step(name, [scores, *others], [f"{made}{step}"], **more))
            scores = f"{made}{step}"
        chosen = [f"{made}{name}" for name in ("token", "sequences", "done", "going")]
        operands = [scores, sequences, length, f"{known}done"]
        return [*nodes, _step("SearchChoice", operands, chosen, eos=self.end, pad=self.pad)]

    def _loop(self) -> list[NodeProto]:
        """Takes a token, gives the next. Mask and past grow with each."""
        token, positions, mask = (entry.name for entry in self.decoder.input[:_LAYER])
        scores, *presents = (entry.name for entry in self.decoder.output)
        before = ["now trip", "now on", token, "now sequences", "now mask", "now done", *self.layers]
        behind = ["next going", "next token", "next sequences", mask, "next done", *presents]
        nodes = [
            _step("SearchNext", ["search count", "now trip", "now mask"], [positions, mask]),
            helper.make_node("Add", ["search later", "now trip"], ["now length"]),
            *self.decoder.node,
            helper.make_node("Identity", [scores], ["next scores"]),
            *self._choice("next ", "now length", "now ", self._steps),
        ]
        body = helper.make_graph(
            nodes, "next token", [ValueInfoProto(name=n) for n in before], [ValueInfoProto(name=n) for n in behind]
        )
        pasts = [f"first {name}" for name in self.layers]
        states = ["first token", "first sequences", f"search {self.mask}", "first done", *pasts]
        results = ["search result" if name == "first sequences" else "" for name in states]
        loop = helper.make_node("Loop", ["search trips", "first going", *states], results, "tokens", body=body)
        alike = [Along(states.index(name), axis=3, rank=5, by=1) for name in pasts]
        return written_out(loop, Along(2, axis=1, rank=2, by=1), self.most - 1, alike)

    @property
    def _steps(self) -> list[str]:
        """What changes scores, besides the decoder."""
        return [
            *(["penalty"] if self._matters("penalty", 1) else []),
            *(["window"] if self.window else []),
            *(["kept"] if "search kept" in self.operands else []),
            *(["least"] if self._matters("least", 0) and self.end >= 0 else []),
        ]

    @property
    def _at_first(self) -> list[str]:
        return [*self._steps, *(["kept at first"] if "search kept at first" in self.operands else [])]

    def _matters(self, name: str, neutral: float) -> bool:
        value = self.operands.get(f"search {name}")
        return value is not None and (value.fact.value is None or value.fact.value.item() != neutral)

    def _inside(self, name: str, outer: Scope) -> Scope:
        prefix, opsets = f"{self.origin}/{name}/", {**outer.opsets, OWN: 1}
        return replace(outer, outer=outer, values={}, opsets=opsets, prefix=prefix, shapes={}, said={})

    def _constant(self, value: np.generic) -> Value:
        return self.reader.constant(np.asarray(value), self.scope, self.origin)


def _step(name: str, operands: Sequence[str], results: Sequence[str], **attributes: Any) -> NodeProto:
    """A step of search_steps.py."""
    return helper.make_node(name, operands, results, results[0], domain=OWN, **attributes)
