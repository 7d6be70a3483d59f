"""Positions that are divided in floats are divided as integers, where a float holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.passes.api import Context
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

from .test_recognise_idioms import operators

BEST = "v, i = TopK(x, k) p = Unsqueeze(i, axis)"
BEHIND = "h = HELD q = Div(h, by) f = Floor(q) y = Cast <to = 7> (f)"


def graph_of(body: str, by: float = 3, size: int = 40, held: int = 1) -> Graph:
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[2,{size}] x) => (int64[2,1,6] y) {{
        {body.replace("HELD", f"Cast <to = {held}> (p)")}
    }}"""
    model = parser.parse_model(text)
    type = np.float32 if held == 1 else np.float16
    arrays = {"k": np.array([6]), "axis": np.array([1]), "by": np.array([by], type)}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
    return load_proto(model)


SPELLINGS = {
    "floor": (f"{BEST} {BEHIND}", "Div"),
    "cut off": (f"{BEST} h = HELD q = Div(h, by) y = Cast <to = 7> (q)", "Div"),
    "rest": (f"{BEST} h = HELD q = Mod <fmod = 1> (h, by) y = Cast <to = 7> (q)", "Mod"),
}
FLOOR = SPELLINGS["floor"][0]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_positions_are_divided_as_integers(spelling: str, context: Context) -> None:
    body, expected = SPELLINGS[spelling]
    graph = graph_of(body)
    array = np.random.default_rng(2).standard_normal((2, 40)).astype(np.float32)
    before = outputs(lower(graph_of(body)), {"x": array})["y"]
    found = operators(graph, context)
    assert expected in found.split() and "Floor" not in found
    assert not any(value.type.dtype.is_float for node in list(graph.nodes)[1:] for value in node.inputs if value)
    np.testing.assert_array_equal(outputs(lower(graph), {"x": array})["y"], before)


OTHERS: dict[str, dict[str, Any]] = {
    "2.5": {"by": 2.5},
    "0": {"by": 0},
    "negative": {"by": -3},
    "more places than f16 has": {"held": 10, "size": 2049},
    "no positions": {"body": f"{BEST} m = Neg(i) n = Unsqueeze(m, axis) {BEHIND.replace('HELD', 'Cast <to = 1> (n)')}"},
    "what was chosen": {"body": FLOOR.replace(BEST, "i, w = TopK(x, k) p = Unsqueeze(i, axis)")},
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_quotients_stay_floats(other: str, context: Context) -> None:
    assert "Floor" in operators(graph_of(**{"body": FLOOR, **OTHERS[other]}), context).split()
