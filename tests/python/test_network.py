"""mccompile.load: a model as a function of this machine."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import mccompile
from mccompile import MccError
from mccompile.base.discovery import CACHE
from mccompile.python import cache
from mccompile.toolchain.session import Session
from tests import small_models
from tests.python.test_compiled import free_batch
from tests.small_models import floats, model, node, random_inputs, reference, save


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["NULL", "self"])
def test_an_input_may_have_a_name_that_means_something_in_c_or_python(name: str) -> None:
    net = mccompile.load(model("named", [node("Neg", name, "y")], [(name, (2,))], [("y", (2,))]))
    np.testing.assert_array_equal(net(**{name: np.array([1, 2], np.float32)})["y"], [-1, -2])


@pytest.mark.parametrize("letter", ["a", "\N{CJK UNIFIED IDEOGRAPH-65E5}"])
def test_a_graph_may_have_a_name_longer_than_a_file(letter: str) -> None:
    made = small_models.conv()
    made.graph.name = letter * 300
    assert mccompile.load(made).input_names == ("x",)


def test_inputs_by_position_or_name_outputs_too() -> None:
    made = small_models.branches()
    inputs = random_inputs(made)
    net = mccompile.load(made)
    want = reference(made, inputs)
    for outputs in (net(*inputs.values()), net(**inputs)):
        assert outputs.names == tuple(want)
        for position, (name, array) in enumerate(want.items()):
            np.testing.assert_allclose(outputs[name], array, rtol=1e-4, atol=1e-5)
            assert outputs[name] is outputs[position]


def test_an_output_that_is_listed_twice_comes_twice() -> None:
    ends = [("y", (2,)), ("z", (2,)), ("y", (2,))]
    net = mccompile.load(model("twice", [node("Neg", "x", "y"), node("Abs", "x", "z")], [("x", (2,))], ends))
    outputs = net(np.array([1, -2], np.float32))
    assert outputs.names == ("y", "z", "y")
    assert [list(array) for array in outputs] == [[-1, 2], [1, 2], [-1, 2]]


def test_a_result_stays_when_the_next_run_comes() -> None:
    net = mccompile.load(small_models.conv())
    x = np.ones((1, 2, 6, 6), np.float32)
    first = net(x)["y"]
    before = first.copy()
    net(-x)
    np.testing.assert_array_equal(first, before)


def test_open_sizes_are_those_of_the_call() -> None:
    made = free_batch()
    net = mccompile.load(made)
    for batch in (1, 3):
        x = np.random.default_rng(0).standard_normal((batch, 4)).astype(np.float32)
        np.testing.assert_allclose(net(x)[0], reference(made, {"x": x})["y"], rtol=1e-5)


def builds(folder: Path) -> list[Path]:
    """What is kept of networks, beside what Jinja makes of templates."""
    return [entry for entry in (folder / "cache").iterdir() if entry.name != "templates"]


def test_free_sizes_run_in_one_build(tmp_path: Path) -> None:
    made = free_batch()
    net = mccompile.load(made, dims={"batch": (1, 5)})
    for batch in (1, 5, 2):
        x = np.random.default_rng(0).standard_normal((batch, 4)).astype(np.float32)
        np.testing.assert_allclose(net(x)[0], reference(made, {"x": x})["y"], rtol=1e-5)
    assert len(builds(tmp_path)) == 1


@pytest.mark.parametrize(("shape", "words"), [((6, 4), "6"), ((0, 4), "0")])
def test_a_size_beyond_its_range_is_named(shape: tuple[int, ...], words: str) -> None:
    net = mccompile.load(free_batch(), dims={"batch": (1, 5)})
    with pytest.raises(MccError, match=f"the size batch cannot be {words}\n.*axis 0 of 'x'\n.*from 1 to 5\n.*dims="):
        net(np.zeros(shape, np.float32))


def test_masked_elements_are_refused() -> None:
    net = mccompile.load(model("flat", [node("Neg", "x", "y")], [("x", (2,))], [("y", (2,))]))
    x = np.ma.masked_array(np.array([1, 2], np.float32), [False, True])
    with pytest.raises(MccError, match=r"masked(?s:.*)x\.filled\(0\)"):
        net(x)
    np.testing.assert_array_equal(net(x.filled(0))[0], [-1, 0])
    np.testing.assert_array_equal(net(np.ma.masked_array(x.data))[0], [-1, -2])


def test_the_second_load_takes_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(small_models.conv(), tmp_path)
    x = np.ones((1, 2, 6, 6), np.float32)
    first = mccompile.load(path)(x)[0]
    monkeypatch.setattr("mccompile.python.network.build_shared", None)
    monkeypatch.setattr("mccompile.python.network.compile_file", None)
    np.testing.assert_array_equal(mccompile.load(path)(x)[0], first)


def test_a_changed_model_or_option_is_built_anew(tmp_path: Path) -> None:
    x = np.ones((1, 2, 6, 6), np.float32)
    first = mccompile.load(save(small_models.conv(0), tmp_path))(x)[0]
    other = mccompile.load(save(small_models.conv(5), tmp_path))(x)[0]
    assert not np.array_equal(first, other)
    mccompile.load(tmp_path / "conv.onnx", optimize=False)
    assert len(builds(tmp_path)) == 3


def test_state_lasts_until_reset() -> None:
    nodes = [node("Add", "x s", "t"), node("Neg", "t", "y")]
    made = model("sums", nodes, [("x", (2,)), ("s", (2,))], [("y", (2,)), ("t", (2,))])
    net = mccompile.load(made, state={"t": "s"})
    assert net.input_names == ("x",)
    x = np.array([1, 2], np.float32)
    for step in (1, 2, 3):
        np.testing.assert_array_equal(net(x)["y"], -step * x)
    net.reset()
    np.testing.assert_array_equal(net(x)["y"], -x)


def test_networks_and_results_pickle_with_their_state(tmp_path: Path) -> None:
    nodes = [node("Add", "x s", "t"), node("Neg", "t", "y")]
    made = model("sums", nodes, [("x", (2,)), ("s", (2,))], [("y", (2,)), ("t", (2,))])
    net, x = mccompile.load(made, state={"t": "s"}), np.array([1, 2], np.float32)
    net(x)
    again = pickle.loads(pickle.dumps(net))
    del net
    assert again.input_names == ("x",)
    np.testing.assert_array_equal(again(x)["y"], -2 * x)
    result = pickle.loads(pickle.dumps(again(x)))
    assert result.names == ("y",)
    np.testing.assert_array_equal(result["y"], -3 * x)


def test_another_process_goes_on_with_open_sizes() -> None:
    net, x = mccompile.load(free_batch()), floats(1, 3, 4)
    want = net(x)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = pool.submit(net, x).result()
    assert found.names == want.names
    np.testing.assert_array_equal(found[0], want[0])


def test_a_file_that_has_changed_does_not_pass_for_what_was_pickled(tmp_path: Path) -> None:
    path = save(small_models.conv(0), tmp_path)
    pickled = pickle.dumps(mccompile.load(path))
    pickle.loads(pickled)
    save(small_models.conv(1), tmp_path)
    with pytest.raises(MccError, match="has changed since"):
        pickle.loads(pickled)


def test_threads_take_turns() -> None:
    made = small_models.conv()
    net = mccompile.load(made)
    inputs = [np.full((1, 2, 6, 6), value, np.float32) for value in range(8)]
    want = [net(x)[0] for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        wrong.extend(number for _ in range(200) if not np.array_equal(net(inputs[number])[0], want[number]))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_threads_call_with_sizes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a call another thread has the network built for other sizes."""
    waiting: list[np.ndarray] = []

    class Late(Session):
        def __getattribute__(self, name: str) -> Any:
            if name == "report" and waiting:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(net, waiting.pop()).result()
            return super().__getattribute__(name)

    monkeypatch.setattr("mccompile.python.network.Session", Late)
    net, x = mccompile.load(free_batch()), floats(0, 2, 4)
    want = net(x)[0]
    waiting.append(floats(0, 3, 4))
    np.testing.assert_array_equal(net(x)[0], want)
    assert not waiting


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_goes_on_while_threads_call() -> None:
    """No run is under way where the process is copied: its thread is not there to end it."""
    net, x = mccompile.load(small_models.conv()), floats(0, 1, 2, 6, 6)
    want, ended = net(x)[0], threading.Event()

    def work() -> None:
        while not ended.is_set():
            net(x)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            child = get_context("fork").Process(target=_same, args=(net, x, want))
            child.start()
            child.join(60)
            if child.exitcode is None:
                child.kill()
            assert child.exitcode == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _same(net: mccompile.Network, x: np.ndarray, want: np.ndarray) -> None:
    sys.exit(not np.array_equal(net(x)[0], want))


