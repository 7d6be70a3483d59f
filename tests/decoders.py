"""A language model of a few kilobytes, as a search of onnxruntime has it: a graph that takes tokens, positions, mask
and the past of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

HEADS, SIZE = 2, 4
TOKENS = 11  # that it knows
_CONTRIB = "com.microsoft"


def decoder(seed: int, layers: int = 1) -> GraphProto:
    chance, width = np.random.default_rng(seed), HEADS * SIZE
    weights: dict[str, np.ndarray] = {}
    nodes: list[NodeProto] = []

    def drawn(name: str, *shape: int) -> str:
        weights[name] = chance.standard_normal(shape).astype(np.float32)
        return name

    def op(name: str, operands: list[str], results: list[str], **form: Any) -> str:
        nodes.append(helper.make_node(name, operands, results, results[0], **form))
        return results[0]

    words = op("Gather", [drawn("words", TOKENS, width), "input_ids"], ["word"])
    x = op("Add", [words, op("Gather", [drawn("places", 24, width), "position_ids"], ["place"])], ["sum"])
    for n in range(layers):
        weighted = [x, drawn(f"qkv{n}", width, 3 * width), drawn(f"shift{n}", 3 * width)]
        operands, results = [*weighted, "attention_mask", f"past_{n}"], [f"heads{n}", f"present_{n}"]
        op("Attention", operands, results, domain=_CONTRIB, num_heads=HEADS, unidirectional=1)
        made = op("MatMul", [results[0], drawn(f"out{n}", width, width)], [f"joined{n}"])
        x = op("Add", [x, made], [f"sum{n}"])
    op("MatMul", [x, drawn("head", width, TOKENS)], ["logits"])
    ints = {"input_ids": ["batch", "s"], "position_ids": ["batch", "s"], "attention_mask": ["batch", "t"]}
    pasts = [(f"past_{n}", [2, "batch", HEADS, "p", SIZE]) for n in range(layers)]
    presents = [(f"present_{n}", [2, "batch", HEADS, "t", SIZE]) for n in range(layers)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, dims) for name, dims in ints.items()]
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in pasts]
    floats = [("logits", ["batch", "s", TOKENS]), *presents]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in floats]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    return helper.make_graph(nodes, "decoder", inputs, outputs, initializers)


OPERANDS = {
    "GreedySearch": ("min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask"),
    "BeamSearch": (
        "min_length", "num_beams", "num_return_sequences", "length_penalty", "repetition_penalty", "vocab_mask",
        "prefix_vocab_mask", "attention_mask", "decoder_input_ids", "logits_processor",
    ),
}  # fmt: skip


def search(
    batch: int,
    given: int | str,
    most: int,
    more: dict[str, np.ndarray] | None = None,
    op: str = "GreedySearch",
    results: Sequence[str] = ("y",),
    **form: Any,
) -> ModelProto:
    """A model of one search. `more`: its other operands by name, which are constants."""
    constants = {"max_length": np.array([most], np.int32), **(more or {})}
    operands = ["ids", "max_length", *(name if name in constants else "" for name in OPERANDS[op])]
    form = {"decoder": decoder(0), "eos_token_id": 2, "pad_token_id": 0, "model_type": 0} | form
    node = helper.make_node(op, operands, results, "search", domain=_CONTRIB, **form)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT32, [batch, given])
    types = (TensorProto.INT32, TensorProto.FLOAT, TensorProto.FLOAT)
    outputs = [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, types, strict=False) if n]
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_CONTRIB, 1)]
    graph = helper.make_graph([node], "search", [ids], outputs, initializers)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
