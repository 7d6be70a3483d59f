"""Models of LightGBM: from object to C to equal numbers.

`make importers` runs this where the extra `lightgbm` is installed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError
from tests.importers.tables import compare, compare_behind_scaler, table

lightgbm = pytest.importorskip("lightgbm", reason="the extra lightgbm is not installed; `make importers` runs this")
pytest.importorskip("onnxmltools", reason="the extra lightgbm is not installed; `make importers` runs this")

X, CLASSES, NUMBERS = table()
QUIET: dict[str, Any] = {"n_estimators": 5, "verbose": -1}


@pytest.mark.parametrize("classes", [CLASSES, (CLASSES > 0).astype(int)], ids=["three", "two"])
def test_classifiers(classes: Any) -> None:
    model = lightgbm.LGBMClassifier(**QUIET).fit(X, classes)
    compare(model, X, model.predict(X), model.predict_proba(X))


def test_regressors_and_their_boosters() -> None:
    model = lightgbm.LGBMRegressor(**QUIET).fit(X, NUMBERS)
    compare(model, X, model.predict(X))
    compare(model.booster_, X, model.predict(X))


def test_a_saved_booster_is_loaded_where_it_is_trusted(tmp_path: Path) -> None:
    model = lightgbm.LGBMRegressor(**QUIET).fit(X, NUMBERS)
    path = tmp_path / "model.txt"
    model.booster_.save_model(path)
    compare(path, X, model.predict(X), trust=True)
    assert cli.run(["check", str(path), "--dim", "batch=1"]) == 2
    assert cli.run(["check", str(path), "--dim", "batch=1", "--trust"]) == 0


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    lightgbm.LGBMRegressor(**QUIET).fit(X, NUMBERS).booster_.save_model(path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(MccError, match="cannot load"):
        mccompile.compile(path, trust=True)


def test_within_a_pipeline_of_scikit_learn() -> None:
    compare_behind_scaler(lightgbm.LGBMClassifier(**QUIET))


def test_an_example_of_the_wrong_form_is_refused() -> None:
    model = lightgbm.LGBMRegressor(**QUIET).fit(X, NUMBERS)
    with pytest.raises(MccError, match="has 1 axes"):
        mccompile.compile(model, args=X[0])
