"""What cannot run frame by frame is refused, with the node, the reason and what to do."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile.base.errors import UnsupportedModel, WrongUse
from tests.passes.stream.pushed import HEAD, agree, floats, model, stepped

SAME = model(
    "(float[1,4,20] x) => (float[1,3] y) { padded = Conv<pads=[1, 1]>(x, w) f = Flatten(padded) y = Gemm(f, v) }",
    w=floats(4, 4, 3), v=floats(80, 3),
)  # fmt: skip
AFTER = model(  # only its last element is padded
    "(float[1,4,20] x) => (float[1,4] y) { padded = Conv<pads=[0, 2]>(x, w) y = Gather<axis=2>(padded, last) }",
    w=floats(4, 4, 3), last=np.array(-1),
)  # fmt: skip
ALL_AFTER = model("(float[1,4,3] x) => (float[1,4,5] y) { y = Conv<pads=[0, 5]>(x, w) }", w=floats(4, 4, 4))
DENSE = model("(float[1,20] x) => (float[1,3] y) { y = MatMul(x, w) }", w=floats(20, 3))
POSITIONS = model(
    "(float[1,20,4] x) => (float[1,20,3] y) { a = Add(x, p) y = MatMul(a, w) }", p=floats(1, 20, 4), w=floats(4, 3)
)
BOTH_WAYS = model(
    "(float[20,1,4] x) => (float[20,2,1,3] y) { y = LSTM<direction=\"bidirectional\", hidden_size=3>(x, w, r) }",
    w=floats(2, 12, 4), r=floats(2, 12, 3),
)  # fmt: skip
FORWARD = model(
    "(float[20,1,4] x) => (float[20,1,1,3] y) { y = LSTM<hidden_size=3>(x, w, r) }",
    w=floats(1, 12, 4), r=floats(1, 12, 3),
)  # fmt: skip
THREE_OF_TWO = model(
    "(float[1,4,20] x) => (float[1,4,27] y) { a = Conv<strides=[2]>(x, w) y = ConvTranspose<strides=[3]>(a, w) }",
    w=floats(4, 4, 3),
)
STRIDED = model("(float[1,4,20] x) => (float[1,4,6] y) { y = Conv<strides=[3]>(x, w) }", w=floats(4, 4, 3))
BRANCH = parser.parse_model(
    HEAD + "g (float[1,4,20] x, bool c) => (float[1,4,20] y) { y = If<then_branch = t () => (float[1,4,20] a)"
    "{ a = Relu(x) }, else_branch = e () => (float[1,4,20] b) { b = Neg(x) }>(c) }"
)
UNREAD = model("(float[1,4,20] x, float[3] z) => (float[3] y) { y = Relu(z) }")


@pytest.mark.parametrize(
    ("network", "asked", "where", "why", "fix"),
    [
        (SAME, "x=2", '"padded" (Conv)', "pads the start of the window", "--stream x=2,edge=warm"),
        (AFTER, "x=2", '"padded" (Conv)', "pads the end of the window", "--stream x=2,edge=warm"),
        (ALL_AFTER, "x=2", '"y" (Conv)', "pads the end of the window", "--stream x=2,edge=warm"),
        (DENSE, "x=1", '"y" (MatMul)', "MatMul needs all of the window", "name the axis of time"),
        (POSITIONS, "x=1", '"a" (Add)', "Add needs all of the window", "name the axis of time"),
        (BOTH_WAYS, "x=0", '"y" (LSTM)', "LSTM needs all of the window", "name the axis of time"),
        (FORWARD, "x=0", '"y" (LSTM)', "LSTM needs all of the window", "from push to push: --stream x=0,edge=warm"),
        (THREE_OF_TWO, "x=2", '"a" (Conv)', "one element of 2 frames, and a push brings 1", "--stream x=2,hop=2"),
        (STRIDED, "x=2,hop=2", '"y" (Conv)', "one element of 3 frames, and a push brings 2", "--stream x=2,hop=3"),
        (BRANCH, "x=2", '"y" (If)', "the body of If reads it", "move it out of the body"),
        (UNREAD, "x=2", "input x", "nothing depends on it", "name the axis of time"),
    ],
    ids=[
        "start",
        "end",
        "all of the end",
        "dense",
        "positions",
        "both ways",
        "forward",
        "three of two",
        "stride",
        "branch",
        "nothing",
    ],
)
def test_refused(network: object, asked: str, where: str, why: str, fix: str) -> None:
    with pytest.raises(UnsupportedModel) as refused:
        stepped(network, asked)  # type: ignore[arg-type]
    (problem,) = refused.value.problems
    assert where in problem.where and why in problem.why and fix in problem.fix


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ("z=2", "no input 'z'"),
        ("x=3", "no axis 3"),
        ("x=2,hop=0", "cannot bring 0 frames"),
        ("x=2,edge=cold", "edge cannot be 'cold'"),
    ],
)
def test_wrong_use(asked: str, what: str) -> None:
    with pytest.raises(WrongUse, match=what):
        stepped(SAME, asked)


def test_padding_that_reaches_no_result() -> None:
    """A causal network is exact where what is read does not depend on what stands before the window."""
    network = model(
        "(float[1,4,20] x) => (float[1,4] y) { a = Conv<pads=[2, 0]>(x, w) y = Gather<axis=2>(a, last) }",
        w=floats(4, 4, 3), last=np.array(-1),
    )  # fmt: skip
    assert agree(network, "x=2") == 7
    assert stepped(network, "x=2")[1].warm_up == 3


PADDED = {  # what is made of the window's edge, and one step further of what is not
    "stride": ("a = Conv<pads=[1, 0], strides=[2]>(x, w)", 0, 1),
    "every second": ("b = Conv<pads=[1, 0]>(x, w) a = Slice(b, zero, end, two, two)", 0, 1),
    "transposed": ("a = ConvTranspose(x, w)", 1, 2),
    "after a slice": ("b = Slice(x, two, end, two) a = Conv<pads=[2, 0]>(b, w)", 1, 2),
    "before a slice": ("b = Slice(x, zero, minus, two) a = Conv<pads=[0, 2]>(b, w)", -2, -3),
}


@pytest.mark.parametrize("name", PADDED)
def test_which_elements_depend_on_an_edge(name: str) -> None:
    text, tied, free = PADDED[name]

    def picking(place: int) -> ModelProto:
        return model(
            f"(float[1,4,20] x) => (float[1,4] y) {{ {text} y = Gather<axis=2>(a, place) }}",
            w=floats(4, 4, 3), place=np.array(place), zero=np.array([0]), two=np.array([2]), end=np.array([99]),
            minus=np.array([-2]),
        )  # fmt: skip

    with pytest.raises(UnsupportedModel, match="depend on where the window lies"):
        stepped(picking(tied), "x=2,hop=2")
    assert agree(picking(free), "x=2,hop=2") == 7


def test_all_windows_lie_back_alike() -> None:
    """One frame is missing, but a branch moves by two."""
    network = model(
        "(float[1,4,20] x) => (float[1,4,1] m, float[1,4,1] n) { a = Conv<pads=[0, 1]>(x, w) m = GlobalMaxPool(a)"
        " b = Conv<strides=[2]>(x, w) n = GlobalMaxPool(b) }",
        w=floats(4, 4, 3),
    )  # fmt: skip
    found = stepped(network, "x=2,hop=2,edge=warm")[1]
    assert [output.latency for output in found.outputs] == [2, 2]


@pytest.mark.parametrize(
    "call",
    [
        'GRU<hidden_size=3, direction="reverse">(x, w, r)',
        "GRU<hidden_size=3>(x, w, r, , lengths)",
        "GRU<hidden_size=3>(x, w, r, , , start)",
    ],
)
def test_recurrent_layers_that_cannot_go_on(call: str) -> None:
    network = model(
        f"(float[8,1,4] c) => (float[8,1,1,3] y) {{ x = MatMul(c, square) y = {call} }}",
        w=floats(1, 9, 4), r=floats(1, 9, 3), square=floats(4, 4), lengths=np.array([8], np.int32),
        start=np.ones((1, 1, 3), np.float32),
    )  # fmt: skip
    found = stepped(network, "c=0,edge=warm")[1]
    assert found.whole == ("GRU",) and not found.carried


def test_operators_on_elements_alone() -> None:
    network = model("(float[1,4,20] x) => (float[1,4,20] y) { y = Relu(x) }")
    assert not stepped(network, "x=2")[0].states
    assert agree(network, "x=2") == 7


def test_places_of_the_largest_are_of_the_window() -> None:
    network = model(
        "(float[1,4,9] x) => (float[1,4,3] y, int64[1,4,3] p)"
        "{ c = Conv(x, w) y, p = MaxPool<kernel_shape=[5]>(c) }", w=floats(4, 4, 3)
    )  # fmt: skip
    assert agree(network, "x=2,hop=2") == 7


def test_latency() -> None:
    """Of a sequence, the newest elements that are not padding are given: they come late."""
    network = model("(float[1,4,20] x) => (float[1,4,20] y) { y = Conv<pads=[1, 1]>(x, w) }", w=floats(4, 4, 3))
    (output,) = stepped(network, "x=2")[1].outputs
    assert (output.first, output.count, output.latency) == (18, 1, 1)
    assert agree(network, "x=2,hop=4") == 7
