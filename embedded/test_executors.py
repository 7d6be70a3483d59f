"""What is many jobs gives the same from a cluster that loses a worker half-way as from one process of its own."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mccompile.cli.checks import Check, CheckSettings, checked
from mccompile.driver import Options
from mccompile.measure.verdict import DEFAULT
from mccompile.measure.workers import opener, results
from tests import onnx_cases, small_models
from tests.exporters import jobs as exporters
from tests.exporters.spelling import FAMILIES
from tests.measure.test_workers import cluster, killing
from tests.test_zoo import add
from tests.zoo_models import Job, row_of

CASES = ("test_add", "test_relu", "test_if", "test_loop11", "test_string_concat", "test_nonzero_example")


def checks(folder: Path) -> tuple[Sequence[Any], Callable[[Any], Any]]:
    models = [small_models.save(made(), folder) for made in (small_models.mlp, small_models.conv)]
    how = CheckSettings(None, 0, 1, DEFAULT, None, None, False)
    return [Check(model, Options(target=t), how) for model in models for t in ("generic", "cortex-m4")], checked


def zoo(folder: Path) -> tuple[Sequence[Any], Callable[[Any], Any]]:
    add(small_models.conv(), folder, error=0.01)
    add(small_models.mlp(), folder)
    add(small_models.passthrough(), folder)
    asked = Namespace(
        target="generic",
        prefer="",
        threads=1,
        rows="auto",
        plain=False,
        sliced=False,
        outside=False,
        pools=False,
        poison=False,
        roundtrip=False,
    )
    return [Job(path.parent, asked, {}) for path in sorted(folder.glob("*/model.onnx"))], row_of


def suite(folder: Path) -> tuple[Sequence[Any], Callable[[Any], Any]]:
    how = onnx_cases.How(("-O1",), frozenset(), True, False, 60)
    return [onnx_cases.Case(name, how) for name in CASES], onnx_cases.tried


def spellings(folder: Path) -> tuple[Sequence[Any], Callable[[Any], Any]]:
    return [exporters.Job(family, 0, False) for family in sorted(FAMILIES)[:4]], exporters.judged


def without_times(found: Any) -> Any:
    return replace(found, figures=found.figures[:3]) if hasattr(found, "figures") else found


def lost(one: Any) -> Any:
    raise AssertionError(str(one))


@pytest.mark.parametrize("make", [checks, zoo, suite, spellings])
def test_a_worker_that_is_killed_changes_nothing(
    make: Callable[[Path], tuple[Sequence[Any], Callable[[Any], Any]]], tmp_path: Path
) -> None:
    jobs, work = make(tmp_path)
    serial = results(jobs, work, lambda: ThreadPoolExecutor(1), lost)
    told: list[str] = []
    with cluster() as made:
        opened = opener(f"dask://{made.scheduler_address.removeprefix('tcp://')}")
        found = results(jobs, work, opened, lost, told=killing(made, told))
    assert list(map(without_times, found)) == list(map(without_times, serial))
    assert len(told) == len(jobs) > 2
