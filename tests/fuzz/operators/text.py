"""Strings."""

from __future__ import annotations

import numpy as np

from ..builder import Builder, Value
from .registry import makes


def words(g: Builder) -> Value:
    return g.input("object", tuple(g.integer(1, 4) for _ in range(g.integer(1, 2))), "text")


@makes("StringConcat", opset=20)
def joined(g: Builder, op: str) -> Value | None:
    x = words(g)
    return g.node(op, [x, g.pick([x, g.constant(np.array(["-x"], object))])])


@makes("RegexFullMatch", opset=20)
def matched(g: Builder, op: str) -> Value | None:
    return g.node(op, [words(g)], pattern=g.pick(["[a-z]+", ".*e.*", "(mcc|Hello)", "\\d\\.\\d", "a?"]))


@makes("StringNormalizer")
def normal(g: Builder, op: str) -> Value | None:
    x = g.input("object", (g.integer(1, 4),), "text")
    # Letters of other cases need a locale in onnxruntime, and the reference changes more letters than cases.
    made = g.node(op, [x], last=True, case_change_action="NONE", is_case_sensitive=1)
    if made is not None:
        g.bounds[made.name] = (x.size,)
    return made


@makes("StringSplit", opset=20)
def parted(g: Builder, op: str) -> Value | None:
    x = g.input("object", (g.integer(1, 3),), "text")
    found = g.nodes_(op, [x], 2, delimiter=" ", maxsplit=1, last=True)
    if not found:
        return None
    g.bounds[found[0].name] = (2,)
    return found[1]


@makes("com.microsoft::Tokenizer")
def tokenized(g: Builder, op: str) -> Value | None:
    x = g.input("object", (g.integer(1, 3),), "text")
    form = g.pick([{"tokenexp": "[a-zA-Z0-9_]+"}, {"separators": [" ", "[.,]"]}])
    more = {"mark": 0, "mincharnum": g.integer(1, 2), "pad_value": g.pick(["", "#"])}
    made = g.node(op, [x], domain="com.microsoft", last=True, **more, **form)
    if made is not None:
        g.bounds[made.name] = (40,)
    return made


@makes("TfIdfVectorizer")
def weighted(g: Builder, op: str) -> Value | None:
    x = g.index(0, 5, (g.integer(1, 2), g.integer(3, 8)))
    form = {
        "mode": g.pick(["TF", "IDF", "TFIDF"]),
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 1,
        "ngram_counts": [0, 3],
        "ngram_indexes": [0, 1, 2, 3, 4],
        "pool_int64s": [1, 2, 3, 1, 2, 3, 4],
        "weights": [1.0, 2.0, 0.5, 1.0, 3.0],
    }
    return g.node(op, [x], **form)


@makes("ai.onnx.ml::LabelEncoder", opset=20)
def labels(g: Builder, op: str) -> Value | None:
    if g.maybe():
        form = {"keys_strings": ["a", "mcc", "the"], "values_int64s": [5, -1, 7], "default_int64": 9}
        return g.node(op, [words(g)], domain="ai.onnx.ml", **form)
    form = {"keys_int64s": [0, 1, 2], "values_floats": [0.5, 1.0, 4.0], "default_float": -1.0}
    return g.node(op, [g.index(0, 4, (g.integer(1, 6),))], domain="ai.onnx.ml", **form)


@makes("ai.onnx.ml::CategoryMapper")
def mapped(g: Builder, op: str) -> Value | None:
    form = {"cats_strings": ["a", "mcc", "the"], "cats_int64s": [0, 1, 2], "default_int64": -1, "default_string": "?"}
    x = words(g) if g.maybe() else g.index(0, 4, (g.integer(1, 6),))
    return g.node(op, [x], domain="ai.onnx.ml", **form)
