"""The C of a small model as it is to be read, whole. `make golden` rewrites it; review the difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.small_models import compiled, floats, model, node

EXPECTED = Path(__file__).parent / "expected"
FILES = ("shown.h", "shown.c", "shown_kernels.c")
NODES = [
    node("Sigmoid", "in/put:0", "right"),
    node("Conv", "in/put:0 w b", "c", pads=[1, 1, 1, 1]),
    node("Relu", "c", "left"),
    node("Concat", "left right", "joined", axis=1),
    node("Transpose", "joined", "turned", perm=[0, 2, 3, 1]),
    node("Split", "turned sizes", "first second", axis=3),
    node("Mul", "first first", "out.put"),
    node("Flatten", "second", "flat", axis=1),
    node("MatMul", "flat v", "m"),
    node("Tanh", "m", "z"),
]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """A fused convolution, parts of a concat in their place, views, a copy, a fused product, two outputs, and names
    that are not C identifiers."""
    weights = {"w": floats(0, 2, 2, 3, 3), "b": floats(1, 2), "v": floats(2, 108, 3)}
    outs = [("out.put", (1, 6, 6, 1)), ("z", (1, 3))]
    sizes = {"sizes": np.array([1, 3], np.int64)}
    return compiled(model("shown", NODES, [("in/put:0", (1, 2, 6, 6))], outs, weights | sizes)).files


@pytest.mark.parametrize("name", FILES)
def test_c_is_as_expected(name: str, files: dict[str, bytes], request: pytest.FixtureRequest) -> None:
    path, text = EXPECTED / name, files[name].decode()
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    same = path.is_file() and path.read_text() == text
    assert same, "the C has changed; look at it after `make golden`, with git diff"


def test_every_expected_file_is_compared() -> None:
    assert {path.name for path in EXPECTED.iterdir()} == set(FILES)
