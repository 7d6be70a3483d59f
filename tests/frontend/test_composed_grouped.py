"""GroupQueryAttention gives what onnxruntime gives: prompts, tokens after a past, and caches with room to spare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper, parser

from mccompile import backend
from mccompile.base.errors import BadFile, CheckFailed, UnsupportedModel

from .test_composed import CONTRIB, agrees, f, i32

HEADS: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2}


def grouped(
    length: int,
    past: int,
    total: int,
    *more: np.ndarray | None,
    taken: int | None = None,
    outs: str = "y,k,v",
    **kw: Any,
) -> None:
    batch = 1
    before = [f(batch, 2, past, 16), f(batch, 2, past, 16)] if past else [None, None]
    lengths, whole = i32((total if taken is None else taken) - 1), np.array(total, np.int32)
    ins = [f(batch, length, 64), f(batch, length, 32), f(batch, length, 32), *before, lengths, whole, *more]
    agrees("GroupQueryAttention", *ins, outs=outs, **HEADS, **kw)


@pytest.mark.parametrize("length, past, total", [(5, 0, 5), (1, 6, 7), (3, 4, 7)])
def test_as_long_as_the_cache_is(length: int, past: int, total: int) -> None:
    grouped(length, past, total)


@pytest.mark.parametrize("length, past, total, interleaved", [(5, 0, 5, 1), (1, 6, 7, 0)])
def test_rotated(length: int, past: int, total: int, interleaved: int) -> None:
    grouped(length, past, total, f(9, 8), f(9, 8), do_rotary=1, rotary_interleaved=interleaved)


@pytest.mark.parametrize("batch, length, past, total", [(1, 5, 0, 5), (2, 3, 6, 3), (2, 1, 6, 7), (1, 3, 4, 7)])
def test_positions_that_are_given(batch: int, length: int, past: int, total: int) -> None:
    """Of a prompt only the first counts."""
    caches = [f(batch, 2, past, 16), f(batch, 2, past, 16)] if past else [None, None]
    positions = np.arange(batch * length).reshape(batch, length) * 2 % 5 + 3
    ins = [f(batch, length, 128), None, None, *caches, i32(*[total - 1] * batch), np.array(total, np.int32)]
    agrees("GroupQueryAttention", *ins, f(9, 8), f(9, 8), positions, outs="y,k,v", do_rotary=1, **HEADS)


def test_operands_that_are_not_known() -> None:
    with pytest.raises(UnsupportedModel, match="operand 16 of GroupQueryAttention is not known"):
        grouped(3, 6, 6, *[None] * 9, i32(3))


def test_the_first_channels_of_heads_rotated() -> None:
    ins = [f(1, 3, 128), f(1, 3, 64), f(1, 3, 64), f(1, 2, 4, 32), f(1, 2, 4, 32), i32(6), np.array(7, np.int32)]
    agrees("GroupQueryAttention", *ins, f(9, 8), f(9, 8), outs="y,k,v", do_rotary=1, **HEADS)


def test_all_in_one_operand() -> None:
    caches = [f(1, 2, 6, 16), f(1, 2, 6, 16)]
    ins = [f(1, 1, 128), None, None, *caches, i32(6), np.array(7, np.int32), f(9, 8), f(9, 8)]
    agrees("GroupQueryAttention", *ins, outs="y,k,v", do_rotary=1, **HEADS)


def test_a_window_of_keys() -> None:
    grouped(5, 0, 5, local_window_size=2)
    grouped(1, 6, 7, local_window_size=3)


def test_capped_and_scaled_scores() -> None:
    grouped(5, 0, 5, softcap=0.5, scale=0.9)


def test_a_bias_and_a_share_for_no_key() -> None:
    grouped(5, 0, 5, None, None, None, f(1, 4, 5, 5))
    grouped(5, 0, 5, None, None, None, None, f(4))
    grouped(1, 6, 7, smooth_softmax=1)


def test_a_cache_with_room_to_spare() -> None:
    """It is as long as the longest conversation; how much of it is taken is known only at run time."""
    grouped(1, 9, 7, f(9, 8), f(9, 8), do_rotary=1)
    grouped(1, 9, 9, f(9, 8), f(9, 8), do_rotary=1, taken=4)


@pytest.mark.parametrize("which", [1, 2])
def test_scores_as_a_result(which: int) -> None:
    for length, past, total in ((5, 0, 5), (1, 6, 7), (1, 9, 7)):
        grouped(length, past, total, outs="y,k,v,s", qk_output=which, softcap=0.5)
    grouped(5, 0, 5, None, None, None, f(1, 4, 5, 5), outs="y,k,v,s", qk_output=which, local_window_size=2)
    grouped(5, 0, 5, outs="y,k,v,s", qk_output=which, smooth_softmax=1)


def test_scores_that_nothing_asks_for() -> None:
    with pytest.raises(BadFile, match="qk_output is 0"):
        grouped(5, 0, 5, outs="y,k,v,s")


def test_queries_and_keys_are_normalized_by_heads() -> None:
    """onnxruntime does so on other machines only: compared with what it says that this means."""
    infos = [("q", (1, 3, 64)), ("k", (1, 3, 32)), ("v", (1, 3, 32)), ("c", (9, 8)), ("s", (9, 8))]
    ins = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in infos]
    weights = [numpy_helper.from_array(array, name) for name, array in (
        ("qn", f(16)), ("kn", f(16)), ("n", i32(2)), ("t", np.array(3, np.int32)), ("heads", np.array([0, 0, -1, 16])),
        ("flat", np.array([0, 0, -1])))]  # fmt: skip

    def model(nodes: Sequence[str], operands: Sequence[str], more: Sequence[str], **also: float) -> ModelProto:
        names = [*operands, "v", "", "", "n", "t", "c", "s", "", "", "", *more]
        node = helper.make_node(
            "GroupQueryAttention", names, ["y", "pk", "pv"], domain=CONTRIB, do_rotary=1, **HEADS, **also
        )
        outs = [ValueInfoProto(name=name) for name in node.output]
        graph = helper.make_graph([*map(parser.parse_node, nodes), node], "g", ins, outs, weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    spelled = [
        f"{x}n_ = Reshape({x}, heads) {x}r = SimplifiedLayerNormalization<axis=-1,epsilon=0.001>({x}n_, {x}n)"
        f" {x}f = Reshape({x}r, flat)" for x in "qk"
    ]  # fmt: skip
    nodes = [f"{part})" for text in spelled for part in text.split(")")[:-1]]
    feed = {name: f(*shape) for name, shape in infos}
    want = onnxruntime.InferenceSession(model(nodes, ["qf", "kf"], []).SerializeToString()).run(None, feed)
    got = backend.prepare(model([], ["q", "k"], ["", "", "qn", "kn"], qk_norm_epsilon=0.001)).run(feed)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


def test_narrow_floats() -> None:
    query, *sides = (f(1, 1, size).astype(np.float16) for size in (64, 32, 32))
    past = (f(1, 2, 6, 16).astype(np.float16) for _ in range(2))
    ins = [query, *sides, *past, i32(6), np.array(7, np.int32)]
    agrees("GroupQueryAttention", *ins, outs="y,k,v", **HEADS)


def test_lengths_that_differ_between_samples() -> None:
    past = [f(3, 2, 6, 16), f(3, 2, 6, 16)]
    ins = [f(3, 1, 64), f(3, 1, 32), f(3, 1, 32), *past, i32(6, 3, 1), np.array(7, np.int32)]
    agrees("GroupQueryAttention", *ins, outs="y,k,v", **HEADS)


def test_samples_shorter_than_the_longest_prompt() -> None:
    """What lies behind their ends says nothing."""
    model = with_total(3, 8, 8, batch=2)
    given = {"q": f(2, 3, 128), "lengths": i32(1, 2), "n": np.array(3, np.int32)}
    given |= {"pk": f(2, 2, 8, 16), "pv": f(2, 2, 8, 16)}
    got = backend.prepare(model).run(given)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    for n, end in ((0, 2), (1, 3)):
        np.testing.assert_allclose(got[0][n, :end], want[0][n, :end], atol=1e-5)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine[n, :, :end], theirs[n, :, :end], atol=1e-6)


def with_total(
    length: int, past: int, present: int | None = None, more: Sequence[str] = (), batch: int = 1
) -> ModelProto:
    """The total length is an input, or computed from one where nodes say how."""
    infos = [("q", (batch, length, 128)), *((name, (batch, 2, past, 16)) for name in ("pk", "pv") if past)]
    ins = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in infos]
    ins += [helper.make_tensor_value_info(name, TensorProto.INT32, n) for name, n in (("lengths", [batch]), ("n", []))]
    names = ["q", "", "", *(("pk", "pv") if past else ("", "")), "lengths", "total" if more else "n"]
    node = helper.make_node("GroupQueryAttention", names, ["y", "k", "v"], domain=CONTRIB, **HEADS)
    outs = [ValueInfoProto(name="y"), *(ValueInfoProto(name=name) for name in "kv")]
    if present is not None:
        outs[1:] = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (batch, 2, present, 16)) for name in "kv"]
    graph = helper.make_graph([*map(parser.parse_node, more), node], "g", ins, outs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(
    ("length", "past", "present", "totals", "too_many"),
    [(1, 8, None, (3, 8), 9), (1, 6, 7, (7,), 6), (5, 0, None, (5,), 6), (3, 8, 8, (4, 7), 12)],
)
@pytest.mark.parametrize("more", [(), ("one = Constant<value_int=1>()", "wide = Cast<to=7>(n)",
    "most = Mul(wide, one)", "total = Cast<to=6>(most)")])  # fmt: skip
def test_a_total_length_that_comes_at_run_time(
    length: int, past: int, present: int | None, totals: Sequence[int], too_many: int, more: Sequence[str]
) -> None:
    model = with_total(length, past, present, more)
    rep = backend.prepare(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())

    def feed(total: int) -> dict[str, np.ndarray]:
        given = {"q": f(1, length, 128), "lengths": i32(total - 1), "n": np.array(total, np.int32)}
        return given | ({"pk": f(1, 2, past, 16), "pv": f(1, 2, past, 16)} if past else {})

    for total in totals:
        given = feed(total)
        got, want = rep.run(given), session.run(None, given)
        np.testing.assert_allclose(got[0], want[0], atol=1e-5)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine[:, :, :total], theirs[:, :, :total], atol=1e-6)
    with pytest.raises(CheckFailed, match="outside the bounds"):
        rep.run(feed(too_many))
