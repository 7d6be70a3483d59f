"""Models of XGBoost: from object to C to equal numbers.

`make importers` runs this where the extra `xgboost` is installed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError
from tests.importers.tables import compare, compare_behind_scaler, table

xgboost = pytest.importorskip("xgboost", reason="the extra xgboost is not installed; `make importers` runs this")
pytest.importorskip("onnxmltools", reason="the extra xgboost is not installed; `make importers` runs this")

X, CLASSES, NUMBERS = table()
QUIET: dict[str, Any] = {"n_estimators": 5, "verbosity": 0}


@pytest.mark.parametrize("classes", [CLASSES, (CLASSES > 0).astype(int)], ids=["three", "two"])
def test_classifiers(classes: Any) -> None:
    model = xgboost.XGBClassifier(**QUIET).fit(X, classes)
    compare(model, X, model.predict(X), model.predict_proba(X))


def test_regressors_and_their_boosters() -> None:
    model = xgboost.XGBRegressor(**QUIET).fit(X, NUMBERS)
    compare(model, X, model.predict(X))
    compare(model.get_booster(), X, model.predict(X))


@pytest.mark.parametrize("suffix", ["ubj", "json"])
def test_a_saved_booster_needs_no_trust(suffix: str, tmp_path: Path) -> None:
    model = xgboost.XGBRegressor(**QUIET).fit(X, NUMBERS)
    path = tmp_path / f"model.{suffix}"
    model.get_booster().save_model(path)
    compare(path, X, model.predict(X))
    assert cli.run(["check", str(path), "--dim", "batch=1"]) == 0


@pytest.mark.parametrize("suffix", ["ubj", "json"])
def test_a_damaged_file_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.{suffix}"
    xgboost.XGBRegressor(**QUIET).fit(X, NUMBERS).get_booster().save_model(path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(MccError, match="cannot load"):
        mccompile.compile(path)


def test_within_a_pipeline_of_scikit_learn() -> None:
    compare_behind_scaler(xgboost.XGBClassifier(**QUIET))


def test_an_example_of_the_wrong_form_is_refused() -> None:
    model = xgboost.XGBRegressor(**QUIET).fit(X, NUMBERS)
    with pytest.raises(MccError, match="has 1 axes"):
        mccompile.compile(model, args=X[0])
