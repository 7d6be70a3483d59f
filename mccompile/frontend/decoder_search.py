"""Searches of onnxruntime, which run a decoder for every token: decomposed into a run over the tokens that are given
and a Loop over those that follow.

The decoder is a graph: tokens, positions, mask and the keys and values of each layer go in, scores and longer keys and
values come out. In the Loop they grow, which growing_loops.py writes as buffers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from ..graph.ir import Invalid, Unsupported, Value
from .functions import attributes_of
from .graphs import GraphReader
from .growing_loops import OWN, GrowthAxis, written_out
from .scope import Found, Missing, Scope
from .tensors import attribute_value

_KNOWN = {"decoder", "init_decoder", "eos_token_id", "pad_token_id", "model_type", "no_repeat_ngram_size", "vocab_size"}
_FIX = "fix it with --dim or --shape"
_LAYER = 3  # number of the decoder's first operand that is the past of a layer, and of its first result behind scores


class Search(ABC):
    """What searches have in common. The prefix of a value's name says where it belongs: `search` (given, or constant),
    `first` (run over the given tokens), `rows` (its results for all beams), `now`, `next` and `last` (before, in and
    behind the Loop), `result`."""

    names: ClassVar[tuple[str, ...]]  # of its operands behind the tokens
    known: ClassVar[frozenset[str]]  # its attributes
    more: ClassVar[tuple[str, ...]] = ()  # what it carries from token to token, besides tokens and the past

    def __init__(self, reader: GraphReader, node: NodeProto, scope: Scope, operands: Sequence[Value | None]) -> None:
        self.reader, self.scope, self.origin = reader, scope, scope.origin(node)
        attributes = attributes_of(node, scope.attributes)
        graphs = {a.name: a.g for a in attributes if a.HasField("g")}
        self.numbers = {a.name: attribute_value(a, None) for a in attributes if a.name not in graphs}
        if more := sorted({*graphs, *self.numbers} - _KNOWN - self.known):
            raise Unsupported(f"attribute {more[0]} of {node.op_type} is not known")
        if "decoder" not in graphs:
            raise Invalid("it has no decoder")
        self.decoder, self.begins = graphs["decoder"], graphs.get("init_decoder", graphs["decoder"])
        self.layers = [entry.name for entry in self.decoder.input[_LAYER:]]
        self.end, self.pad = (self.number(f"{name}_token_id", -1) for name in ("eos", "pad"))
        self.window = self.number("no_repeat_ngram_size", 0)
        named = zip(("ids", *self.names), operands, strict=False)
        self.operands = {f"search {name}": value for name, value in named if value}
        if len(operands) > 1 + len(self.names) and any(operands[1 + len(self.names) :]):
            raise Unsupported(f"operand {2 + len(self.names)} of {node.op_type} is not known")
        self.mask = "search given" if "search given" in self.operands else "search mask"
        self.wanted = [*node.output]
        self.check()
        self.given, self.most = self._lengths()

    def number(self, name: str, otherwise: int) -> int:
        return int(self.numbers.get(name, otherwise))

    def check(self) -> None:
        """Refuses what this search cannot do."""
        if self.number("model_type", 0) != 0:
            raise Unsupported("its model has an encoder", "export encoder and decoder as models of their own")
        for graph in (self.decoder, self.begins):
            if len(graph.input) != _LAYER + len(self.layers) or len(graph.output) != 1 + len(self.layers):
                raise Unsupported(
                    f"its decoder has {len(graph.input)} inputs and {len(graph.output)} outputs",
                    "tokens, positions, mask and the past of each layer go in, scores and present come out",
                )
        vocabulary, made = self.number("vocab_size", -1), self.decoder.output[0].type.tensor_type.shape.dim
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
        for name, value in self.constants().items():
            begin.values[f"search {name}"] = self.constant(value)
        self.reader.constants(self.decoder, begin)
        self.reader.nodes(self._beginning(), begin)

        first = self._inside("first", begin)
        if self.begins is not self.decoder:
            self.reader.constants(self.begins, first)
        names = ["search ids", "search positions", self.mask, *(f"search {name}" for name in self.layers)]
        for entry, name in zip(self.begins.input, names, strict=True):
            first.values[entry.name] = begin.find(name) or Missing.BROKEN
        self.reader.nodes(self.begins.node, first)

        later = self._inside("later", begin)
        for entry, name in zip(self.begins.output, ["scores", *self.layers], strict=True):
            later.values[f"first {name}"] = first.find(entry.name) or Missing.BROKEN
        nodes, at_last = self._choice("first ", "search length", self._at_first), "first "
        if self.given + 1 < self.most:
            nodes, at_last = nodes + self._loop(), "last "
        self.reader.nodes(nodes + self.ended(at_last), later)
        return [later.find(name) or Missing.BROKEN for name in self.results(at_last)]

    @abstractmethod
    def prepared(self, made: str, scores: str) -> list[NodeProto]:
        """`<made>last`: what is chosen by, of the scores that the decoder gives for the last token."""

    @abstractmethod
    def chosen(self, made: str, scores: str, length: str) -> list[NodeProto]:
        """Chooses `<made>token` and adds it to `<made>sequences`; `<made>done` and `<made>going` say who has ended, and
        whether somebody has not."""

    @abstractmethod
    def past(self, made: str, name: str, present: str) -> list[NodeProto]:
        """`name`: the past of the next token, of what the decoder gives."""

    @abstractmethod
    def at_first(self, name: str) -> str:
        """What count and mask are called where the first token has been chosen."""

    def ended(self, at_last: str) -> list[NodeProto]:
        return []

    @abstractmethod
    def results(self, at_last: str) -> Sequence[str]:
        """Names of the results; what is carried begins with `at_last`."""

    def constants(self) -> dict[str, np.generic]:
        return {
            "length": np.int64(self.given),
            "later": np.int64(self.given + 1),
            "trips": np.int64(self.most - self.given - 1),
            "lowest": np.finfo(np.float32).min,
        }

    def _beginning(self) -> list[NodeProto]:
        """What the first run of the decoder is given."""
        made = [f"search {name}" for name in ("mask", "positions", "count", "sequences", "done")]
        begin = step("SearchBegin", ["search ids"], made, most=[self.most], pad=self.pad)
        return [begin, *(self._past(entry) for entry in self.decoder.input[_LAYER:])]

    def _past(self, entry: ValueInfoProto) -> NodeProto:
        """Keys and values of no token."""
        tensor = entry.type.tensor_type
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if len(sizes) != 5 or sizes[0] != 2 or sizes[2] < 1 or sizes[4] < 1:
            raise Unsupported(f"past {entry.name!r} is not keys and values of batch, heads, tokens and channels")
        behind = [sizes[2], 0, sizes[4]]
        made = [f"search {entry.name}"]
        return step("SearchPast", ["search ids"], made, before=[2], behind=behind, type=tensor.elem_type)

    def _choice(self, made: str, length: str, steps: Sequence[str]) -> list[NodeProto]:
        """Chooses a token. Names of scores and choice begin with `made`."""
        nodes = [step("SearchScores", [f"{made}scores"], [f"{made}logits"]), *self.prepared(made, f"{made}logits")]
        scores, sequences = f"{made}last", f"{'now' if made == 'next ' else 'search'} sequences"
        for name in steps:
            more: dict[str, Any] = {}
            match name:
                case "penalty":
                    function, others = "SearchPenalty", [sequences, length, "search penalty"]
                case "window" if self.window == 1:
                    function, others = "SearchOnce", [sequences, length, "search lowest"]
                case "window":
                    function, others = "SearchWindows", [sequences, length, "search lowest"]
                    more["before"] = list(range(self.window - 1))
                case "least":
                    function, others, more["eos"] = "SearchLonger", [length, "search least", "search lowest"], self.end
                case _:
                    function, others = "SearchMask", [f"search {name}", "search lowest"]
            nodes.append(step(function, [scores, *others], [f"{made}{name}"], **more))
            scores = f"{made}{name}"
        return [*nodes, *self.chosen(made, scores, length)]

    def _loop(self) -> list[NodeProto]:
        """Takes a token, gives the next. Mask and past grow with each."""
        token, positions, mask = (entry.name for entry in self.decoder.input[:_LAYER])
        scores, *presents = (entry.name for entry in self.decoder.output)
        before = ["now trip", "now on", token, "now sequences", "now mask", "now done"]
        behind = ["next going", "next token", "next sequences", mask, "next done"]
        first = ["first token", "first sequences", self.at_first("mask"), "first done"]
        last = ["", "last sequences", "", "last done"]
        for carried, prefix in ((before, "now"), (behind, "next"), (first, "first"), (last, "last")):
            carried += [f"{prefix} {name}" for name in self.more]
        grown, pasts = [f"next {name}" for name in self.layers], [f"first past {name}" for name in self.layers]
        nodes = [
            step("SearchNext", [self.at_first("count"), "now trip", "now mask"], [positions, mask]),
            helper.make_node("Add", ["search later", "now trip"], ["now length"]),
            *self.decoder.node,
            helper.make_node("Identity", [scores], ["next scores"]),
            *self._choice("next ", "now length", self._steps),
            *(node for name, made in zip(grown, presents, strict=True) for node in self.past("next ", name, made)),
        ]
        takes, gives = ([ValueInfoProto(name=n) for n in each] for each in ([*before, *self.layers], [*behind, *grown]))
        body = helper.make_graph(nodes, "next token", takes, gives)
        read = {*self.results("last "), *(name for node in self.ended("last ") for name in node.input)}
        results = [*(name if name in read else "" for name in last), *("" for _ in pasts)]
        loop = helper.make_node("Loop", ["search trips", "first going", *first, *pasts], results, "tokens", body=body)
        grows = [GrowthAxis(len(first) + number, axis=3, rank=5, by=1) for number in range(len(pasts))]
        kept = [(name, f"first {layer}") for name, layer in zip(pasts, self.layers, strict=True)]
        return [
            *(node for name, made in kept for node in self.past("first ", name, made)),
            *written_out(loop, GrowthAxis(2, axis=1, rank=2, by=1), self.most - 1, grows),
        ]

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
        provenance = self.origin if self.origin == outer.provenance else f"{self.origin}/"
        return replace(
            outer, outer=outer, values={}, opsets=opsets, prefix=prefix, provenance=provenance, shapes={}, said={}
        )

    def constant(self, value: np.generic) -> Value:
        return self.reader.constant(np.asarray(value), self.scope, self.origin)


def step(name: str, operands: Sequence[str], results: Sequence[str], **attributes: Any) -> NodeProto:
    """A step of search_steps.py."""
    return helper.make_node(name, operands, results, results[0], domain=OWN, **attributes)
