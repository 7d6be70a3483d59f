"""What tests of models of tables share: data to train with, and what is compared."""

from __future__ import annotations

from typing import Any

import numpy as np

import mccompile


def table(rows: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, three classes, and numbers, all of which follow from the features."""
    chance = np.random.default_rng(5)
    x = chance.normal(size=(rows, 4)).astype(np.float32)
    score = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
    return x, np.digitize(score, [-0.5, 0.5]), (score + 0.1 * x[:, 3]).astype(np.float32)


def compare(model: Any, x: np.ndarray, *wanted: Any, **keywords: Any) -> None:
    """Compiles a model to C, and holds what it gives for all rows against what is wanted of each output."""
    results = mccompile.load(model, **keywords)(x)
    assert len(results) == len(wanted)
    for got, expected in zip(results, wanted, strict=True):
        expected = np.asarray(expected)
        if expected.dtype.kind != "f":
            assert np.array_equal(got.reshape(-1).astype(str), expected.reshape(-1).astype(str))
        else:
            assert np.abs(got.reshape(expected.shape) - expected).max() <= 3e-5 * np.abs(expected).max()


def compare_behind_scaler(model: Any) -> None:
    """A classifier within a pipeline of scikit-learn."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, classes, _ = table()
    trained, new = make_pipeline(StandardScaler(), model).fit(x[:80], classes[:80]), x[80:]
    # thresholds are among the rows of training, where a rounding in front decides
    compare(trained, new, trained.predict(new), trained.predict_proba(new))
