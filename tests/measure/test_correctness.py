"""A wrong result is found, and where it begins."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.base.errors import BadFile, CheckFailed, MccWarning, Problem, WrongUse
from mccompile.check import oracle
from mccompile.check.oracle import EVALUATOR, JUDGE, Oracle
from mccompile.driver import Options
from mccompile.emit import kernels
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.measure.correctness import Tolerance, check
from mccompile.measure.runs import Runs
from mccompile.passes.planning import plan_memory
from mccompile.plan.ir import Function
from mccompile.targets import api as targets
from mccompile.toolchain.run import Model
from tests import small_models
from tests.damaged import damaged
from tests.small_models import save

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
CHANCE = np.random.default_rng(2)
WEIGHTS = CHANCE.standard_normal((64, 8)).astype(np.float32)
EMULATED = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="needs a cross-compiler"
)


def model_of(text: str, path: Path, *weights: np.ndarray) -> Path:
    """Saves a model whose constants are w0, w1 ..."""
    made = parser.parse_model(HEAD + text)
    made.graph.initializer.extend(numpy_helper.from_array(array, f"w{i}") for i, array in enumerate(weights))
    onnx.save(made, path)
    return path


def bytes_of_activations(path: Path, changed: int = 0) -> Path:
    """Two products whose activations are made bytes."""
    first = np.clip(WEIGHTS * 40, -127, 127).astype(np.int8)
    first[3, 5] += changed
    second = np.random.default_rng(1).integers(-127, 128, (8, 4)).astype(np.int8)
    text = """g (float[4,64] x) => (float[4,4] y) {
        q, s, z = DynamicQuantizeLinear(x)
        a = MatMulInteger(q, w0, z)
        b = Cast<to = 1>(a)
        c = Mul(b, s)
        r, t, o = DynamicQuantizeLinear(c)
        d = MatMulInteger(r, w1, o)
        e = Cast<to = 1>(d)
        y = Mul(e, t)
    }"""
    return model_of(text, path, first, second)


def damage(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Replaces a text in the C of every kernel."""
    monkeypatch.setattr(kernels, "printed", damaged(kernels.printed, old, new))


def test_a_right_model_is_right(tmp_path: Path) -> None:
    verdict = check(save(small_models.branches(), tmp_path), Options())
    assert verdict.ok and verdict.first is None
    assert len(verdict.runs) == 3
    assert [output.name for output in verdict.worst()] == ["y", "z"]


@pytest.mark.parametrize("seed", ["", "<seed = 3.0>"])
@pytest.mark.parametrize("drawn", ["RandomNormalLike", "Bernoulli"])
def test_random_numbers_are_compared_with_those_of_their_seed(drawn: str, seed: str, tmp_path: Path) -> None:
    """onnxruntime draws others; without a seed every run would."""
    text = f"g (float[4,8] x) => (float[4,8] y) {{ p = Sigmoid(x) r = {drawn} {seed} (p) y = Add(r, x) }}"
    verdict = check(model_of(text, tmp_path / "m.onnx"), Options(), runs=1)
    assert verdict.ok and {run.reference for run in verdict.runs} == {JUDGE}
    witnesses = {each.name: each for each in verdict.witnesses}
    assert witnesses[JUDGE].agrees
    if oracle.has_runtime():
        assert witnesses["onnxruntime"].silent == "it draws other random numbers"


def test_wrong_random_numbers_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[4,8] x) => (float[4,8] y) { r = RandomNormal<shape=[4,8]>() y = Add(r, x) }"
    damage(monkeypatch, "mcc_random_normal", "mcc_random_uniform")
    assert not check(model_of(text, tmp_path / "m.onnx"), Options(), runs=1).ok


def test_fewer_samples_than_runs_are_told(tmp_path: Path) -> None:
    model, samples = save(small_models.conv(), tmp_path), tmp_path / "two.npz"
    np.savez(samples, x=np.random.default_rng(0).random((2, 2, 6, 6), np.float32))
    with pytest.warns(MccWarning, match="has 2 samples: 2 of the 10 runs"):
        assert len(check(model, Options(), samples, runs=10).runs) == 2
    with pytest.raises(WrongUse, match="0 runs are too few"):
        check(model, Options(), runs=0)


def test_portable_functions_are_built_for_their_target_too(tmp_path: Path) -> None:
    """Its headers ask for the flags of the target, whatever kernels were chosen."""
    model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }", tmp_path / "m.onnx")
    assert check(model, Options(target="native")).ok


def test_the_first_tensor_that_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, "expf(", "1.01f * expf(")  # the Sigmoid
    verdict = check(save(small_models.branches(), tmp_path), Options(), runs=1)
    assert not verdict.ok
    assert verdict.first is not None and verdict.first.tensor == "right"
    assert verdict.first.nodes == ("right/Sigmoid",)


