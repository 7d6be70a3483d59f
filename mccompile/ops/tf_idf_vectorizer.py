"""TfIdfVectorizer: how often n-grams of a learned list occur in rows of numbers or strings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.constant import encoded
from ..base.dtypes import f32, i32, i64, string
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.ngram import Ngram
from .api import Fact, Invalid, Lowering, Operator, Site


@dataclass(frozen=True)
class TfIdfVectorizer(Operator):
    versions = (9,)
    max_gram_length: int
    max_skip_count: int
    min_gram_length: int
    mode: str
    ngram_counts: tuple[int, ...]
    ngram_indexes: tuple[int, ...]
    pool_int64s: tuple[int, ...] = ()
    pool_strings: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if bool(self.pool_strings) is bool(self.pool_int64s):
            raise Invalid("it needs one of pool_int64s and pool_strings")
        if x.dtype not in ((string,) if self.pool_strings else (i32, i64)) or x.rank not in (1, 2):
            raise Invalid(f"x {x} is not one row or several of elements like those of its n-grams")
        if self.mode not in ("TF", "IDF", "TFIDF") or not 1 <= self.min_gram_length <= self.max_gram_length:
            raise Invalid(f"mode {self.mode!r}, lengths {self.min_gram_length} to {self.max_gram_length}")
        if self.max_skip_count < 0 or not self.ngram_indexes or min(self.ngram_indexes) < 0:
            raise Invalid(f"max_skip_count {self.max_skip_count}, ngram_indexes {self.ngram_indexes}")
        grams = self.grams()
        if len(grams) != len(self.ngram_indexes) or (self.weights and len(self.weights) != len(grams)):
            raise Invalid(f"{len(grams)} n-grams have {len(self.ngram_indexes)} indexes, {len(self.weights)} weights")
        if len(set(grams)) != len(grams):
            raise Invalid("an n-gram is in the list twice")
        return [Fact(TensorType(f32, (*x.shape[:-1], max(self.ngram_indexes) + 1)))]

    def grams(self) -> list[tuple[Any, ...]]:
        """All that are in the list, in its order; strings as bytes, whose order counts."""
        pool: Sequence[Any] = encoded(np.array(self.pool_strings, object)) or self.pool_int64s
        starts = [*self.ngram_counts, len(pool)]
        found = []
        for length, (start, end) in enumerate(pairwise(starts), 1):
            if not 0 <= start <= end or (end - start) % length:
                raise Invalid(f"ngram_counts {self.ngram_counts} do not cut {starts[-1]} elements into n-grams")
            found += [tuple(pool[at : at + length]) for at in range(start, end, length)]
        return found

    def lower(self, to: Lowering) -> None:
        x, type, grams = to.input(0), to.type(), self.grams()
        # those of other lengths are never looked for; the rest in ascending order, by length
        wanted = [n for n, gram in enumerate(grams) if self.min_gram_length <= len(gram) <= self.max_gram_length]
        order = sorted(wanted, key=lambda n: (len(grams[n]), grams[n]))
        lengths = sorted({len(grams[n]) for n in order})
        counts = tuple((length, sum(len(grams[n]) == length for n in order)) for length in lengths)
        factors = [self.weights[n] if self.weights and self.mode != "TF" else 1.0 for n in order]
        rows = x if len(x.shape) == 2 else to.reshape(x, (1, *x.shape))
        columns = max(self.ngram_indexes) + 1
        kind = Ngram(counts, self.max_skip_count, self.mode == "IDF", columns)
        elements = [element for n in order for element in grams[n]]
        ins = [
            rows,
            to.constant(np.array(elements, object if self.pool_strings else np.int64), "grams"),
            to.constant(np.array([self.ngram_indexes[n] for n in order], np.int64), "places"),
            to.constant(np.array(factors, np.float32), "weights"),
        ]
        made = to.call(kind, ins, TensorType(f32, (rows.shape[0], columns)))[0]
        to.set(0, to.reshape(made, type.shape))
