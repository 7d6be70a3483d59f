"""`--observe`: inner tensors become outputs, and no result changes for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.toolchain.run import Model
from tests.passes.graph import exact_qdq

QUANTIZED = """
    <ir_version: 10, opset_import: ["" : 18]> g (int8[1,8,6,6] a, uint8[1,8,1,1] b) => (int8[1,8,3,3] y)
    <float sa = {0.037977736}, int8 za = {127}, float sb = {0.038812906}, uint8 zb = {0}, float s = {0.05419751},
     int8 z = {114}>
    { [da] da = DequantizeLinear(a, sa, za) [db] db = DequantizeLinear(b, sb, zb) [m] m = Mul(da, db)
      [q] q = QuantizeLinear(m, s, z) [d] d = DequantizeLinear(q, s, z)
      [p] p = AveragePool<kernel_shape = [2,2], strides = [2,2]>(d) [y] y = QuantizeLinear(p, s, z) }
"""


def compiled(made: ModelProto, *names: str) -> Package:
    return compile_graph(load_proto(made), Options(observe=names), "g")


@pytest.mark.parametrize("names", [("da",), ("m",), ("q",), ("p",), ("p", "m", "p")], ids=",".join)
def test_looking_changes_no_integer(names: tuple[str, ...], tmp_path: Path) -> None:
    """Halves are rounded once, as rational numbers; floats between them would round them elsewhere."""
    made, random = parser.parse_model(QUANTIZED), np.random.default_rng(5)
    feeds = {
        "a": random.integers(-128, 128, (1, 8, 6, 6)).astype(np.int8),
        "b": random.integers(0, 256, (1, 8, 1, 1)).astype(np.uint8),
    }
    package = compiled(made, *names)
    package.write(tmp_path / "out")
    got = Model.build(tmp_path / "out").run(feeds)
    assert list(got) == ["y", *dict.fromkeys(names)]
    wanted: dict[str, Any] = {}
    exact_qdq.run(made, dict(feeds), wanted)
    for name in ("y", *names):
        if got[name].dtype == np.float32:
            np.testing.assert_allclose(got[name], wanted[name].floats(), rtol=0, atol=1e-5)
        else:
            assert np.array_equal(got[name], wanted[name])


def test_floats_are_looked_at_where_they_are() -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) { a = Exp(x) y = Sin(a) }'
    plan = compiled(parser.parse_model(text), "a").plan
    assert [output.name for output in plan.outputs] == ["y", "a"]
    assert sum("a" in step.provenance for step in plan.steps()) == 1


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(WrongUse, match="no tensor 'pp' to observe"):
        compiled(parser.parse_model(QUANTIZED), "pp")
