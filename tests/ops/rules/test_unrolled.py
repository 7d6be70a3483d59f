"""Gradients of recurrent layers whose sequences end early, or whose gates are clipped, beside central differences."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.gradients.compare import compared

TIME, BATCH, INPUTS, HIDDEN = 4, 3, 2, 3
LENGTHS = (4, 1, 2)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HEAD = '<ir_version: 8, opset_import: ["" : 14]>'


@pytest.mark.parametrize(
    ("op", "attributes", "peepholes"),
    [
        ("RNN", 'direction = "reverse"', False),
        ("GRU", 'direction = "bidirectional", linear_before_reset = 1', False),
        ("LSTM", 'direction = "bidirectional"', True),
        ("LSTM", "layout = 1", False),
        ("RNN", "clip = 0.4", False),
        ("GRU", "clip = 0.4", False),
        ("LSTM", "clip = 0.4, input_forget = 1", False),
    ],
)
def test_sequences_that_end_early_and_clips(op: str, attributes: str, peepholes: bool) -> None:
    both, rows = 1 + ("bidirectional" in attributes), GATES[op] * HIDDEN
    batch_first, with_lengths = "layout" in attributes, "clip" not in attributes
    state = (BATCH, both, HIDDEN) if batch_first else (both, BATCH, HIDDEN)
    shapes = {
        "x": (BATCH, TIME, INPUTS) if batch_first else (TIME, BATCH, INPUTS),
        "w": (both, rows, INPUTS),
        "r": (both, rows, HIDDEN),
        "b": (both, 2 * rows),
        "h": state,
        **({"c": state} if op == "LSTM" else {}),
        **({"p": (both, 3 * HIDDEN)} if peepholes else {}),
    }
    takes = [f"double[{', '.join(map(str, shape))}] {name}" for name, shape in shapes.items()]
    takes += [f"int32[{BATCH}] lens"] if with_lengths else []
    ins = ["x", "w", "r", "b", "lens" if with_lengths else "", *(name for name in "hcp" if name in shapes)]
    outs = ["y", "last", *(["cell"] if op == "LSTM" else [])]
    gives = ", ".join(f"double[{', '.join('abcd'[: 4 if name == 'y' else 3])}] {name}" for name in outs)
    node = f"{', '.join(outs)} = {op} <hidden_size = {HIDDEN}, {attributes}> ({', '.join(ins)})"
    chance = np.random.default_rng(3)
    feeds = {name: chance.normal(size=shape) for name, shape in shapes.items()}
    if with_lengths:
        feeds["lens"] = np.array(LENGTHS, np.int32)
    found = compared(parser.parse_model(f"{HEAD} g ({', '.join(takes)}) => ({gives}) {{ {node} }}"), feeds, chance)
    assert not found.wrong
    assert found.checked > 20
