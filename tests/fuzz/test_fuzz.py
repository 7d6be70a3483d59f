"""The fuzzer itself: it repeats, it sees each kind of defect, and it makes failures small."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, parser

from mccompile.base.errors import Problem, UnsupportedModel
from mccompile.base.streaming import Stream
from mccompile.driver import Options
from mccompile.emit.package import Package
from mccompile.targets import api as targets
from tests.fuzz import __main__ as fuzzer
from tests.fuzz import machines, options, oracle, shrink, subject, trial, ways
from tests.fuzz.builder import Input
from tests.fuzz.evaluate import evaluate
from tests.fuzz.report import as_text, text
from tests.fuzz.subject import Subject
from tests.fuzz.trial import Trial
from tests.thorough import some

MODEL = """
    <ir_version: 10, opset_import: ["" : 21]>
    small (float[3,4] x) => (float[4,3] z, float[3,4] r)
    <float[4] c = {1, 2, 3, 0.5}>
    { y = Add(x, c)  z = Transpose<perm = [1, 0]>(y)  r = Relu(x) }
"""
GENERIC = machines.MACHINES[0]
BUILD = machines.Build(GENERIC, "gcc", ("-std=c99", "-O0", *machines.WARNINGS))


PLAIN = Options()


def program(asked: Options = PLAIN, build: machines.Build = BUILD) -> Trial:
    made = Subject(
        parser.parse_model(MODEL),
        (Input("x", np.dtype(np.float32), (3, 4), "exact"),),
        exact=frozenset({"z", "r"}),
    )
    runs = made.runs([1, 2])
    return Trial(1, 2, 0, made, asked, build, runs, oracle.wanted(made, runs))


def verdict(made: Trial, folder: Path) -> str:
    trial.run([made], folder / "batch")
    assert made.verdict is not None
    return made.verdict.kind


def changed(monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> None:
    """Generated kernels with a defect in them."""
    compile_graph = trial.compile_graph

    def broken(*arguments: Any) -> Package:
        package = compile_graph(*arguments)
        name = f"{package.plan.prefix}_kernels.c"
        found = package.files[name].decode()
        assert before in found
        files = {**package.files, name: found.replace(before, after).encode()}
        return package.with_files(files)

    monkeypatch.setattr(trial, "compile_graph", broken)


def test_a_right_program_is_ok(tmp_path: Path) -> None:
    assert verdict(program(), tmp_path) == "ok"


def test_a_wrong_sum_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed(monkeypatch, " + ", " - ")
    assert verdict(program(), tmp_path) == "wrong"


def test_doubles_agree_with_what_is_right_only() -> None:
    """A float sum that loses what doubles keep."""
    made = Subject(
        parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]> lost (float[3] x) => (float y)
            { y = ReduceSum<keepdims = 0>(x) }"""),
        (Input("x", np.dtype(np.float32), (3,), "given", arrays=(np.float32([1e8, 1, -1e8]),)),),
    )
    assert oracle.in_doubles(made, [{"x": made.inputs[0].arrays[0]}], "y", 0) == [1.0, 1.0, 1.0]


def test_doubles_hold_states_in_their_own_type_between_runs() -> None:
    """In float16 y is 5.81 after four runs; in doubles it would be 5.818, and z 168 instead of 166.6."""
    text = """
        <ir_version: 10, opset_import: ["" : 21]> grows (float16[1] x) => (float16[1] y, float16[1] z)
        { y = Cosh(x) z = Softplus(y) }
    """
    x = np.float16([0])
    made = Subject(parser.parse_model(text), (Input("x", x.dtype, (1,), "given", arrays=(x,)),), state={"y": "x"})
    for found in oracle.in_doubles(made, [{"x": x}] * 5, "z", 4):
        assert 166 < found[0] < 167


