"""split_strings in portable C: each string from its first byte to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import i64, string
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.dims_c import dim_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.split_strings import SplitStrings


class SplitStringsLoops(Kernel):
    kind = SplitStrings

    def cases(self) -> Sequence[Case]:
        words = np.array(["a b  c", "  x ", "", "--", "a--b---c", "ab"], object)

        def case(name: str, kind: SplitStrings) -> Case:
            outs = (TensorType(string, (6, 4)), TensorType(i64, (6,)), TensorType(i64, (1,)))
            return Case(name, kind, (TensorType(string, (6,)),), outs, values={0: words})

        return [
            case("words", SplitStrings()),
            case("two_words", SplitStrings(splits=1)),
            case("delimiter", SplitStrings("--")),
            case("delimiter_once", SplitStrings("-", 1)),
            case("whole", SplitStrings("-", 0)),
            case("runs", SplitStrings(kept=((ord("a"), ord("b")), (128, 255)))),
            case("long_runs", SplitStrings(kept=((0, ord("-") - 1), (ord("-") + 1, 255)), least=2)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        return (
            Needs(symbols=True) if isinstance(call.outs[0].shape[1], int) else No("its size is known at run time only")
        )

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 100 * target.machine.element, code=300)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (y, counts, _), x = call.kind, call.outs, call.ins[0]
        assert isinstance(kind, SplitStrings) and counts.is_dense
        text, blank = kind.delimiter.encode(), kind.blank.encode()
        return {
            "count": dim_c(x.shape[0]),
            "x": index_c(x.strides, ["i"]),
            "y": index_c(y.strides, ["i", "pieces"]),
            "room": static(y.shape[1]),
            "splits": kind.splits,
            "delimiter": _literal(text) if text else "",
            "delimiter_bytes": len(text),
            "kept": " || ".join(map(_is_within, kind.kept)),
            "least": kind.least,
            "blank": f"mcc_string_of({_literal(blank)}, {len(blank)}u)" if blank else "mcc_string_empty()",
        }

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_text.h"})


def _literal(text: bytes) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in text) + '"'


def _is_within(span: tuple[int, int]) -> str:
    """Does a byte lie within these?"""
    low, high = span
    tests = [f"byte >= {low}u"] * (low > 0) + [f"byte <= {high}u"] * (high < 255)
    return f"byte == {low}u" if low == high else f"({' && '.join(tests) or '1'})"
