"""Attention over a past in buffers of fixed length gives what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from mccompile import backend
from mccompile.base.errors import MccError

from .test_composed import CHANCE, CONTRIB, f

HEADS, WIDTH, ROOM = 2, 4, 6
CHANNELS = HEADS * WIDTH
Feeds = dict[str, np.ndarray | None]


def agrees(op: str, feeds: Feeds, outs: str, **attributes: Any) -> None:
    """All operands are inputs of the model."""
    names = [name if array is not None else "" for name, array in feeds.items()]
    given = {name: array for name, array in feeds.items() if array is not None}
    node = helper.make_node(op, names, outs.split(","), domain=CONTRIB, num_heads=HEADS, **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outs.split(",") if name]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    graph = helper.make_graph([node], "buffered", inputs, results)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    wants = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    for got, want in zip(backend.run_model(model, given), wants, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def run(rows: int, length: int, past: int, beams: int = 0) -> Feeds:
    """The operands of one run; with beams, where the tokens of each come from."""
    batch = rows // max(beams, 1)
    sources = CHANCE.integers(0, beams, (batch, beams, ROOM)).astype(np.int32) if beams else None
    sides = {name: f(rows, length, CHANNELS) for name in "qkv"}
    buffers = {name: f(rows, HEADS, ROOM, WIDTH) for name in ("pk", "pv")}
    more = {"length": np.array([past], np.int32), "sources": sources}
    return {**sides, "bias": f(3 * CHANNELS), "mask": None, "scores": None, **buffers, **more}


@pytest.mark.parametrize(("length", "past"), [(1, 3), (1, 0), (2, 3), (4, 0), (3, 3)])
def test_tokens_are_written_behind_the_past(length: int, past: int) -> None:
    agrees("MultiHeadAttention", run(2, length, past), "y,k_,v_", unidirectional=1)
    agrees("MultiHeadAttention", run(2, length, past), "y,k_,v_", unidirectional=0, scale=0.3)


@pytest.mark.parametrize("beams", [1, 3])
def test_beams_look_at_the_tokens_that_they_came_from(beams: int) -> None:
    agrees("MultiHeadAttention", run(2 * beams, 1, 3, beams), "y,k_,v_", unidirectional=1)


def test_the_decoder_of_one_token() -> None:
    own = run(6, 1, 4, 3)
    own["width"] = np.array([3], np.int32)
    order = ("q", "k", "v", "mask", "scores", "pk", "pv", "length", "width", "sources", "bias")
    agrees("DecoderMaskedMultiHeadAttention", {n: own[n] for n in order}, "y,k_,v_", past_present_share_buffer=1)


def test_keys_of_an_encoder_and_their_scores() -> None:
    keys = {name: f(2, HEADS, 5, WIDTH) for name in "kv"}
    own = {**run(2, 3, 2, 1), **keys, "pk": None, "pv": None}
    agrees("MultiHeadAttention", own, "y,,,scores_", unidirectional=0)
    own |= {"q": f(2, 1, CHANNELS), "width": np.array([1], np.int32)}
    order = ("q", "k", "v", "mask", "scores", "pk", "pv", "length", "width", "sources", "bias")
    agrees("DecoderMaskedMultiHeadAttention", {n: own[n] for n in order}, "y,,,scores_", output_qk=1)


def test_a_mask_and_scores_beside_a_buffer() -> None:
    order = ("q", "k", "v", "mask", "scores", "pk", "pv", "length")
    for more in ({"mask": np.array([[1, 0, 1, 1], [0, 1, 1, 1]], np.int32)}, {"scores": f(1, HEADS, 1, 4)}):
        own = {**run(2, 1, 3), **more}
        agrees("MultiHeadAttention", own, "y,k_,v_")
        agrees("DecoderMaskedMultiHeadAttention", {n: own[n] for n in order}, "y,k_,v_", past_present_share_buffer=1)


def test_a_mask_of_another_form_beside_a_buffer_is_refused() -> None:
    own = {**run(2, 1, 3), "mask": np.ones((2, 1, 4), np.int32)}
    with pytest.raises(MccError, match="buffer of fixed length"):
        agrees("MultiHeadAttention", own, "y,k_,v_")
