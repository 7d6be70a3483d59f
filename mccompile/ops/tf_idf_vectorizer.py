"""TfIdfVectorizer: how often n-grams of a learned list occur in rows of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..base.dtypes import f32, i32, i64
from ..base.tensor import TensorType
from ..kinds.ngram import Ngram
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported


@dataclass(frozen=True)
class TfIdfVectorizer(Operator):
    name = "TfIdfVectorizer"
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
        if self.pool_strings:
            raise Unsupported("its n-grams are of strings", "give words numbers before, with a LabelEncoder")
        if x.dtype not in (i32, i64) or x.rank not in (1, 2):
            raise Invalid(f"x {x} is not one row or several of integers")
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

    def grams(self) -> list[tuple[int, ...]]:
        """All that are in the list, in its order."""
        starts = [*self.ngram_counts, len(self.pool_int64s)]
        found = []
        for length, (start, end) in enumerate(pairwise(starts), 1):
            if not 0 <= start <= end or (end - start) % length:
                raise Invalid(f"ngram_counts {self.ngram_counts} do not cut {starts[-1]} numbers into n-grams")
            found += [self.pool_int64s[at : at + length] for at in range(start, end, length)]
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
        ins = [
            rows,
            to.constant(np.array([number for n in order for number in grams[n]], np.int64), "grams"),
            to.constant(np.array([self.ngram_indexes[n] for n in order], np.int64), "places"),
            to.constant(np.array(factors, np.float32), "weights"),
        ]
        made = to.call(kind, ins, TensorType(f32, (rows.shape[0], columns)))[0]
        to.set(0, to.reshape(made, type.shape))
