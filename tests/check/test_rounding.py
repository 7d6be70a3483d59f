"""What rounding to 16 bits may move follows from the roundings of the longest path and the lengths of sums."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pytest
from onnx import parser

from mccompile.base.dtypes import DTYPES
from mccompile.check import rounding
from mccompile.frontend.load import load
from mccompile.graph.ir import Graph
from tests.small_models import save

HEAD = '<ir_version: 8, opset_import: ["": 17]> '


def graph(text: str, folder: Path) -> Graph:
    return load(save(parser.parse_model(HEAD + text), folder))


def test_each_rounding_counts_along_a_path_only(tmp_path: Path) -> None:
    two = graph("g (float16[3] x) => (float16[3] y) { a = Exp(x) b = Abs(x) y = Add(a, b) }", tmp_path)
    assert rounding.of_numbers(two, in_halves=False) == pytest.approx(2.0**-10 + 3 * 2.0**-11 * sqrt(2 / 3))


def test_sums_in_the_type_itself_count_for_their_length(tmp_path: Path) -> None:
    product = "g (float16[4, 24] x, float16[24, 5] w) => (float16[4, 5] y) { y = MatMul(x, w) }"
    found = graph(product, tmp_path)
    assert rounding.of_numbers(found, in_halves=False) == pytest.approx(2.0**-10 + 3 * 2.0**-11 * sqrt(1 / 3))
    assert rounding.of_numbers(found, in_halves=True) == pytest.approx(2.0**-10 + 3 * 2.0**-11 * sqrt(1 / 3 + 24 / 6))


def test_networks_without_narrow_numbers_are_allowed_nothing(tmp_path: Path) -> None:
    wide = graph("g (float[4, 24] x, float[24, 5] w) => (float[4, 5] y) { y = MatMul(x, w) }", tmp_path)
    assert rounding.of_numbers(wide, in_halves=True) == 0.0
    assert rounding.of_weights(wide, DTYPES["bf16"]) == pytest.approx(2 * 3 * 2.0**-8 / sqrt(3))
