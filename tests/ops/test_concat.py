"""Pieces that lie side by side in one tensor are a view of it; all others are copied."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.kinds.concat import Concat
from mccompile.measure.correctness import build

HEAD = '<ir_version: 8, opset_import: ["": 17]> g '
SLICED = {  # of x[2, 24]; whether it is a view
    "cut and joined": ("a, b = Split<axis=1>(x, parts) c = Concat<axis=1>(a, b)", "2,24", True),
    "swapped": ("a, b = Split<axis=1>(x, parts) c = Concat<axis=1>(b, a)", "2,24", False),
    "a gap": ("a = Slice(x, n0, n8, n1) b = Slice(x, n12, n20, n1) c = Concat<axis=1>(a, b)", "2,16", False),
    "frames": ("a = Slice(x, n0, n16, n1) b = Slice(x, n4, n20, n1) p = Reshape(a, fours) q = Reshape(b, fours)"
               " c = Concat<axis=2>(p, q)", "2,4,8", True),
    "single ones": ("a = Slice(x, n0, n1, n1) b = Slice(x, n4, n5, n1) c = Concat<axis=1>(a, b)", "2,2", True),
    "one and more": ("a = Slice(x, n0, n1, n1) b = Slice(x, n4, n8, n1) c = Concat<axis=1>(a, b)", "2,5", False),
    "backwards": ("a = Slice(x, n8, n4, n1, minus) b = Slice(x, n4, n0, n1, minus) c = Concat<axis=1>(a, b)",
                  "2,8", True),
    "twice": ("c = Concat<axis=1>(x, x)", "2,48", False),
    "other axes": ("t = Transpose(x) a = Slice(x, n0, n4, n1) s = Slice(t, n4, n8, n0) b = Slice(s, n0, n4, n1)"
                   " d = Slice(a, n0, n4, n0) c = Concat<axis=1>(d, a)", "2,8", False),
}  # fmt: skip


def network(text: str, shape: str) -> ModelProto:
    made = parser.parse_model(f"{HEAD}(float[2,24] x) => (float[{shape}] y) {{ {text} y = Neg(c) }}")
    arrays = {f"n{n}": np.array([n]) for n in (0, 1, 4, 5, 8, 12, 16, 20)}
    arrays |= {"parts": np.array([10, 14]), "fours": np.array([2, 4, 4]), "minus": np.array([-1])}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return made


@pytest.mark.parametrize("name", SLICED)
def test_neighbours_are_a_view(name: str) -> None:
    text, shape, is_view = SLICED[name]
    made = network(text, shape)
    package = compile_graph(load_proto(made), Options(), "joined")
    kinds = [type(step.function.call.kind) for step in package.plan.steps()]
    assert (Concat not in kinds) == is_view
    x = np.arange(48, dtype=np.float32).reshape(2, 24)
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    got = build(package, Options().resolved_target()).run({"x": x})["y"]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("runs", [True, False])
def test_functions_take_no_more_operands_than_c99_promises(runs: bool) -> None:
    """More than 127, next to each other but for one, or none of them so."""
    count, size = 300, 2
    names = [f"p{n}" for n in range(count)]
    order = [name for name in names if name != "p7"] if runs else [f"p{n * 7 % count}" for n in range(count)]
    made = parser.parse_model(
        f"{HEAD}(float[{count * size}] x) => (float[{len(order) * size}] y)"
        f" {{ {', '.join(names)} = Split<axis=0>(x) c = Concat<axis=0>({', '.join(order)}) y = Neg(c) }}"
    )
    package = compile_graph(load_proto(made), Options(), "joined")
    assert max(len(step.function.call.ins) for step in package.plan.steps()) < 127 - 10
    x = np.arange(count * size, dtype=np.float32)
    got = build(package, Options().resolved_target()).run({"x": x})["y"]
    parts = dict(zip(names, -x.reshape(count, size), strict=True))
    np.testing.assert_array_equal(got, np.concatenate([parts[name] for name in order]))
