"""The C of a few small models as it is to be read, whole. `make golden` rewrites it; review the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import small_models
from tests.small_models import compiled

EXPECTED = Path(__file__).parent / "expected"
NAMES = ("branches", "conv", "mlp")


@pytest.mark.parametrize("name", NAMES)
def test_c_is_as_expected(name: str, request: pytest.FixtureRequest) -> None:
    files = compiled(small_models.ALL[name]()).files
    wrong = []
    for file in (f"{name}.h", f"{name}.c", f"{name}_kernels.c"):
        path = EXPECTED / file
        text = files[file].decode()
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        if not path.is_file() or path.read_text() != text:
            wrong.append(file)
    assert not wrong, "the C has changed; look at it after `make golden`, with git diff"


def test_every_expected_file_is_compared() -> None:
    known = {f"{name}{end}" for name in NAMES for end in (".h", ".c", "_kernels.c")}
    assert {path.name for path in EXPECTED.iterdir()} == known