def test_a_difference_that_observing_hides_is_narrowed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage to the fused kernel only: with every inner tensor an output nothing is fused and all is right."""
    made = kernels.printed

    def without_a_bound(function: Function, *more: Any) -> kernels.Printed:
        epilogue = str(function.call.kind.expressions())
        fused = "add" in epilogue and "max" in epilogue
        return (damaged(made, "0.0f", "0.5f") if fused else made)(function, *more)

    monkeypatch.setattr(kernels, "printed", without_a_bound)
    verdict = check(save(small_models.conv(), tmp_path), Options(), runs=1)
    assert not verdict.ok
    assert verdict.first is None or verdict.first.tensor in ("c1", "r1", "c2", "sum")


def test_a_run_that_depends_on_the_one_before_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, "= -", "= y[0] - ")
    with pytest.raises(CheckFailed, match="a second run gives another result"):
        check(save(small_models.passthrough(), tmp_path), Options(), runs=1)


def test_narrow_floats_may_be_rounded_at_other_places(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]> '
    wide = load_proto(parser.parse_model(head + "g (float[3] x) => (float[3] y) { y = Exp(x) }"))
    narrow = load_proto(parser.parse_model(head + "g (float16[3] x) => (float16[3] y) { y = Exp(x) }"))
    target, want = targets.load("generic"), np.array([1.0, 1.0], np.float32)
    near, far = (np.array([1.0, 1.0 + off], np.float32) for off in (2.5e-3, 4e-3))
    assert not Tolerance().suiting(wide, target).compare("y", near, want).ok
    assert Tolerance().suiting(narrow, target).compare("y", near, want).ok
    assert not Tolerance().suiting(narrow, target).compare("y", far, want).ok


def test_what_the_reference_itself_cannot_tell_is_near(tmp_path: Path) -> None:
    """The last bits of a product decide about the sine."""
    pytest.importorskip("onnxruntime")
    text = "g (float[5,64] x) => (float[5,8] y) <float k = {3e5}> { p = MatMul(x, w0) s = Mul(p, k) y = Sin(s) }"
    verdict = check(model_of(text, tmp_path / "m.onnx", WEIGHTS), Options())
    assert not all(run.ok for run in verdict.runs) and verdict.ok and verdict.first is None
    (spread,) = verdict.spreads
    assert spread.covers and spread.sets == correctness.RUNS_TO_TELL
    assert spread.found.mismatches and spread.own.mismatches


@pytest.mark.parametrize("changed", [0, 9])
def test_a_changed_weight_is_wrong_where_activations_are_rounded(
    changed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    original = bytes_of_activations(tmp_path / "original.onnx")
    monkeypatch.setattr(correctness, "Oracle", lambda path, also=(), _="": Oracle(original, also))
    verdict = check(bytes_of_activations(tmp_path / "changed.onnx", changed), Options())
    assert verdict.ok == (changed == 0)


def test_a_changed_weight_is_wrong_where_sums_nearly_cancel_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    text = "g (float[5,64] x) => (float[5,8] y) { p = MatMul(x, w0) q = MatMul(x, w1) y = Sub(p, q) }"
    wrong = WEIGHTS.copy()
    wrong[3, 5] += 0.01
    original, other = WEIGHTS.copy(), WEIGHTS * np.float32(1 + 1e-5)
    path = model_of(text, tmp_path / "original.onnx", original, other)
    monkeypatch.setattr(correctness, "Oracle", lambda *asked: Oracle(path, *asked[1:]))
    verdict = check(model_of(text, tmp_path / "changed.onnx", wrong, other), Options())
    assert not verdict.ok and verdict.spreads


STATE = "g (float[2,3] x, float[2,3] s) => (float[2,3] y, float[2,3] t) { a = Add(x, s) t = Tanh(a) y = Neg(t) }"


def test_a_state_is_set_back_for_the_second_run_and_compared(tmp_path: Path) -> None:
    verdict = check(model_of(STATE, tmp_path / "m.onnx"), Options(state={"t": "s"}), runs=3)
    assert verdict.ok and len(verdict.runs) == 3
    assert [output.name for output in verdict.runs[0].outputs] == ["y", "t"]


def test_a_wrong_state_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right outputs, but what the next run begins with is not."""
    monkeypatch.setattr(Model, "save_state", lambda self: b"\1" * self.report.state_bytes)
    monkeypatch.setattr(Model, "load_state", lambda self, state: None)
    verdict = check(model_of("g (float[3] x, float[3] s) => (float[3] y, float[3] t) { y = Neg(x) t = Add(x, s) }",
                             tmp_path / "m.onnx"), Options(state={"t": "s"}), runs=1)  # fmt: skip
    assert [(output.name, output.ok) for output in verdict.runs[0].outputs] == [("y", True), ("t", False)]


