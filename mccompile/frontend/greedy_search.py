"""GreedySearch: the likeliest token follows."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, helper

from .decoder_search import Search, step


class GreedySearch(Search):
    names = ("most", "least", "penalty", "kept", "kept at first", "given")
    known = frozenset()

    def prepared(self, made: str, scores: str) -> list[NodeProto]:
        return [helper.make_node("Identity", [scores], [f"{made}last"])]

    def chosen(self, made: str, scores: str, length: str) -> list[NodeProto]:
        known = "search" if made == "first " else "now"
        operands = [scores, f"{known} sequences", length, f"{known} done"]
        results = [f"{made}{name}" for name in ("token", "sequences", "done", "going")]
        return [step("SearchChoice", operands, results, eos=self.end, pad=self.pad)]

    def past(self, made: str, name: str, present: str) -> list[NodeProto]:
        return [helper.make_node("Identity", [present], [name])]

    def at_first(self, name: str) -> str:
        return self.mask if name == "mask" else f"search {name}"

    def results(self, at_last: str) -> Sequence[str]:
        return [f"{at_last}sequences"]
