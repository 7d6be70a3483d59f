"""TfIdfVectorizer in all modes, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mccompile.base.dtypes import i64
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site
from mccompile.ops.tf_idf_vectorizer import TfIdfVectorizer

from .bundle import One, outcomes

POOL: dict[str, Any] = {
    "pool_int64s": [4, 1, 2, 1, 3, 2, 2, 4, 1, 1, 2, 3],
    "ngram_counts": [0, 3, 9],
    "ngram_indexes": [2, 0, 5, 1, 6, 3, 4],
    "weights": [0.5, 2.0, 1.0, 3.0, 4.0, 0.25, 7.0],
}


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_every_mode(mode: str) -> None:
    x = np.random.default_rng(3).integers(0, 5, (4, 25))
    spans = {"min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 2}
    ones = [
        One("rows", "TfIdfVectorizer", [x], {"mode": mode, **spans, **POOL}),
        One("row", "TfIdfVectorizer", [x[0].astype(np.int32)], {"mode": mode, **spans, **POOL}),
        One("pairs", "TfIdfVectorizer", [x], {"mode": mode, **spans, **POOL, "min_gram_length": 2}),
    ]
    for label, (outcome,) in outcomes(15, ones).items():
        np.testing.assert_allclose(outcome.got, outcome.want, rtol=1e-6, err_msg=label)


def test_pairs_are_pairs() -> None:
    odd = TfIdfVectorizer(2, 0, 1, "TF", (0, 1), (0, 1), pool_int64s=(1, 2, 3, 4))
    with pytest.raises(Invalid, match="n-grams"):
        odd.infer(Site((Fact(TensorType(i64, (5,))),), 1))