def test_infinities_that_are_equal_do_not_differ() -> None:
    one, both = np.float32([np.inf, 1.0]), np.float32([np.inf, 1.001])
    assert oracle.explains(both, one, [both])
    assert not oracle.explains(np.float32([np.inf, 1.1]), one, [both])
    assert not oracle.explains(np.float32([0.0, 1.0]), one, [both])


def test_a_name_that_is_not_declared_does_not_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed(monkeypatch, "for (", "undeclared++; for (")
    assert verdict(program(), tmp_path) == "no-build"


def test_a_write_outside_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed(monkeypatch, "y[i0] = ", "y[i0 - 4096] = ")
    assert verdict(program(), tmp_path) == "wrong"  # the program ends, or its guards are damaged


def test_a_read_outside_is_what_sanitizers_see(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed(monkeypatch, "mcc_max_f32(e0[i0]", "mcc_max_f32(e0[i0 + 4096]")
    sanitized = machines.Build(GENERIC, "gcc", (*BUILD.flags, *machines.SANITIZERS))
    assert verdict(program(build=sanitized), tmp_path) == "sanitizer"


@some(2, "way", ways.WAYS)
def test_every_way_of_building(way: str, tmp_path: Path) -> None:
    """Of the first machine that it suits; a way that suits none would never be drawn."""
    if way == "--package cmake" and shutil.which("cmake") is None:
        pytest.skip("cmake is not there")
    machine = next(m for m in machines.MACHINES if ways.WAYS[way].suits(m, Options(target=m.target)))
    if machine not in machines.available():
        pytest.skip(f"nothing runs code for {machine.target} here")
    flags = targets.load(machine.target).cflags
    made = program(Options(target=machine.target), machines.Build(machine, "gcc", (*flags, *machines.WARNINGS)))
    made.way, made.asked = way, ways.target(way, made.options, np.random.default_rng(1))
    assert verdict(made, tmp_path) == "ok"


def test_a_target_with_vectors_is_never_picked_at_run_time() -> None:
    """Together with `generic` it would be, and the blob would be another one's."""
    several = next(name for name, way in ways.WAYS.items() if way.several and way.command is None)
    for target in machines.VECTORS:
        drawn = {ways.target(several, Options(target=target), np.random.default_rng(seed)) for seed in range(40)}
        assert len(drawn) > 1
        assert not any("generic" in asked.split(",") for asked in drawn)


def test_rows_of_one_target_are_batched_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they would all be built as the first of them."""
    _ours, theirs = multiprocessing.Pipe(duplex=False)
    rows = tuple(row for row in machines.MACHINES if row.target == "generic")
    assert len(rows) > 1 and machines.one_each(machines.MACHINES)[0] is rows[0]
    seen: list[tuple[str, ...]] = []

    def noted(batch: list[Trial], _folder: Path) -> None:
        for each in batch:
            seen.append(each.build.machine.levels)
            assert {flag for flag in each.build.flags if flag[:2] == "-O"} <= {*each.build.machine.levels}
            each.verdict = trial.Verdict(trial.OK)

    drawn = [replace(program(build=machines.Build(row, "gcc", ())), number=number) for number, row in enumerate(rows)]
    monkeypatch.setattr(fuzzer, "trials_of", lambda *_: drawn)
    monkeypatch.setattr(trial, "run", noted)
    fuzzer._work(theirs, fuzzer.Source(1, rows), range(2), 0.0, time.monotonic() + 60)
    assert {*seen} == {row.levels for row in rows}


def test_after_its_time_nothing_is_begun_or_made_smaller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A failure at the end took another `--shrink` seconds each."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    source = fuzzer.Source(1, (machines.MACHINES[0],))
    fuzzer._work(theirs, source, range(3), 20.0, time.monotonic() - 1)
    assert ours.recv() is None
    made = program()
    made.verdict = trial.Verdict(trial.WRONG, "")
    monkeypatch.setattr(fuzzer.shrink, "shrunk", lambda *_: pytest.fail("it was made smaller"))
    assert fuzzer._outcome(made, tmp_path, -1.0).verdict.kind == trial.WRONG


def test_a_defect_is_seen_in_what_a_makefile_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_folder = trial.write_folder

    def broken(folder: Path, files: Any) -> None:
        kernels = files["m0_kernels.c"].replace(b" + ", b" - ")
        write_folder(folder, {**files, "m0_kernels.c": kernels})

    monkeypatch.setattr(trial, "write_folder", broken)
    made = program()
    made.way, made.asked = "its Makefile", "generic"
    assert verdict(made, tmp_path) == "wrong"


def with_weights() -> Trial:
    """The code of one network with the blob of another."""
    text = MODEL.replace("float[4] c = {1, 2, 3, 0.5}", "float[1,4] c = {1, 2, 3, 0.5}")
    made = Subject(parser.parse_model(text), (Input("x", np.dtype(np.float32), (3, 4), "exact"),))
    other, runs = subject.trained_anew(made, 1, 2), made.runs([1, 2])
    assert other is not None and other.model != made.model
    return Trial(1, 2, 0, made, PLAIN, BUILD, runs, oracle.wanted(other, runs), renewed=other)


def test_code_runs_with_weights_trained_anew(tmp_path: Path) -> None:
    assert verdict(with_weights(), tmp_path) == "ok"


def test_the_blob_of_the_code_itself_is_wrong_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Trial, "_blob", lambda self, package, prefix: package.files[f"{prefix}.mcb"])
    assert verdict(with_weights(), tmp_path) == "wrong"


def test_operators_that_the_reference_has_wrong_are_asked_of_another() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]> lrn (float[1,3,1,1] x) => (float[1,3,1,1] y) { y = LRN<size = 1>(x) }
    """
    made = Subject(parser.parse_model(text), (Input("x", np.dtype(np.float32), (1, 3, 1, 1), "exact"),))
    x = np.array([8, 4096, 24], np.float32).reshape(1, 3, 1, 1)
    answers = oracle.wanted(made, [{"x": x}]).runs[0]["y"]
    right = x / (1 + 0.0001 * x**2) ** 0.75
    assert any(not oracle.differs(answer, right) for answer in answers)

    assert oracle.wanted(made, [{"x": x}]).disagreed  # ONNX's evaluator normalizes the first channel only


def test_a_tensor_is_inserted_behind_the_last() -> None:
    """The reference puts it in front; onnxruntime has no convolutions of doubles."""
    text = """
        <ir_version: 10, opset_import: ["" : 21]> last (double[1,1,1] x) => (double[1,1,1] y)
        <int64 one = {1}, int64 end = {-1}, double[1,1,1] w = {3}>
        { c = Conv(x, w) s = SequenceConstruct(x) t = SequenceInsert(s, c, one) y = SequenceAt(t, end) }
    """
    made = Subject(parser.parse_model(text), (Input("x", np.dtype(np.float64), (1, 1, 1), "exact"),))
    answers = oracle.wanted(made, [{"x": np.full((1, 1, 1), 2.0)}]).runs[0]["y"]
    assert answers and all(answer == 6 for answer in answers)


def test_a_traceback_is_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: Any) -> Package:
        raise KeyError("v1")

    monkeypatch.setattr(trial, "compile_graph", broken)
    assert verdict(program(), tmp_path) == "crash"


