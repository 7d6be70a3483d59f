"""What the line on a plan's neighbours says is what its options lead to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mccompile.driver import Options, compile, neighbours
from mccompile.targets.api import LEAST
from tests.small_models import save
from tests.small_quantized import convolutions

LINE = r"others   faster: --prefer time, (\S+) times as long, arena (\d+); "
LINE += r"smaller: --budget ram=min, (\S+) times as long, arena (\d+)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(convolutions(12, [(8, 3, 1), (0, 3, 1), (4, 1, 1)]), tmp_path_factory.mktemp("model"))


def test_it_says_what_the_options_lead_to(model: Path) -> None:
    options = Options(target="cortex-m4", prefer="balanced")
    own = compile(model, options)
    (line,) = neighbours(model, options, own)
    found = re.fullmatch(LINE, line)
    assert found, line
    others = [{"prefer": "time"}, {"budget": {"ram": LEAST}}]
    for (time, arena), asked in zip([found.group(1, 2), found.group(3, 4)], others, strict=True):
        other = compile(model, Options(target="cortex-m4", **asked))  # type: ignore[arg-type]
        assert int(arena) == other.plan.arena_bytes
        assert float(time) == pytest.approx(other.estimate.time / own.estimate.time, abs=0.006)


@pytest.mark.parametrize("asked", [{"prefer": "time"}, {"prefer": "flash"}, {"budget": {"ram": LEAST}}])
def test_without_a_search_no_other_plan_is_made(
    asked: dict[str, object], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(target="cortex-m4", **asked)  # type: ignore[arg-type]
    own = compile(model, options)
    monkeypatch.setattr("mccompile.driver.nearby.compile", lambda *_: pytest.fail("it compiles once more"))
    assert not neighbours(model, options, own)
