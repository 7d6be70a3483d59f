"""A network that has states itself, behind what is computed of windows: microphone, features, network in one push."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile.base.errors import UnsupportedModel, WrongUse
from mccompile.base.streaming import Streamed
from mccompile.driver import Options
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.measure import streaming
from mccompile.measure.correctness import check
from mccompile.option_texts import stream as option
from mccompile.passes.memory.state import declare_states
from mccompile.passes.stream import rewrite
from mccompile.passes.stream.rewrite import stream
from tests.passes.stream.pushed import Steps, floats, model, session

# Two features of 8 samples every 4, three of them in a window; the network remembers two more, and counts its runs.
WINDOW = model(
    "(float[1,1,16] x, float[1,2,2] old, float[1] n) => (float[1,3] y, float[1,2,2] kept, float[1] after) {"
    "c = Conv<strides=[4]>(x, w) f = Relu(c) both = Concat<axis=2>(old, f) kept = Slice(both, three, five, two)"
    "flat = Flatten(both) p = Gemm(flat, v) after = Add(n, one) y = Add(p, after) }",
    w=floats(2, 1, 8), v=floats(10, 3), one=np.ones(1, np.float32), two=np.array([2]), three=np.array([3]),
    five=np.array([5]),
)  # fmt: skip
STATES = {"kept": "old", "after": "n"}
RECURRENT = model(  # in front of a network with a state, in a push that goes on where windows end
    "(float[6,1,2] x, float[6,1,3] old) => (float[6,1,3] y, float[6,1,3] kept) {"
    "h = GRU<hidden_size=3>(x, w, r) s = Squeeze(h, one) y = Add(s, old) kept = Identity(y) }",
    w=floats(1, 9, 2), r=floats(1, 9, 3), one=np.array([1]),
)  # fmt: skip


def test_all_samples_of_a_file_are_pushed_and_states_begin_by_themselves(tmp_path: Path) -> None:
    onnx.save(WINDOW, tmp_path / "w.onnx")
    np.savez(tmp_path / "s.npz", x=floats(3, 1, 1, 16))
    verdict = check(tmp_path / "w.onnx", Options(state=STATES, stream=option(("x=2,hop=12",))), tmp_path / "s.npz")
    assert verdict.ok and verdict.runs[0].name == "3 pushes after 1 to warm up"


def _stepped(asked: str) -> tuple[Graph, Streamed]:
    graph = load_proto(WINDOW)
    declare_states(graph, STATES)
    return stream(graph, option((asked,)))


def test_pushes_are_runs_of_the_network_one_after_the_other() -> None:
    graph, found = _stepped("x=2,hop=12")
    assert (found.warm_up, found.own) == (2, ("old", "n"))
    assert [output.name for output in found.outputs] == ["y"]
    steps, whole = Steps(graph), session(WINDOW)
    samples = floats(1, 1, 12 * 7)
    wanted = {name: np.zeros(shape, np.float32) for name, shape in (("old", (1, 2, 2)), ("n", (1,)))}
    for push in range(1, 7):
        if push <= found.warm_up:
            steps.state |= {name: np.zeros_like(steps.state[name]) for name in found.own}
        got = steps.push({"x": samples[..., 12 * (push - 1) : 12 * push]})
        if push < found.warm_up:
            continue
        y, old, n = whole.run(["y", "kept", "after"], {"x": samples[..., 12 * push - 16 : 12 * push], **wanted})
        wanted = {"old": old, "n": n}
        np.testing.assert_allclose(got["y"], y, rtol=1e-5, atol=1e-5)


def test_compiled_pushes_hold_the_network_until_they_are_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HERE", 5)
    onnx.save(WINDOW, tmp_path / "w.onnx")
    verdict = check(tmp_path / "w.onnx", Options(state=STATES, stream=option(("x=2,hop=12",))))
    assert verdict.ok and verdict.runs[0].name == "5 pushes after 1 to warm up"
    assert {output.name for output in verdict.runs[0].outputs} == {"y", "kept", "after"}


def test_recurrent_layers_in_front_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HERE", 4)
    onnx.save(RECURRENT, tmp_path / "r.onnx")
    verdict = check(tmp_path / "r.onnx", Options(state={"kept": "old"}, stream=option(("x=0,hop=6,edge=warm",))))
    assert verdict.ok


@pytest.mark.parametrize("hop", [4, 8, 16, 24])
def test_a_push_brings_what_a_run_takes(hop: int) -> None:
    with pytest.raises(UnsupportedModel, match="a run of it takes 3 new elements of 'f', each of 4 frames") as refused:
        _stepped(f"x=2,hop={hop}")
    assert "--stream x=2,hop=12" in str(refused.value)


def test_a_network_that_takes_frames_itself_needs_no_stream() -> None:
    graph = load_proto(RECURRENT)
    declare_states(graph, {"kept": "old"})
    with pytest.raises(WrongUse, match="has no effect on a network that keeps state"):
        stream(graph, option(("x=0,hop=6",)))
    with pytest.raises(WrongUse, match="no frames come in at 'old'"):
        _stepped("old=2")


def test_an_own_state_that_is_mixed_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof has the states of the network's own among what it compares."""
    right = rewrite._built

    def swapped(graph: Graph, found: rewrite.Analysis) -> tuple[Graph, Streamed]:
        built, streamed = right(graph, found)
        kept = next(value for value in built.outputs if value.name == "after")
        count = next(value for value in built.inputs if value.name == "n")
        built.outputs[built.outputs.index(kept)] = count
        count.name = kept.name
        return built, streamed

    monkeypatch.setattr(rewrite, "_built", swapped)
    with pytest.raises(UnsupportedModel, match="streaming would give other results"):
        _stepped("x=2,hop=12")
