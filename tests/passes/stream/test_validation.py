"""Rules that are wrong on purpose: every step network that they make is refused, or gives what the window gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto
from mccompile.option_texts import stream as option
from mccompile.passes.stream import motion
from mccompile.passes.stream.analysis import Analysis
from mccompile.passes.stream.motion import NodeMotion, Step
from mccompile.passes.stream.rewrite import _Builder, rewritten
from tests.passes.stream.pushed import agree, floats, model, stepped
from tests.passes.stream.test_rules import BY_TWO, FRAME_BY_FRAME, network

W = floats(4, 4, 3)
NETWORK = model(
    "(float[1,4,24] x) => (float[1,4] y) {"
    " a = Conv<dilations=[2]>(x, w) b = MaxPool<kernel_shape=[3], strides=[2]>(a) c = Conv(b, w)"
    " d = Slice(b, two, big, axis) e = Concat<axis=1>(d, c) f = Conv<pads=[0, 0]>(e, v) y = ReduceMean<axes=[2],"
    " keepdims=0>(f) }",
    w=W, v=floats(4, 8, 1), two=np.array([2]), big=np.array([99]), axis=np.array([2]),
)  # fmt: skip
ASKED = "x=2,hop=2"
REFUSED = "streaming would give other results than the whole window|it cannot run frame by frame"


def moved(step: Step, by: int) -> Step:
    return replace(step, reads={place: (low + by, high + by) for place, (low, high) in step.reads.items()})


def narrower(step: Step) -> Step:
    """As if the window had no gaps."""
    if step.op is None or not getattr(step.op, "dilations", None):
        return step
    (low, high) = step.reads[0]
    return replace(step, op=replace(step.op, dilations=None), reads={0: (low, high - 2)})  # type: ignore[type-var]


def padded(step: Step) -> Step:
    if step.op is None or not hasattr(step.op, "pads"):
        return step
    (low, high) = step.reads[0]
    return replace(step, op=replace(step.op, pads=(1, 0)), reads={0: (low + 1, high)})  # type: ignore[type-var]


def shifted(step: Step) -> Step:
    return replace(step, shifts=tuple(shift + 1 for shift in step.shifts))


def ahead(step: Step) -> Step:
    """More elements are said not to depend on the end of the window."""
    found = tuple(each and replace(each, high=each.high + 1) for each in step.results)
    return replace(step, results=found)


MUTANTS: dict[str, Callable[[Step], Step]] = {
    "one element early": lambda step: moved(step, -1),
    "one element late": lambda step: moved(step, 1),
    "no gaps": narrower,
    "padding": padded,
    "a slice from elsewhere": shifted,
    "one element more": ahead,
}


@pytest.fixture
def mutated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type | None, Callable[[Step], Step]], None]]:
    """Changes what the rules say, of one operator or of all."""

    def change(op: type | None, mutant: Callable[[Step], Step]) -> None:
        def wrong(at: NodeMotion, rule: Any) -> Step | None:
            step = rule(at)
            return step and mutant(step)

        for cls, rule in list(motion._RULES.items()):
            if op is None or cls is op:
                monkeypatch.setitem(motion._RULES, cls, lambda at, rule=rule: wrong(at, rule))

    yield change


@pytest.mark.parametrize("edge", ["", ",edge=warm"])
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_rules(name: str, edge: str, mutated: Callable[..., None]) -> None:
    mutated(None, MUTANTS[name])
    with pytest.raises(UnsupportedModel, match=REFUSED):
        stepped(NETWORK, ASKED + edge)


@pytest.mark.parametrize("name", ["one element early", "one element late", "no gaps", "padding"])
def test_windows_that_go_on(name: str, mutated: Callable[..., None]) -> None:
    """Elements that do not depend on the ends of a window are those of the window."""
    same = model("(float[1,4,12] x) => (float[1,4,12] y) { y = Conv<pads=[2, 2], dilations=[2]>(x, w) }", w=W)
    stepped(same, "x=2,edge=warm")
    mutated(None, MUTANTS[name])
    with pytest.raises(UnsupportedModel, match=REFUSED):
        stepped(same, "x=2,edge=warm")


@pytest.mark.parametrize("rule", [*FRAME_BY_FRAME, *BY_TWO])
def test_wrong_reads(rule: str, mutated: Callable[..., None]) -> None:
    """Whatever the operator: elements from elsewhere are noticed, unless they are the same."""
    text = {**FRAME_BY_FRAME, **BY_TWO}[rule]
    mutated(None, MUTANTS["one element early"])
    try:
        graph_is_right = bool(agree(network(text), ASKED))
    except UnsupportedModel:
        return
    assert graph_is_right


def test_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    """One new element instead of as many as come."""
    monkeypatch.setattr(NodeMotion, "new", lambda self, motion: (motion.high - 1, motion.high))
    with pytest.raises(UnsupportedModel, match=REFUSED):
        stepped(NETWORK, "x=2,hop=4")


def test_order_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest elements in front of those of the past."""
    made = _Builder._made

    def turned(self: _Builder, op: Any, operands: Any, name: str, near: Any) -> Any:
        return made(self, op, list(reversed(operands)) if name.endswith("/both") else operands, name, near)

    monkeypatch.setattr(_Builder, "_made", turned)
    with pytest.raises(UnsupportedModel, match=REFUSED):
        stepped(NETWORK, ASKED)


def test_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push too early, something is still what was there before the first."""
    right = rewritten(load_proto(NETWORK), option((ASKED,)))[1].warm_up
    monkeypatch.setattr(Analysis, "warm_up", right - 1)
    with pytest.raises(UnsupportedModel, match=REFUSED):
        stepped(NETWORK, ASKED)


def test_ceil_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last window hangs over the end, and nothing but the numbers say so."""
    hanging = model(
        "(float[1,3,13] x) => (float[1,3,1] y)"
        "{ p = AveragePool<ceil_mode=1, kernel_shape=[2], strides=[2]>(x) y = ReduceMean<axes=[2]>(p) }"
    )
    with pytest.raises(UnsupportedModel, match="pads the end of the window"):
        stepped(hanging, ASKED)
    monkeypatch.setattr(Analysis, "_check_ends", lambda self: None)
    with pytest.raises(UnsupportedModel, match=REFUSED):
        stepped(hanging, ASKED)


def test_the_network_is_right() -> None:
    assert agree(NETWORK, ASKED) == 7
