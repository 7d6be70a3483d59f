"""BeamSearch: several sequences of each batch are followed, and the best of those that ended are given.

As onnxruntime has it: a sequence that ends counts by the sum of its scores over a power of its length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper

from ..graph.ir import Invalid, Unsupported
from .decoder_search import Search, step


class BeamSearch(Search):
    names = (
        "most", "least", "beams", "returned", "exponent", "penalty", "kept", "kept at first", "given", "starts",
        "processor",
    )  # fmt: skip
    known = frozenset({"encoder", "early_stopping", "decoder_start_token_id"})
    more = ("totals", "ended", "worth")  # of each row its sum of scores; of each batch what ended, and what it is worth

    def check(self) -> None:
        super().check()
        processor = self.operands.get("search processor")
        if processor is not None and (processor.fact.value is None or processor.fact.value.item() != 0):
            raise Unsupported("its logits_processor changes scores", "leave it out")
        self.beams, self.returned = self.count("beams", "num_beams"), self.count("returned", "num_return_sequences")
        if self.returned > self.beams:
            raise Invalid(f"num_return_sequences is {self.returned}, and there are {self.beams} beams")
        if self.end < 0 or self.pad < 0:
            raise Invalid("it needs eos_token_id and pad_token_id")
        if len(self.wanted) > 2 and self.wanted[2]:
            raise Unsupported("scores of all tokens are its third result", "leave it out")

    def count(self, name: str, operand: str) -> int:
        value = self.operands.get(f"search {name}")
        if value is None:
            return 1
        if value.fact.value is None:
            raise Unsupported(f"{operand} is known only at run time", "make it a constant of the model")
        number = int(value.fact.value.item())
        if number < 1:
            raise Invalid(f"{operand} is {number}")
        return number

    def constants(self) -> dict[str, np.generic]:
        more: dict[str, np.generic] = {"most tokens": np.int64(self.most), "nothing": np.float32(-np.inf)}
        if "search exponent" not in self.operands:
            more["exponent"] = np.float32(1)
        return {**super().constants(), **more}

    def prepared(self, made: str, scores: str) -> list[NodeProto]:
        return [helper.make_node("LogSoftmax", [scores], [f"{made}last"], axis=-1)]

    def chosen(self, made: str, scores: str, length: str) -> list[NodeProto]:
        nodes, known = [], "now"
        carried = ("sequences", "done", *self.more)
        if made == "first ":
            known, begun = "rows", [f"rows {name}" for name in ("sequences", "count", "mask", *self.more)]
            operands = ["search sequences", "search count", self.mask, "search nothing"]
            totals = [0.0] + [-1e9] * (self.beams - 1)
            rows = step("SearchRows", [scores], ["rows scores"], beams=self.beams)
            begin = step("SearchBeamsBegin", operands, begun, beams=self.beams, totals=totals, pad=self.pad)
            done = helper.make_node("Identity", ["search done"], ["rows done"])
            nodes, scores = [rows, begin, done], "rows scores"
        operands = [scores, length, *(f"{known} {name}" for name in carried), "search exponent", "search nothing"]
        results = [f"{made}{name}" for name in ("token", "going", "parents", *carried)]
        early = int(self.number("early_stopping", 0) == 1)
        form = {"eos": self.end, "pad": self.pad, "beams": self.beams, "early": early}
        return [*nodes, step("SearchBeams", operands, results, **form)]

    def past(self, made: str, name: str, present: str) -> list[NodeProto]:
        """The past of a row is that of the row which it goes on from; the first run has one of each batch."""
        if self.beams == 1:
            return [helper.make_node("Identity", [present], [name])]
        rows = f"{made}parents"
        batches = []
        if made == "first ":
            rows = f"{name} rows"
            batches = [step("SearchBatches", [f"{made}parents"], [rows], beams=self.beams)]
        return [*batches, helper.make_node("Gather", [present, rows], [name], axis=1)]

    def at_first(self, name: str) -> str:
        return f"rows {name}"

    def ended(self, at_last: str) -> list[NodeProto]:
        operands = [*(f"{at_last}{name}" for name in ("sequences", "done", *self.more))]
        operands += ["search exponent", "search nothing", "search most tokens"]
        results = ["result tokens", "result scores"]
        return [step("SearchEnd", operands, results, beams=self.beams, returned=self.returned)]

    def results(self, at_last: str) -> Sequence[str]:
        return ["result tokens", "result scores"]
