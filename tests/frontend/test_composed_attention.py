"""The attention operators of onnxruntime's domain give what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from mccompile import backend

from .test_composed import agrees, f, i8, i32, scale, u8, zero


@pytest.mark.parametrize("mask", [None, i32(3), np.array([[1, 1, 0, 1]], np.int32)])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_quantized_attention(mask: np.ndarray | None, unidirectional: int) -> None:
    weights = i8(6, 24)
    scales = scale(0.02), scale(0.01)
    more = {"num_heads": 2, "unidirectional": unidirectional}
    agrees("QAttention", u8(1, 4, 6), weights, f(24), *scales, mask, zero(120), zero(3, np.int8), **more)


@pytest.mark.parametrize("mask", [None, np.array([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0]], np.int32)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_multi_head_attention(mask: np.ndarray | None, bias: bool, scores: bool) -> None:
    ins = [f(2, 3, 8), f(2, 5, 8), f(2, 5, 6), f(22) if bias else None, mask, f(2, 2, 3, 5) if scores else None]
    agrees("MultiHeadAttention", *ins, num_heads=2)


def test_attention_after_a_past() -> None:
    ins = [f(1, 2, 8), f(1, 2, 8), f(1, 2, 8), None, None, f(1, 2, 2, 5), f(1, 2, 3, 4), f(1, 2, 3, 4)]
    agrees("MultiHeadAttention", *ins, num_heads=2, outs="y,k,v", scale=0.7)


def test_attention_to_what_is_before() -> None:
    agrees("MultiHeadAttention", f(2, 4, 8), f(2, 4, 8), f(2, 4, 8), num_heads=4, unidirectional=1)


@pytest.mark.parametrize(("queries", "keys", "past"), [(2, 4, 0), (4, 2, 0), (1, 3, 0), (2, 4, 3), (5, 1, 4)])
@pytest.mark.parametrize("scores", [False, True])
def test_attention_to_what_is_before_where_keys_are_not_as_many(
    queries: int, keys: int, past: int, scores: bool
) -> None:
    before = [f(2, 2, past, 4)] * 2 if past else []
    ins = [f(2, queries, 8), f(2, keys, 8), f(2, keys, 8), None, None]
    bias = f(1, 2, queries, past + keys) if scores else None
    agrees("MultiHeadAttention", *ins, bias, *before, num_heads=2, unidirectional=1, outs="y,k,v" if past else "y")


def test_attention_to_what_is_before_of_free_lengths() -> None:
    text = """(float[1, A, 8] q, float[1, B, 8] k, float[1, B, 8] v) => (float[1, A, 8] y)
        { y = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1> (q, k, v) }"""
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g {text}')
    session = onnxruntime.InferenceSession(made.SerializeToString())
    ins = {name: f(1, length, 8) for name, length in (("q", 3), ("k", 5), ("v", 5))}
    got = backend.run_model(made, ins)[0]
    np.testing.assert_allclose(got, session.run(None, ins)[0], 1e-4, 1e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotated_embeddings(interleaved: int) -> None:
    positions = np.array([[0, 3, 1], [5, 2, 2]], np.int64)
    agrees("RotaryEmbedding", f(2, 3, 16), positions, f(9, 4), f(9, 4), interleaved=interleaved)
    agrees("RotaryEmbedding", f(2, 2, 3, 8), np.array([4], np.int64), f(9, 4), f(9, 4), interleaved=interleaved)
    more = {"num_heads": 2, "rotary_embedding_dim": 4}
    agrees("RotaryEmbedding", f(2, 3, 16), positions, f(9, 2), f(9, 2), interleaved=interleaved, **more)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", [None, np.array([[1, 0, 1, 1, 1, 0, 1], [1] * 7], np.int32)])
def test_attention_in_one_matrix_after_a_past(unidirectional: int, mask: np.ndarray | None) -> None:
    ins = [f(2, 4, 8), f(8, 24), f(24), mask, f(2, 2, 2, 3, 4)]
    agrees("Attention", *ins, num_heads=2, unidirectional=unidirectional, outs="y,p")


def test_attention_with_a_bias_of_the_scores() -> None:
    agrees("Attention", f(2, 4, 8), f(8, 24), f(24), None, None, f(2, 2, 4, 4), num_heads=2)


def test_attention_gives_its_keys_and_values() -> None:
    agrees("Attention", f(1, 4, 8), f(8, 24), f(24), num_heads=2, outs="y,p")
    agrees("MultiHeadAttention", f(2, 4, 8), f(2, 4, 8), f(2, 4, 8), num_heads=2, outs="y,k,v")


def test_attention_to_keys_that_are_cut_into_heads_already() -> None:
    agrees("MultiHeadAttention", f(2, 3, 8), f(2, 2, 5, 4), f(2, 2, 5, 4), num_heads=2)


@pytest.mark.parametrize(
    "mask",
    [
        np.array([[-1, 2, 1, 0], [1, -5, 0, 7]], np.int32),
        np.array([[[2, -1, 0, 1]] * 4, [[0, 1, -3, 1]] * 4], np.int32),
        i32(3, 2),
        i32(3, 4, 1, 2),
        np.array([[0], [1]], np.int32),
        np.array([[1]], np.int32),
    ],
    ids=["negative", "of pairs", "ends", "ends and starts", "one per batch", "one"],
)
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_keys_count_where_the_mask_is_positive(mask: np.ndarray, unidirectional: int) -> None:
    agrees("Attention", f(2, 4, 8), f(8, 24), f(24), mask, num_heads=2, unidirectional=unidirectional)


@pytest.mark.parametrize(
    "mask",
    [np.array([[-1, 2, 1], [1, -5, 7]], np.int32), np.array([[[1, -2, 3]] * 2] * 2, np.int32), i32(2, 3)],
    ids=["negative", "of pairs", "ends"],
)
def test_separate_keys_count_where_the_mask_is_positive(mask: np.ndarray) -> None:
    agrees("MultiHeadAttention", f(2, 2, 8), f(2, 3, 8), f(2, 3, 8), None, mask, num_heads=2)
