"""Values that are not finite in the fuzzer: it sees where they spread and where they are lost, and is silent where the
rule leaves open what comes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from mccompile.driver import Options
from mccompile.emit.package import Package
from tests.fuzz import __main__ as fuzzer
from tests.fuzz import machines, oracle, strays, subject, trial
from tests.fuzz.builder import Input
from tests.fuzz.subject import Subject
from tests.fuzz.trial import Trial

NAN, INF = np.nan, np.inf
F32 = np.dtype(np.float32)
BUILD = machines.Build(machines.MACHINES[0], "gcc", ("-std=c99", "-O0", *machines.WARNINGS))


def graph(text: str, *shape: int) -> Subject:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    return Subject(made, (Input("x", F32, shape, "exact"),))


ROWS = graph(
    "(float[3,4] x) => (float[3,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> { m = MatMul (x, w) y = Relu (m) }", 3, 4
)


def answered(made: Subject, x: np.ndarray, kind: str = strays.LOST) -> strays.Strays | None:
    return strays._answered(made, [{"x": x}], kind, False)


def given(value: float) -> np.ndarray:
    x = np.ones((3, 4), np.float32)
    x[1, 2] = value
    return x


def test_other_rows_are_compared_and_those_that_are_reached_too() -> None:
    found = answered(ROWS, given(NAN))
    assert found is not None
    answers = found.wanted.runs[0]["y"]
    right = np.maximum(given(NAN) @ np.arange(1, 9, dtype=np.float32).reshape(4, 2), 0)
    spread, lost = right.copy(), right.copy()
    spread[2, 0], lost[1, 1] = NAN, 4
    assert not strays.differs(right, answers, strays.LOST)
    assert strays.differs(spread, answers, strays.LOST)
    assert not strays.differs(lost, answers, strays.LOST)  # a sum may be -infinity as well, of which Relu makes 0
    plain = graph("(float[3,4] x) => (float[3,4] y) { y = Neg (x) }", 3, 4)
    found = answered(plain, given(INF))
    assert found is not None and strays.differs(-given(7), found.wanted.runs[0]["y"], strays.LOST)


def test_products_with_zeros_may_be_left_out() -> None:
    zeros = graph("(float[3,4] x) => (float[3,2] y) <float[4,2] w = {1,2,3,4,0,6,7,8}> { y = MatMul (x, w) }", 3, 4)
    found = answered(zeros, given(INF))
    assert found is not None
    answers = found.wanted.runs[0]["y"]
    with np.errstate(invalid="ignore"):
        got = given(INF) @ np.float32([[1, 2], [3, 4], [0, 6], [7, 8]])
    assert np.isnan(got[1, 0])
    got[1, 0] = 11
    assert not strays.differs(got, answers, strays.LOST)
    got[0, 0] = NAN
    assert strays.differs(got, answers, strays.LOST)


def test_a_sum_that_is_not_finite_is_no_number() -> None:
    sums = graph("(float[3,4] x) => (float[3,1] y) <int64[1] a = {1}> { y = ReduceSum (x, a) }", 3, 4)
    found = answered(sums, given(INF))
    assert found is not None
    answers = found.wanted.runs[0]["y"]
    assert not strays.differs(np.float32([[4], [NAN], [4]]), answers, strays.LOST)
    assert strays.differs(np.float32([[4], [3], [4]]), answers, strays.LOST)


@pytest.mark.parametrize("value", [NAN, 1e30])
def test_what_nothing_says_anything_of_is_left_out(value: float) -> None:
    """Which integer they are cast to."""
    cast = graph("(float[3,4] x) => (int32[3,4] y) { y = Cast <to = 6> (x) }", 3, 4)
    assert answered(cast, given(value)) is None


def test_denormals_are_compared_like_other_values() -> None:
    inverse = graph("(float[3,4] x) => (float[3,4] y) { y = Reciprocal (x) }", 3, 4)
    found = answered(inverse, given(-0.0), strays.SMALL)
    assert found is not None
    answers = found.wanted.runs[0]["y"]
    of_either_sign = given(INF)
    assert not strays.differs(of_either_sign, answers, strays.SMALL)
    assert strays.differs(given(5), answers, strays.SMALL)


def test_inputs_and_weights_get_some_and_a_seed_repeats_them() -> None:
    runs = ROWS.runs([1, 2])
    in_inputs, in_weights = (strays.put(ROWS, runs, [1, 5], strays.LOST, where) for where in (False, True))
    assert in_inputs is not None and in_weights is not None
    assert not all(np.isfinite(run["x"]).all() for run in in_inputs.runs)
    assert not np.isfinite(subject.weights(in_weights.subject.model)["w"]).all()
    again = strays.put(ROWS, runs, [1, 5], strays.LOST, False)
    assert again is not None
    pairs = zip(in_inputs.runs, again.runs, strict=True)
    assert all(np.array_equal(a["x"], b["x"], True) for a, b in pairs)


def test_a_program_that_spreads_them_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each result of this defect takes in the last element of all, times 0."""
    assert verdict(tmp_path) == trial.OK
    compile_graph = trial.compile_graph

    def broken(*arguments: Any) -> Package:
        package = compile_graph(*arguments)
        name = f"{package.plan.prefix}_kernels.c"
        text = package.files[name].decode()
        assert "-e0[i0]" in text
        wrong = text.replace("-e0[i0]", "-e0[i0] + 0 * e0[6]").encode()
        return package.with_files(package.files | {name: wrong})

    monkeypatch.setattr(trial, "compile_graph", broken)
    assert verdict(tmp_path) == trial.WRONG


def verdict(folder: Path) -> str:
    made = graph("(float[3,4] x) => (float[3,4] y) { y = Neg (x) }", 3, 4)
    runs = [{"x": given(1)}] * 2
    program = Trial(1, 2, 0, made, Options(), BUILD, runs, oracle.wanted(made, runs))
    found = answered(made, given(INF))
    assert found is not None
    found = strays.Strays(found.kind, False, made, [{"x": given(INF)}] * 2, oracle.Wanted(found.wanted.runs * 2, False))
    program = fuzzer.with_strays(program, found)
    trial.run([program], folder / "batch")
    assert program.verdict is not None
    return program.verdict.kind


@pytest.mark.parametrize(("bias", "known"), [("", True), (", b", False)])
def test_a_recurrence_with_a_bias_is_open(bias: str, known: bool) -> None:
    made = graph(
        f"""(float[3,1,1] x) => (float[3,1,1,1] y)
        <float[1,4,1] w = {{1,1,1,1}}, float[1,4,1] r = {{1,1,1,1}}, float[1,8] b = {{1,1,1,1,1,1,1,1}}>
        {{ y = LSTM <hidden_size = 1> (x, w, r{bias}) }}""",
        3,
    )
    assert (answered(made, np.array([0, NAN, 1], np.float32).reshape(3, 1, 1)) is not None) == known