def test_elements_that_are_no_plain_ones_go_in_and_out() -> None:
    graph = helper.make_graph(
        [node("Cast", "x", "wide", to=TensorProto.INT8), node("Cast", "wide", "y", to=TensorProto.INT4)],
        "narrow",
        [helper.make_tensor_value_info("x", TensorProto.INT4, (3,))],
        [helper.make_tensor_value_info("y", TensorProto.INT4, (3,))],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    import ml_dtypes

    x = np.array([-8, 0, 7], ml_dtypes.int4)
    np.testing.assert_array_equal(mccompile.load(made)(x)[0].astype(np.int8), [-8, 0, 7])


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ((np.zeros((1, 2, 6, 5), np.float32),), r"float32\[1,2,6,5\]\n.*give f32\[1,2,6,6\]"),
        ((np.zeros((1, 2, 6, 6), np.complex64),), "complex64"),
        ((), "takes 1 input"),
        ((1, 2), "takes 1 input"),
    ],
)
def test_arrays_that_do_not_fit_are_named(arrays: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(MccError, match=complaint):
        mccompile.load(small_models.conv())(*arrays)


def test_doubles_become_floats() -> None:
    net = mccompile.load(small_models.conv())
    x = np.ones((1, 2, 6, 6))
    np.testing.assert_array_equal(net(x)[0], net(x.astype(np.float32))[0])


def test_a_target_of_another_machine_is_refused() -> None:
    with pytest.raises(MccError, match="cortex-m4 does not run on this machine"):
        mccompile.load(small_models.conv(), target="cortex-m4")


def test_a_stream_is_warm_once_a_window_has_come() -> None:
    net = mccompile.load(small_models.conv(), stream="x=2")
    frame = np.ones((1, 2, 1, 6), np.float32)

    def pushes() -> list[bool]:
        warm = []
        while not any(warm):
            net(frame)
            warm.append(net.is_warm)
        return warm

    first = pushes()
    net.reset()
    assert len(first) > 1 and pushes() == first


def test_other_sources_of_the_compiler_are_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("1")
    before = cache.own_stamp.__wrapped__(tmp_path)
    (tmp_path / "a.py").write_text("12")
    assert cache.own_stamp.__wrapped__(tmp_path) != before
    path = save(small_models.conv(), tmp_path)
    mccompile.load(path)
    monkeypatch.setattr(cache, "own_stamp", lambda *folders: "other")
    mccompile.load(path)
    assert len(builds(tmp_path)) == 2


def _identity(of: int) -> mccompile.Network:
    """A network that gives two elements back."""
    taken, made = (helper.make_tensor_value_info(name, of, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "small", [taken], [made])
    return mccompile.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


@pytest.mark.parametrize(
    ("of", "named", "low", "high"),
    [(TensorProto.INT8, "i8", -128, 127), (TensorProto.UINT8, "u8", 0, 255), (TensorProto.INT4, "i4", -8, 7)],
)
def test_integers_that_the_input_cannot_hold_are_refused(of: int, named: str, low: int, high: int) -> None:
    net = _identity(of)
    assert net(np.array([low, high]))["y"].astype(int).tolist() == [low, high]
    with pytest.raises(MccError, match=f"it holds {low - 1} to {high + 1}, and {named} holds {low} to {high}"):
        net(np.array([low - 1, high + 1]))


def test_elements_of_another_kind_are_refused_for_types_that_numpy_lacks() -> None:
    """numpy takes any change of these for one of the same kind: -0.5 became the int4 0."""
    with pytest.raises(MccError, match=r"x\.astype\('int4'\) where no values are lost"):
        _identity(TensorProto.INT4)(np.array([-0.5, 0.5], np.float32))
    with pytest.raises(MccError, match=r"x\.astype\('int8'\) where no values are lost"):
        _identity(TensorProto.INT8)(np.array([1, 2], ml_dtypes.bfloat16))
    with pytest.raises(MccError, match="it holds 1 to 9, and i4 holds -8 to 7"):
        _identity(TensorProto.INT4)(np.array([1, 9], ml_dtypes.uint4))
    brain = _identity(TensorProto.BFLOAT16)
    assert brain(np.array([1, 2]))["y"].tolist() == brain(np.array([1.0, 2.0]))["y"].tolist() == [1, 2]


def test_lists_of_different_lengths_are_refused() -> None:
    net = mccompile.load(model("flat", [node("Neg", "x", "y")], [("x", (2, 2))], [("y", (2, 2))]))
    with pytest.raises(MccError, match="input 'x' does not fit"):
        net([[1.0, 2.0], [3.0]])
