"""TfIdfVectorizer: how often sequences of integers or strings occur, weighted.

The pool becomes two constant operands when a node is read: sequences in ascending order by length, and the column of
the result that each counts in; weights become a third.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.constant import encoded
from ..base.dtypes import f32, i32, i64, string
from ..base.tensor import TensorType
from ..expr.ir import apply, literal, operand
from ..kinds.count_ngrams import CountNgrams
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported

MODES = ("TF", "IDF", "TFIDF")


@dataclass(frozen=True)
class TfIdfVectorizer(Operator):
    """Operands: x, sequences, columns, and weights, if any."""

    name = "TfIdfVectorizer"
    versions = (9,)
    mode: str
    groups: tuple[tuple[int, int], ...]  # length of sequences, and how many there are
    skips: int
    outputs: int

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        attributes = node.attributes
        needed = ("mode", "ngram_counts", "ngram_indexes", "min_gram_length", "max_gram_length", "max_skip_count")
        missing = [name for name in needed if name not in attributes]
        if missing:
            raise Invalid(f"attribute {missing[0]} is missing")
        if attributes["mode"] not in MODES:
            raise Invalid(f"mode {attributes['mode']!r} is not one of {', '.join(MODES)}")
        least, most, skips = (attributes[name] for name in needed[3:])
        if not 1 <= least <= most or skips < 0:
            raise Invalid(f"sequences of {least} to {most} elements with {skips} skips")
        pool = _pool(attributes)
        columns = np.array(attributes["ngram_indexes"], np.int32)
        if columns.size == 0 or columns.min() < 0:
            raise Invalid("ngram_indexes has no columns, or negative ones")
        elements, places, groups = _ordered(pool, columns, attributes["ngram_counts"], least, most)
        node.set_input(1, node.constant(elements))
        node.set_input(2, node.constant(places))
        outputs = int(columns.max()) + 1
        if attributes.get("weights") and attributes["mode"] != "TF":
            node.set_input(3, node.constant(_by_column(columns, attributes["weights"], outputs)))
        return cls(attributes["mode"], groups, skips, outputs)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        return {}, None  # the operands cannot be turned back; nobody can evaluate such a node

    def infer(self, site: Site) -> list[Fact]:
        x, known = site.type(0), site.type(1)
        if x.rank > 2 or x.dtype not in (i32, i64, string) or (x.dtype is string) is not (known.dtype is string):
            raise Invalid(f"x is {x}, the pool has {known.dtype}")
        return [Fact(TensorType(f32, (*x.shape[:-1], self.outputs)))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        if x.buffer.dtype is i32:
            x = to.cast(x, i64)
        rows = x.shape[0] if len(x.shape) == 2 else 1
        matrix = to.reshape(x, (rows, x.shape[-1] if x.shape else 1))
        kind = CountNgrams(self.groups, self.skips)
        ins = [matrix, to.input(1), to.input(2)]
        (counts,) = to.call(kind, ins, TensorType(f32, (rows, self.outputs)))
        result, count = counts, operand(0, f32)
        if self.mode == "IDF":
            weights = [to.input(3)] if to.has(3) else []
            weight = operand(1, f32) if weights else literal(1, f32)
            element = apply("select", apply("greater", count, literal(0, f32)), weight, literal(0, f32))
            result = to.map(element, [counts, *weights], counts.shape)
        elif to.has(3):
            result = to.map(apply("mul", count, operand(1, f32)), [counts, to.input(3)], counts.shape)
        to.set(0, to.reshape(result, type.shape))


def _pool(attributes: dict[str, Any]) -> np.ndarray:
    numbers, texts = attributes.get("pool_int64s", ()), attributes.get("pool_strings", ())
    if bool(numbers) is bool(texts):
        raise Invalid("it needs one of pool_int64s and pool_strings")
    return np.array(texts, object) if texts else np.array(numbers, np.int64)


def _by_column(columns: np.ndarray, weights: tuple[float, ...], outputs: int) -> np.ndarray:
    """Each sequence has a weight; those that count in one column have to have the same."""
    if len(weights) != columns.size:
        raise Invalid(f"there are {len(weights)} weights and {columns.size} ngram_indexes")
    found = np.zeros(outputs, np.float32)
    found[columns] = weights
    if not np.array_equal(found[columns], np.array(weights, np.float32), equal_nan=True):
        raise Unsupported("sequences with different weights count in one column", "give each a column of its own")
    return found


def _ordered(
    pool: np.ndarray, columns: np.ndarray, counts: tuple[int, ...], least: int, most: int
) -> tuple[np.ndarray, np.ndarray, tuple[tuple[int, int], ...]]:
    """Sequences of the lengths asked for, in order, their columns, and the groups; of equal ones the last counts."""
    keys = encoded(pool) if pool.dtype == object else pool.tolist()
    elements: list[int] = []
    places: list[int] = []
    groups: list[tuple[int, int]] = []
    number = 0
    for length, (start, end) in enumerate(zip(counts, (*counts[1:], len(pool)), strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise Invalid(f"ngram_counts {counts} do not cut {len(pool)} elements into sequences")
        found: dict[tuple[Any, ...], tuple[int, int]] = {}  # where each starts, and its number
        for at in range(start, end, length):
            found[tuple(keys[at : at + length])] = at, number
            number += 1
        if least <= length <= most and found:
            order = sorted(found)
            groups.append((length, len(order)))
            elements += [found[key][0] + n for key in order for n in range(length)]
            places += [found[key][1] for key in order]
    if number != columns.size:
        raise Invalid(f"there are {number} sequences and {columns.size} ngram_indexes")
    return pool[elements], columns[places], tuple(groups)