def test_an_error_with_a_reason_is_a_refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refusing(*_: Any) -> Package:
        raise UnsupportedModel(Problem("no"))

    monkeypatch.setattr(trial, "compile_graph", refusing)
    assert verdict(program(), tmp_path) == "refused"


def test_a_failure_becomes_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed(monkeypatch, " + ", " - ")
    failing = program(Options(slices=True, keep_inputs=True))
    assert verdict(failing, tmp_path) == "wrong"
    small = shrink.shrunk(failing, tmp_path / "small", 60.0)
    assert [node.op_type for node in small.subject.model.graph.node] == ["Add"]
    assert small.options == PLAIN
    assert "Add (x, c)" in text(small)


def test_a_seed_makes_the_same_graphs_again() -> None:
    for number in range(4):
        first, second = subject.draw(5, number), subject.draw(5, number)
        assert first.model.SerializeToString() == second.model.SerializeToString()


def test_text_is_read_back_with_its_weights() -> None:
    made = program().subject.model
    again = parser.parse_model(as_text(made))
    assert subject.weights(again)["c"].tolist() == [1, 2, 3, 0.5]


def test_all_results_of_a_node_of_doubles_have_their_type() -> None:
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "h", "c"], hidden_size=2)
    arrays = {"x": np.ones((3, 1, 4)), "w": np.ones((1, 8, 4)), "r": np.ones((1, 8, 2))}
    assert [str(array.dtype) for array in evaluate(node, arrays, 21)] == ["float64"] * 3