@pytest.mark.parametrize("target", ["generic", pytest.param("cortex-m4", marks=EMULATED)])
def test_a_run_for_the_states_alone_that_leaves_out_what_these_need_is_found(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = model_of(STATE, tmp_path / "m.onnx"), Options(state={"t": "s"}, advance=True, target=target)
    assert check(path, options, runs=2).ok
    monkeypatch.setattr(plan_memory, "for_outputs", lambda program: [True] * len(program.body))
    with pytest.raises(CheckFailed, match="for the states alone gives another state"):
        check(path, options, runs=1)


def test_a_state_of_free_size_is_carried_at_each_size(tmp_path: Path) -> None:
    path = model_of(STATE.replace("2,3", "n,3"), tmp_path / "m.onnx")
    verdict = check(path, Options(state={"t": "s"}, dims={"n": (1, 5)}), runs=1)
    assert verdict.ok and [run.name.split("=")[1] for run in verdict.runs] == ["5)", "5)", "1)", "1)", "3)", "3)"]


def test_what_is_observed_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, "expf(", "1.01f * expf(")  # the Sigmoid
    verdict = check(save(small_models.branches(), tmp_path), Options(observe=("right",)), runs=1)
    assert {output.name: output.ok for output in verdict.runs[0].outputs}["right"] is False


def test_sizes_that_the_reference_does_not_run_are_left_out_and_said(tmp_path: Path) -> None:
    text = "g (float[a,3] x, float[b,3] z) => (float[c,3] y) { y = Add(x, z) }"

    def refusing(self: Oracle, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if len(inputs["x"]) == 1:
            raise CheckFailed(Problem("no", "", "too small"))
        return {"y": inputs["x"] + inputs["z"]}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oracle, "run", refusing)
        verdict = check(model_of(text, tmp_path / "m.onnx"), Options(dims={"a": (1, 4), "b": (1, 4)}))
    assert verdict.ok and [run.skipped for run in verdict.runs] == ["", "too small", ""]


def test_a_sum_that_is_more_accurate_than_the_reference_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    run = Oracle.run

    def inaccurate(self: Oracle, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: value * np.float32(1.002) for name, value in run(self, inputs).items()}

    monkeypatch.setattr(Oracle, "run", inaccurate)
    verdict = check(model_of("g (float[5,64] x) => (float[5,8] y) { y = MatMul(x, w0) }", tmp_path / "m.onnx", WEIGHTS),
                    Options(), runs=1)  # fmt: skip
    assert verdict.ok and not verdict.spreads
    assert verdict.runs[0].decided_by("y") == "onnxruntime is further from float64, says our judge"


@pytest.mark.usefixtures("either_reference")
def test_doubles_of_either_reference(tmp_path: Path) -> None:
    text = "g (float[5,64] x) => (float[5,8] y) { c = Constant<value_float = 0.1>() p = MatMul(x, w0) y = Mul(p, c) }"
    x = CHANCE.standard_normal((5, 64)).astype(np.float32)
    found = Oracle(model_of(text, tmp_path / "m.onnx", WEIGHTS)).doubles({"x": x})
    assert found is not None and found["y"].dtype == np.float64
    right = x.astype(np.float64) @ WEIGHTS.astype(np.float64) * np.float64(np.float32(0.1))
    np.testing.assert_allclose(found["y"], right, rtol=1e-12)


