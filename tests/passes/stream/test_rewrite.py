"""Whole networks frame by frame: every push gives what the window network gives on the window that ends there."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.errors import UnsupportedModel, WrongUse
from mccompile.frontend.load import load_proto
from mccompile.option_texts import stream as option
from mccompile.passes.stream.rewrite import rewritten
from tests.passes.stream.pushed import agree, floats, model, stepped

I64 = np.array
# Causal convolutions with gaps 1, 2, 4, each with a residual; the last element of each channel is classified.
TCN = model(
    "(float[1,4,40] x) => (float[1,3] y)"
    "{ p1 = Pad(x, two) a1 = Conv<dilations=[1]>(p1, w1) r1 = Relu(a1) s1 = Add(r1, x)"
    "  p2 = Pad(s1, four) a2 = Conv<dilations=[2]>(p2, w2) r2 = Relu(a2) s2 = Add(r2, s1)"
    "  a3 = Conv<dilations=[4], pads=[8, 8]>(s2, w3) c3 = Slice(a3, zero, end, axis) s3 = Add(c3, s2)"
    "  last = Gather<axis=2>(s3, newest) y = Gemm(last, v) }",
    w1=floats(4, 4, 3), w2=floats(4, 4, 3), w3=floats(4, 4, 3), v=floats(4, 3), newest=I64(-1),
    two=I64([0, 0, 2, 0, 0, 0]), four=I64([0, 0, 4, 0, 0, 0]), zero=I64([0]), end=I64([-8]), axis=I64([2]),
)  # fmt: skip
STRIDED = model(  # strides 2 and 2, pooled by 2 over time, then dense over what is left
    "(float[1,3,50,4] x) => (float[1,5] y)"
    "{ a = Conv<strides=[2, 1]>(x, w) b = Relu(a) c = MaxPool<kernel_shape=[3, 1], strides=[2, 1]>(b)"
    "  d = Conv<kernel_shape=[2, 2]>(c, v) e = AveragePool<kernel_shape=[2, 1], strides=[2, 1]>(d)"
    "  f = Flatten(e) y = Gemm(f, u) }",
    w=floats(6, 3, 4, 1), v=floats(2, 6, 2, 2), u=floats(30, 5),
)  # fmt: skip
GRU = model(
    "(float[1,5,20] x) => (float[1,2] y)"
    "{ a = Conv(x, w) b = Relu(a) t = Transpose<perm=[2, 0, 1]>(b) s, h = GRU<hidden_size=6>(t, wg, rg)"
    "  l = Squeeze(h, first) y = Gemm(l, v) }",
    w=floats(4, 5, 5), wg=floats(1, 18, 4), rg=floats(1, 18, 6), v=floats(6, 2), first=I64([0]),
)  # fmt: skip
UNET = model(  # down by two twice and up again, with what was before beside it
    "(float[1,2,44] x) => (float[1,2,22] y)"
    "{ a = Conv(x, w1) ra = Relu(a) d1 = MaxPool<kernel_shape=[2], strides=[2]>(ra) b = Conv(d1, w2)"
    "  d2 = MaxPool<kernel_shape=[2], strides=[2]>(b) c = Conv(d2, w3)"
    "  u2 = ConvTranspose<strides=[2]>(c, t2) sb = Slice(b, two, sixteen, axis) j2 = Concat<axis=1>(u2, sb)"
    "  e = Conv(j2, w4) u1 = ConvTranspose<strides=[2]>(e, t1) sa = Slice(ra, eight, twenty_eight, axis)"
    "  j1 = Concat<axis=1>(u1, sa) y = Conv(j1, w5) }",
    w1=floats(4, 2, 3), w2=floats(6, 4, 3), w3=floats(6, 6, 3), t2=floats(6, 6, 2), w4=floats(6, 12, 3),
    t1=floats(6, 4, 2), w5=floats(2, 8, 3), axis=I64([2]),
    two=I64([2]), sixteen=I64([16]), eight=I64([8]), twenty_eight=I64([32]),
)  # fmt: skip
ATTENTION = model(  # of the newest of 32 frames to all of them
    "(float[1,36,6] x) => (float[1,1,4] y)"
    "{ t = Transpose<perm=[0, 2, 1]>(x) c = Conv(t, w) f = Transpose<perm=[0, 2, 1]>(c)"
    "  q = MatMul(f, wq) k = MatMul(f, wk) v = MatMul(f, wv) n = Slice(q, last, end, axis)"
    "  kt = Transpose<perm=[0, 2, 1]>(k) s = MatMul(n, kt) p = Softmax(s) y = MatMul(p, v) }",
    w=floats(6, 6, 5), wq=floats(6, 4), wk=floats(6, 4), wv=floats(6, 4), last=I64([-1]), end=I64([99]), axis=I64([1]),
)  # fmt: skip
QUANTIZED = model(
    "(int8[1,4,12] x) => (int8[1,3,1] y)"
    "{ d = DequantizeLinear(x, s, z) w = DequantizeLinear(wi, s) c = Conv(d, w) r = Relu(c)"
    "  q = QuantizeLinear(r, u, z) e = DequantizeLinear(q, u, z) v = DequantizeLinear(vi, s)"
    "  f = Conv(e, v) y = QuantizeLinear(f, u, z) }",
    wi=np.arange(-30, 30).reshape(5, 4, 3).astype(np.int8), vi=np.arange(-75, 75).reshape(3, 5, 10).astype(np.int8),
    s=np.float32(0.03), u=np.float32(0.1), z=np.int8(-5),
)  # fmt: skip


@pytest.mark.parametrize(
    ("network", "asked"),
    [
        (TCN, "x=2"),
        (TCN, "x=2,hop=3"),
        (STRIDED, "x=2,hop=8"),
        (GRU, "x=2"),
        (UNET, "x=2,hop=4"),
        (ATTENTION, "x=1"),
        (ATTENTION, "x=1,hop=5"),
        (QUANTIZED, "x=-1"),
    ],
    ids=["tcn", "tcn by 3", "strided", "gru", "unet", "attention", "attention by 5", "quantized"],
)
def test_networks(network: ModelProto, asked: str) -> None:
    assert agree(network, asked) == 7


@pytest.mark.parametrize(
    ("network", "asked"),
    [(TCN, "x=2,hop=50"), (STRIDED, "x=2,hop=104"), (GRU, "x=2,hop=31"), (UNET, "x=2,hop=60")],
    ids=["tcn", "strided", "gru", "unet"],
)
def test_frames_between_windows_are_skipped(network: ModelProto, asked: str) -> None:
    assert agree(network, asked) == 7 and stepped(network, asked)[1].warm_up == 1


def test_what_is_kept_is_what_is_needed() -> None:
    """Two elements before the first of a kernel of three, in bytes where they are quantized."""
    graph, found = stepped(QUANTIZED, "x=2")
    kept = {name: str(value.type) for name, value in ((v.name, v) for v in graph.inputs) if name in graph.states}
    assert kept == {"x/past": "i8[1,2,4]", "q/past": "i8[1,9,5]"}
    assert (found.warm_up, found.outputs[0].latency) == (12, 0)


@pytest.mark.parametrize("network", [TCN, STRIDED, QUANTIZED], ids=["tcn", "strided", "quantized"])
def test_what_keeps_frames_comes_from_nodes_of_the_model(network: ModelProto) -> None:
    """Frames of an input too, which no node makes: those that read it."""
    graph, _ = stepped(network, "x=2,hop=8")
    assert [node.op.name for node in graph.nodes if not node.provenance] == []


def test_refusals() -> None:
    with pytest.raises(UnsupportedModel, match="hop=8"):
        stepped(STRIDED, "x=2,hop=4")
    with pytest.raises(WrongUse, match="no input 'z'"):
        stepped(TCN, "z=2")
    with pytest.raises(WrongUse, match="no axis 3"):
        stepped(TCN, "x=3")


def test_bodies_read_what_stands_still() -> None:
    network = model(
        "(float[1,4,20] x, float[2,3] t) => (float[1,4,18] y, float[2,3] u)"
        "{ y = Conv(x, w) n = Neg(t) u = Scan<num_scan_inputs=1, body = b (float[3] row) => (float[3] out)"
        "  { s = Slice(n, zero, one) f = Squeeze(s, zero) out = Add(row, f) }>(t) }",
        w=floats(4, 4, 3), zero=I64([0]), one=I64([1]),
    )  # fmt: skip
    stepped(network, "x=2")


def test_sizes_that_the_model_declares_stay() -> None:
    network = model(
        "(float[1,4,20] x, bool[1] more) => (float[1,4,18] y, int64[2] seen)"
        "{ y = Conv(x, w) kept, seen = Loop<body = b (int64 i, bool on, bool[1] s) => (again, t, e)"
        "  { again = Squeeze(s) t = Not(s) e = Identity(i) }>(, on, more) }",
        w=floats(4, 4, 3), on=I64(True),
    )  # fmt: skip
    graph, _ = stepped(network, "x=2")
    assert next(value.type.shape for value in graph.outputs if value.name == "seen") == (2,)


def test_what_nothing_reads_delays_nothing() -> None:
    """Also for `check`, which makes a step network of its own."""
    made = model(
        "(float[1,4,20] x) => (float[1,4] y) { unread = Conv<pads=[0, 2]>(x, w) n = Neg(unread) a = Conv(x, w)"
        " y = ReduceMean<axes=[2], keepdims=0>(a) }",
        w=floats(4, 4, 3),
    )
    asked = option(("x=2,edge=warm",))
    assert [rewritten(load_proto(made), asked)[1].outputs[0].latency, stepped(made, "x=2")[1].warm_up] == [0, 20]