def test_scales_may_ask_for_a_size_that_is_no_whole_number() -> None:
    """Five elements times 1.5 are seven, of which the last lies on the last: docs/fuzzing.md."""
    form = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "align_corners"}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **form)
    arrays = {"x": np.arange(5, dtype=np.float32), "scales": np.array([1.5], np.float32)}
    assert evaluate(node, arrays, 19)[0].tolist() == [4 * place // 6 for place in range(7)]


@pytest.mark.parametrize(("weights", "asked"), [("", {None, "f16", "bf16"}), ("<float w = {1}>", {None})])
def test_weights_stay_as_they_are_where_bodies_have_their_own(weights: str, asked: set[str | None]) -> None:
    """Nothing says how far a token that is found by them may be off."""
    made = parser.parse_model(MODEL)
    body = parser.parse_graph(f"body () => (float v) {weights} {{ v = Sqrt({'w' if weights else 'c'}) }}")
    made.graph.node.append(helper.make_node("If", ["t"], ["v"], then_branch=body, else_branch=body))
    drawn = (options.draw(np.random.default_rng(n), Subject(made, ()), GENERIC) for n in range(200))
    assert {found.weights_dtype or None for found in drawn} == asked


@pytest.mark.parametrize("option", ["--having", "--options"])
def test_an_unknown_name_is_refused_with_the_known_ones(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz", option, "Conf,Conv" if option == "--having" else "memo,mem"])
    with pytest.raises(SystemExit):
        fuzzer.main()
    said = capsys.readouterr().err
    assert ("Conf; " if option == "--having" else "memo; ") in said
    assert all(known in said for known in (["Conv", "com.microsoft::QMoE"] if option == "--having" else ["mem,"]))


def test_graphs_have_an_opset_that_knows_what_is_asked_for() -> None:
    asked = frozenset({"Attention", "com.microsoft::QMoE"})
    assert all(subject.draw(7, number, asked).operators & asked for number in range(6))


def test_networks_over_time_are_drawn_and_streamed() -> None:
    made = subject.draw(1, 7, streamed=1.0)
    chosen = options.draw(np.random.default_rng(1), made, GENERIC, frozenset({"stream"}))
    assert made.time == 2 and chosen.stream is not None and chosen.stream.inputs == {"x": 2}


@pytest.mark.parametrize("window", [None, 0, 1])
def test_each_window_of_a_stream_is_compared(window: int | None, tmp_path: Path) -> None:
    """A difference in one of them is wrong."""
    made = Subject(
        parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]> pooled (float[1, 2, 8] x) => (float[1, 2, 6] y)
            { y = MaxPool<kernel_shape = [3]>(x) }"""),
        (Input("x", np.dtype(np.float32), (1, 2, 8), "exact"),),
        exact=frozenset({"y"}),
        time=2,
    )
    runs = made.runs([1, 2])
    found = Trial(1, 2, 0, made, Options(stream=Stream({"x": 2}, 2)), BUILD, runs, oracle.wanted(made, runs))
    if window is not None:
        found.wanted.runs[window]["y"] = [array + 1 for array in found.wanted.runs[window]["y"]]
    assert verdict(found, tmp_path) == ("ok" if window is None else "wrong")
