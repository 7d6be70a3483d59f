"""Which witnesses agree with a model's outputs, and what rounding explains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from onnx import parser

from mccompile.check.compare import Comparison, compare_values
from mccompile.check.oracle import JUDGE, Oracle
from mccompile.check.witnesses import MOST_OF_JUDGE, Witness, closest, shaken, witnesses
from tests.small_models import save

HEAD = '<ir_version: 9, opset_import: ["": 19, "com.microsoft": 1]>\n'
TIE = "g (float[3] x) => (float[3] y) <float t = {0.1}> { m = Mul (x, t) y = Round (m) }"


def compare(name: str, got: Any, said: Any) -> Comparison:
    return compare_values(name, got, said)


def weigh(name: str, got: Any, ways: Sequence[Any]) -> Comparison:
    return compare(name, got, closest(got, ways))


def oracle(text: str, folder: Path) -> Oracle:
    return Oracle(save(parser.parse_model(HEAD + text), folder))


def asked(found: Oracle, inputs: dict[str, Any], got: dict[str, Any], macs: int = 0) -> dict[str, Witness]:
    return {each.name: each for each in witnesses(found, inputs, got, macs, weigh, dict)}


def test_witnesses_that_disagree_are_named(tmp_path: Path) -> None:
    """ONNX's evaluator divides by 5.1 - 1, the standard by the length of the resized tensor."""
    form = 'mode = "linear", coordinate_transformation_mode = "align_corners"'
    text = f"g (float[3] x) => (float[5] y) <float[1] s = {{1.7}}> {{ y = Resize <{form}> (x, , s) }}"
    found = oracle(text, tmp_path)
    said = asked(found, {"x": np.array([0, 2, 6], np.float32)}, {"y": np.array([0, 1, 2, 4, 6], np.float32)})
    assert said[JUDGE].agrees
    assert said["onnx reference evaluator"].differs.startswith("y: max abs")


def test_a_witness_that_cannot_is_silent(tmp_path: Path) -> None:
    found = oracle("g (float[2] x) => (float[2] y) { r = RandomNormal <shape = [2]> () y = Add (x, r) }", tmp_path)
    x = np.zeros(2, np.float32)
    said = asked(found, {"x": x}, {"y": x})[JUDGE]
    assert not said.agrees and said.silent == "no witness of our own: RandomNormal without a seed"
    large = asked(found, {"x": x}, {"y": x}, MOST_OF_JUDGE + 1)[JUDGE]
    assert large.silent == "not asked: the model is large"


@pytest.mark.parametrize(("got", "unexplained"), [([0, 1, 1], 0), ([1, 1, 0], 0), ([0, 1, 2], 1), ([0, 3, 0], 1)])
def test_ties_explain_either_neighbour_and_nothing_else(got: list[int], unexplained: int, tmp_path: Path) -> None:
    x = np.array([5, 10, 5], np.float32)
    made = shaken(oracle(TIE, tmp_path), "y", [({"x": x}, np.array(got, np.float32))], dict, compare)
    assert made is not None and made.moved == 2 and made.unexplained == unexplained
    assert made.covers == (unexplained == 0)


RESIZE = 'g (int32[2] x) => (int32[4] y) <float[1] s = {2.0}> { y = Resize <mode = "linear"> (x, , s) }'


@pytest.mark.parametrize(("got", "agrees"), [([0, 0, 2, 3], True), ([0, 1, 3, 3], True), ([0, 0, 4, 3], False)])
def test_our_judge_agrees_with_either_integer_next_to_a_number(got: list[int], agrees: bool, tmp_path: Path) -> None:
    """0, 0.75, 2.25 and 3: how they become integers, the standard does not say."""
    x = np.array([0, 3], np.int32)
    said = asked(oracle(RESIZE, tmp_path), {"x": x}, {"y": np.array(got, np.int32)})[JUDGE]
    assert said.agrees == agrees and not said.silent


def test_what_is_no_tie_is_not_moved(tmp_path: Path) -> None:
    x = np.array([4, 6, 20], np.float32)
    made = shaken(oracle(TIE, tmp_path), "y", [({"x": x}, np.array([1, 1, 2], np.float32))], dict, compare)
    assert made is not None and (made.moved, made.unexplained) == (0, 1)


@pytest.mark.parametrize(("more", "unexplained"), [(0.0, 0), (64.0, 1)])
def test_rounding_before_a_normalization_explains_narrow_floats(more: float, unexplained: int, tmp_path: Path) -> None:
    """Rows are nearly constant: bfloat16 keeps a few values of them, which the normalization spreads."""
    text = """g (bfloat16[8,32] x) => (bfloat16[8,32] y) <float[1] c = {7}, float[1] o = {1}> {
        n = Cast <to = 16> (c) s = Cast <to = 16> (o)
        a = Add (x, n) y = LayerNormalization <axis = -1, epsilon = 1e-12> (a, s) }"""
    found = Oracle(save(parser.parse_model(HEAD.replace("19", "21") + text), tmp_path))
    x = (np.random.default_rng(0).standard_normal((8, 32)) / 50).astype(bfloat16)
    a = (x + bfloat16(7)).astype(np.float64)
    y = (a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True)
    y[0, 0] += more
    made = shaken(found, "y", [({"x": x}, y.astype(bfloat16))], dict, compare)
    assert made is not None and made.unexplained == unexplained and made.moved > 200
