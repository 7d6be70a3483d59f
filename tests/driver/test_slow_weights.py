"""Where weights come from a slow memory, plans that read them again for each row pay for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.driver import Options, compile, settled
from mccompile.emit.row_costs import costs_of_rows
from tests.small_models import save
from tests.small_quantized import convolutions


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(convolutions(12, [(8, 3, 1), (0, 3, 1), (4, 1, 1)]), tmp_path_factory.mktemp("model"))


def slow(folder: Path, cycles: float) -> str:
    path = folder / f"m4_{cycles}.toml"
    path.write_text(f'inherits = "cortex-m4"\n[machine]\nweight_byte = {cycles}\n')
    return str(path)


def test_weights_are_read_once_where_that_is_dear(model: Path, tmp_path: Path) -> None:
    usual = compile(model, Options(target="cortex-m4"))
    assert costs_of_rows(usual.plan)
    near = compile(model, Options(target=slow(tmp_path, 0.01)))
    assert costs_of_rows(near.plan)
    assert near.estimate.time > usual.estimate.time
    options = Options(target=slow(tmp_path, 500))
    far = compile(model, options)
    assert not costs_of_rows(far.plan)
    assert compile(model, settled(model, options)).identity == far.identity


def test_memory_that_is_asked_for_is_not_given_up(model: Path, tmp_path: Path) -> None:
    enough = compile(model, Options(target="cortex-m4")).plan.arena_bytes
    kept = compile(model, Options(target=slow(tmp_path, 500), budget={"ram": enough}))
    assert kept.plan.arena_bytes <= enough
