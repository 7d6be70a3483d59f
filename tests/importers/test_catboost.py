"""Models of CatBoost: from object to C to equal numbers.

`make importers` runs this where the extra `catboost` is installed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError
from tests.importers.tables import compare, table

catboost = pytest.importorskip("catboost", reason="the extra catboost is not installed; `make importers` runs this")

X, CLASSES, NUMBERS = table()
KINDS = ("cbm", "json")
QUIET: dict[str, Any] = {"iterations": 5, "verbose": 0, "allow_writing_files": False}


@pytest.mark.parametrize("classes", [CLASSES, (CLASSES > 0).astype(int)], ids=["three", "two"])
def test_classifiers(classes: Any) -> None:
    model = catboost.CatBoostClassifier(**QUIET).fit(X, classes)
    compare(model, X, model.predict(X), model.predict_proba(X).astype(float))


def test_regressors_and_their_files(tmp_path: Path) -> None:
    model = catboost.CatBoostRegressor(**QUIET).fit(X, NUMBERS)
    compare(model, X, model.predict(X))
    for kind in KINDS:
        path = tmp_path / f"model.{kind}"
        model.save_model(str(path), format=kind)
        compare(path, X, model.predict(X))
        assert cli.run(["check", str(path), "--dim", "batch=1"]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.{kind}"
    catboost.CatBoostRegressor(**QUIET).fit(X, NUMBERS).save_model(str(path), format=kind)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    with pytest.raises(MccError, match="CatBoost cannot load"):
        mccompile.compile(path)


def test_what_catboost_cannot_write_is_passed_on() -> None:
    model = catboost.CatBoostClassifier(**QUIET).fit(X, CLASSES > 0)
    with pytest.raises(MccError, match=r"(?s)CatBoost cannot write the model as ONNX.*labels that are numbers or text"):
        mccompile.compile(model)
    with pytest.raises(MccError, match="args and dynamic say nothing"):
        mccompile.compile(model, args=X[:1])
