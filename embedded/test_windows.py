"""Generated C, built by MinGW for Windows, runs under wine: right, and where it calls nothing of the C library with the
bits that it has on Linux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.models import path_of
from mccompile.check.inputs import random_sets
from mccompile.driver import Options, compile
from mccompile.frontend.load import load
from mccompile.measure.bitwise import digest
from mccompile.measure.building import build
from mccompile.measure.correctness import check
from mccompile.targets import api
from tests.measure.bits_table import PLAIN

WINDOWS = """description = "Windows on x86-64"
inherits = "{base}"
compiler = "x86_64-w64-mingw32-gcc"
run = "wine"
"""


@pytest.fixture(autouse=True, scope="module")
def _wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINEPREFIX", str(tmp_path_factory.mktemp("wine")))
        patch.setenv("WINEDEBUG", "-all")
        yield


@pytest.fixture(params=["generic", "x86-64-v3"])
def targets(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A target of Linux, and the same one of Windows."""
    base: str = request.param
    if not api.runs_here(api.load(base)):
        pytest.skip(f"this machine is no {base}")
    windows = tmp_path / "windows.toml"
    windows.write_text(WINDOWS.format(base=base))
    return base, str(windows)


@pytest.mark.parametrize("model", ["digits", "text", "integers", "recurrent"])
def test_results_are_right(model: str, targets: tuple[str, str], tmp_path: Path) -> None:
    assert check(path_of(model, tmp_path), Options(target=targets[1]), runs=1).ok


@pytest.mark.parametrize("model", [*PLAIN, "quantized"])
def test_bits_are_those_on_linux(model: str, targets: tuple[str, str], tmp_path: Path) -> None:
    path = path_of(model, tmp_path)
    inputs = [each.inputs for each in random_sets(load(path), 0, 2)]
    digests = set()
    for target in targets:
        options = Options(target=target)
        built = build(compile(path, options), options.resolved_target())
        digests.add(digest([built.run(each) for each in inputs]))
    assert len(digests) == 1
