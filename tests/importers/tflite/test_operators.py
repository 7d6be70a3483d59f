"""Every operator: random cases, compiled to C, give what LiteRT's interpreter gives, integers but for one step.

`python -m tests.importers.tflite.run_cases` runs many more.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile
from mccompile.base.errors import MccWarning
from mccompile.importers.tflite.refused import REFUSED, is_refused
from mccompile.importers.tflite.site import registry
from tests.thorough import some

from .build import Net
from .draw import cases
from .run_cases import WITHOUT_CASES, Batch

_SEEDS = range(6)
BUILTINS = {name for name, number in vars(import_module("tflite").BuiltinOperator).items() if isinstance(number, int)}


@some(44, "name", cases())
def test_an_operator_gives_what_the_interpreter_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCCOMPILE_CACHE", str(tmp_path))
    batch = Batch(name, cases()[name], _SEEDS)
    assert batch.count >= len(_SEEDS) // 2, batch.refused
    assert batch.wrong() == []


def test_a_slice_of_nothing_behind_a_new_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX's Reshape takes a size of 0 from its operand, unless it is told to allow zeros."""
    monkeypatch.setenv("MCCOMPILE_CACHE", str(tmp_path))
    net = Net()
    x, y = net.input((2, 3, 4)), net.tensor((1, 0, 3, 4))
    cut = [net.constant(np.array(numbers, np.int32)) for numbers in ((0, 2), (1, 1), (1, 1))]
    net.op("STRIDED_SLICE", [x, *cut], [y], "StridedSliceOptions", NewAxisMask=1)
    with pytest.warns(MccWarning, match="computes nothing"):
        network = mccompile.load(net.file([y]), target="generic")
    assert network(np.zeros((2, 3, 4), np.float32))[0].shape == (1, 0, 3, 4)


def test_every_operator_that_is_written_out_has_cases_or_a_reason() -> None:
    assert set(registry()) == {*cases(), *WITHOUT_CASES}


def test_every_other_operator_of_the_schema_is_refused_with_a_reason() -> None:
    others = BUILTINS - set(registry())
    assert others and all(is_refused(name) for name in others)
    assert not any(is_refused(name) for name in registry())


def test_the_page_lists_every_operator() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tflite.md").read_text(encoding="utf-8")
    covered, _, refused = page.partition("Refused, each with its reason:")
    listed = set(re.findall(r"^\| `(\w+)` \|", covered, re.MULTILINE))
    assert set(re.findall(r"^\| `(\w+)` \|", refused, re.MULTILINE)) == {n for n in BUILTINS if n in REFUSED}
    assert listed == {name.removeprefix("custom ") for name in registry()}, "run_cases --table docs/tflite.md"
