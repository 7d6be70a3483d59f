"""A cluster that loses a worker half-way, and a run that is interrupted, end with the rows of one process alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mccompile.driver import Options
from mccompile.kernels.measurements import Database, Measurement
from mccompile.measure.tuning import tune as tuning
from mccompile.measure.workers import Open, opener
from tests.measure.test_workers import cluster, killing
from tests.small_models import save
from tests.small_quantized import convolutions

OPTIONS = Options(target="cortex-m4")


def rows(path: Path, opened: Open, **how: Any) -> list[Measurement]:
    model = save(convolutions(8, [(4, 3, 1), (0, 3, 1), (8, 1, 1)]), path.parent)
    found = tuning.tune(model, OPTIONS, path, opened=opened, **how)
    assert not found.failures and not found.left and found.correlation is not None
    return Database(path).rows()


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> list[Measurement]:
    found = rows(tmp_path_factory.mktemp("serial") / "t.sqlite", lambda: ThreadPoolExecutor(1))
    assert len(found) > 4 and {one.unit for one in found} == {"instructions"}
    return found


def test_a_worker_that_is_killed_costs_no_job(serial: list[Measurement], tmp_path: Path) -> None:
    told: list[str] = []
    with cluster() as made:
        address = made.scheduler_address.removeprefix("tcp://")
        assert rows(tmp_path / "t.sqlite", opener(f"dask://{address}"), progress=killing(made, told)) == serial
    assert len(told) == len({line.partition(" ")[0] for line in told})


def test_an_interrupted_run_goes_on(serial: list[Measurement], tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "t.sqlite"
    with pytest.raises(KeyboardInterrupt):
        rows(path, lambda: ThreadPoolExecutor(1), progress=interrupt)
    before = Database(path).rows()
    assert 0 < len(before) < len(serial)
    assert rows(path, lambda: ThreadPoolExecutor(1)) == serial
