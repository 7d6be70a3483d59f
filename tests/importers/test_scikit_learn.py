"""Models of scikit-learn: from object to C to equal numbers.

`make importers` runs this where the extra `sklearn` is installed, and nothing else."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError
from tests.importers.tables import compare, table

sklearn = pytest.importorskip("sklearn", reason="the extra sklearn is not installed; `make importers` runs this")
pytest.importorskip("skl2onnx", reason="the extra sklearn is not installed; `make importers` runs this")

decomposition, ensemble, linear_model, neural_network, preprocessing = (
    pytest.importorskip(f"sklearn.{name}")
    for name in ("decomposition", "ensemble", "linear_model", "neural_network", "preprocessing")
)
make_pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline

X, CLASSES, NUMBERS = table()


class Stranger:
    """What skops does not know."""


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.fixture
def pipeline() -> Any:
    return make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()).fit(X, CLASSES)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        ensemble.RandomForestClassifier(5, random_state=0),
        neural_network.MLPClassifier((6,), max_iter=30, random_state=0),
    ],
    ids=["pipeline", "forest", "mlp"],
)
def test_classifiers(model: Any) -> None:
    model.fit(X, CLASSES)
    compare(model, X, model.predict(X), model.predict_proba(X))


def test_labels_may_be_text() -> None:
    names = np.array(["low", "middle", "high"])[CLASSES]
    model = linear_model.LogisticRegression().fit(X, names)
    compare(model, X, model.predict(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "model", [linear_model.LinearRegression(), ensemble.GradientBoostingRegressor(n_estimators=5)], ids=["sum", "trees"]
)
def test_regressors(model: Any) -> None:
    model.fit(X, NUMBERS)
    compare(model, X, model.predict(X))


def test_transformers() -> None:
    model = make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2)).fit(X)
    compare(model, X, model.transform(X))


def test_an_example_says_types_and_names(pipeline: Any) -> None:
    doubles = X.astype(np.float64)
    compiled = mccompile.load(pipeline, args={"features": doubles[:1]})
    assert compiled.input_names == ("features",)
    got = compiled(doubles)["probabilities"]
    assert np.abs(got - pipeline.predict_proba(doubles)).max() < 1e-6


@pytest.mark.parametrize("suffix", ["skops", "joblib", "pkl"])
def test_files_are_loaded_where_they_are_trusted(
    suffix: str, pipeline: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import joblib
    import skops.io

    path = tmp_path / f"pipeline.{suffix}"
    if suffix == "pkl":
        path.write_bytes(pickle.dumps(pipeline))
    else:
        {"skops": skops.io.dump, "joblib": joblib.dump}[suffix](pipeline, path)
    assert cli.run(["check", str(path), "--dim", "batch=1"]) == 2
    assert "fix    add --trust" in capsys.readouterr().err
    assert cli.run(["check", str(path), "--dim", "batch=1", "--trust"]) == 0
    compare(path, X, pipeline.predict(X), pipeline.predict_proba(X), trust=True)


def test_types_that_skops_does_not_know_are_listed(pipeline: Any, tmp_path: Path) -> None:
    import skops.io

    pipeline.stranger = Stranger()
    skops.io.dump(pipeline, tmp_path / "pipeline.skops")
    with pytest.raises(MccError, match=r"it does not know .*Stranger"):
        mccompile.compile(tmp_path / "pipeline.skops")


def test_nothing_of_a_pickle_runs_unless_it_is_trusted(tmp_path: Path) -> None:
    path, made = tmp_path / "evil.joblib", tmp_path / "made"
    path.write_bytes(pickle.dumps(Evil(made)))
    for command in (mccompile.compile, mccompile.load):
        with pytest.raises(MccError, match=r"such as posix\.system"):
            command(path)
    assert not made.exists()
    with pytest.raises(MccError, match="is not a model that can be compiled"):
        mccompile.compile(path, trust=True)
    assert made.exists()


def test_a_damaged_file_is_refused(pipeline: Any, tmp_path: Path) -> None:
    import skops.io

    data = skops.io.dumps(pipeline)
    files = {"a.skops": data.replace(b"sklearn", b"sklexrn"), "a.pkl": pickle.dumps(pipeline)[:200]}
    for name, damaged in files.items():
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(MccError):
            mccompile.compile(tmp_path / name, trust=True)


@pytest.mark.parametrize(
    ("args", "said"),
    [((X, CLASSES), "has one input"), ((X[0],), "has 1 axes"), ((X.astype(complex),), "elements of complex128")],
    ids=["two", "one axis", "complex"],
)
def test_wrong_examples_are_refused(args: Any, said: str, pipeline: Any) -> None:
    with pytest.raises(MccError, match=said):
        mccompile.compile(pipeline, args=args)


def test_what_was_not_trained_is_refused() -> None:
    with pytest.raises(MccError, match="does not say how many features"):
        mccompile.compile(ensemble.RandomForestClassifier())
    with pytest.raises(MccError, match="skl2onnx cannot convert the model"):
        mccompile.compile(ensemble.RandomForestClassifier(), args=(X[:1],))