@pytest.mark.parametrize("shift", [0, 1])
def test_a_label_that_the_reference_never_gives_is_wrong(
    shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two columns are equal but for the last bits: the reference moves many labels by itself, never to 2."""
    pytest.importorskip("onnxruntime")
    columns = np.repeat(WEIGHTS[:, :1], 3, 1) * np.array([1, 1 + 1e-7, 0.1], np.float32)
    text = """g (float[400,64] x) => (int64[400] y)
        { p = MatMul(x, w0) a = Abs(p) y = ArgMax<axis = 1, keepdims = 0>(a) }"""
    path = model_of(text, tmp_path / "m.onnx", columns)
    run = Runs.__call__

    def moved(self: Runs, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = run(self, inputs)["y"]
        return {"y": np.where(np.arange(400) == 7, 2, found) if shift else found}

    monkeypatch.setattr(Runs, "__call__", moved)
    verdict = check(path, Options())
    assert verdict.ok == (shift == 0) and verdict.spreads[0].own.mismatches > 20


def test_stored_outputs_of_another_model_are_not_reported_as_a_defect(tmp_path: Path) -> None:
    path = model_of("g (float[3] x) => (float[3] y) { y = Neg(x) }", tmp_path / "m.onnx")
    x = np.ones(3, np.float32)
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    (tmp_path / "output_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    verdict = check(path, Options(), tmp_path)
    assert not verdict.ok and verdict.fix.startswith("store the outputs again")


def test_constant_outputs_are_said_to_prove_little(tmp_path: Path) -> None:
    text = "g (float[3] x) => (float[3] y, float[3] z) { d = Sub(x, x) y = Mul(d, x) z = Neg(x) }"
    verdict = check(model_of(text, tmp_path / "m.onnx"), Options())
    assert verdict.ok and list(verdict.remarks) == ["y"]


def test_a_tolerance_that_is_too_narrow_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(Oracle, "others", lambda self: iter(()))
    monkeypatch.setattr(Oracle, "doubles", lambda self, inputs: None)
    text = "g (float[5,64] x) => (float[5,8] y) { p = MatMul(x, w0) y = Softmax(p) }"
    verdict = check(model_of(text, tmp_path / "m.onnx", WEIGHTS), Options(), tolerance=Tolerance(0.0, 0.0, 0.0))
    assert not verdict.ok and verdict.fix.startswith("leave out --rtol")


RESIZE = """g (int32[1,1,4,3] x) => (int32[1,1,10,6] y) <float[4] s = {1.0, 1.0, 2.5, 2.0}> {
    y = Resize <mode = "linear"> (x, , s)
}"""


def test_integers_that_the_standard_leaves_open_may_be_those_on_either_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime truncates what lies between elements, C rounds it; a result that is off by 2 is wrong."""
    pytest.importorskip("onnxruntime")
    path = model_of(RESIZE, tmp_path / "m.onnx")
    verdict = check(path, Options(), runs=1)
    assert verdict.ok and verdict.runs[0].left_open == {"y"}
    assert verdict.runs[0].decided_by("y") == "as the standard allows, says our judge; onnxruntime differs"
    damage(monkeypatch, "(s0)", "(2 + s0)")
    assert not check(path, Options(), runs=1).ok


def test_without_onnxruntime_it_is_asked_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "find_spec", lambda name: None)
    damage(monkeypatch, "expf(", "1.01f * expf(")
    verdict = check(save(small_models.branches(), tmp_path), Options(), runs=1)
    assert not verdict.ok and verdict.fix.startswith("install onnxruntime")


def test_a_shape_that_only_onnxruntime_gives_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 1.32 it took a negative axis of an empty tensor for no axis."""

    class Before(Oracle):
        def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
            return {"y": np.zeros((2, 2, 0, 0), np.float16)}

    monkeypatch.setattr(correctness, "Oracle", Before)
    text = "g (float16[2,2,0,0] x) => (float16[2,2,1,0] y) { y = ReduceMax <axes = [2, -4], keepdims = 1> (x) }"
    verdict = check(model_of(text, tmp_path / "m.onnx"), Options(), runs=1)
    assert verdict.ok and verdict.runs[0].backed == {"y": EVALUATOR}
    assert "evaluator; onnxruntime" in verdict.runs[0].decided_by("y")


def test_our_judge_backs_a_shape_that_onnxruntime_does_not_give(tmp_path: Path) -> None:
    """onnxruntime takes no dilation into account there."""
    how = 'kernel_shape = [3, 3], auto_pad = "SAME_UPPER", dilations = [2, 2], strides = [2, 2]'
    text = f"g (float[1,2,9,9] x) => (float[1,2,5,5] y) {{ y = AveragePool <{how}> (x) }}"
    made = parser.parse_model(HEAD.replace("17", "19") + text)
    verdict = check(save(made, tmp_path), Options(), runs=1)
    assert verdict.ok and verdict.runs[0].backed == {"y": JUDGE}


def test_text_of_floats_may_have_the_digits_of_another_witness(tmp_path: Path) -> None:
    """onnxruntime writes eight digits."""
    text = "g (float[40] x) => (string[40] y) { y = Cast <to = 8> (x) }"
    verdict = check(model_of(text, tmp_path / "m.onnx"), Options(), runs=1)
    assert verdict.ok and verdict.runs[0].backed == {"y": EVALUATOR}


def test_data_without_a_finite_element_is_refused(tmp_path: Path) -> None:
    model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", tmp_path / "m.onnx")
    file, samples = tmp_path / "x.npz", np.array([[np.nan, np.inf]] * 3, np.float32)
    np.savez(file, x=samples)
    with pytest.raises(BadFile, match="6 of 6 values of x are NaN or infinite"):
        check(model, Options(), data=file)
    samples[1, 0] = 1
    np.savez(file, x=samples)
    assert check(model, Options(), data=file).ok


def test_results_beyond_a_bound_are_told_with_a_bound_that_suits(tmp_path: Path) -> None:
    path = model_of("g (float[6] x) => (int64[1,n] y) { y = NonZero(x) }", tmp_path / "m.onnx")
    with pytest.raises(CheckFailed, match=r"sizes above --bound y=3\n.*--bound y=6"):
        check(path, Options(bounds={"y": (3,)}))
    assert check(path, Options(bounds={"y": (6,)})).ok
