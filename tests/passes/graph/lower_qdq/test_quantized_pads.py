"""Padding between quantized tensors costs nothing: exporters write it as an operator of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mccompile.driver import Options
from mccompile.toolchain.run import Model
from tests.small_models import compiled, written

W = np.random.default_rng(0).integers(-127, 128, (8, 8, 3, 3)).astype(np.int8)
CONV = "Conv <kernel_shape = [3, 3], pads = {pads}> ({x}, wf)"
POOL = "AveragePool <kernel_shape = [3, 3], pads = {pads}, count_include_pad = 1> ({x})"


def network(body: str, dtype: str, zero: int) -> onnx.ModelProto:
    """`body` makes floats y from integers x."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    padded ({dtype}[1,8,16,16] x) => ({dtype}[1,8,16,16] yq)
    <float s = {{0.05}}, {dtype} z = {{{zero}}}, float s2 = {{0.4}}, float ws = {{0.01}}, int8 wz = {{0}},
     int64[8] p = {{0, 0, 1, 1, 0, 0, 1, 1}}, float other = {{0.05}}> {{
        {body}
        yq = QuantizeLinear(y, s2, z)
    }}"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.append(numpy_helper.from_array(W, "w"))
    return made


def padded(operator: str, number: str = "") -> str:
    return f"""xf = DequantizeLinear(x, s, z)
        pf = Pad(xf, p{number})
        pq = QuantizeLinear(pf, s, z)
        pd = DequantizeLinear(pq, s, z)
        wf = DequantizeLinear(w, ws, wz)
        y = {operator.format(pads="[0, 0, 0, 0]", x="pd")}"""


def within(operator: str) -> str:
    return f"""pd = DequantizeLinear(x, s, z)
        wf = DequantizeLinear(w, ws, wz)
        y = {operator.format(pads="[1, 1, 1, 1]", x="pd")}"""


@pytest.mark.parametrize("operator", [CONV, POOL], ids=["conv", "average_pool"])
@pytest.mark.parametrize(("dtype", "zero"), [("int8", 3), ("int8", 0), ("uint8", 200)])
def test_a_pad_of_zeros_is_part_of_the_operator_behind_it(operator: str, dtype: str, zero: int, tmp_path: Path) -> None:
    models = [network(body(operator), dtype, zero) for body in (padded, within)]
    arenas = [compiled(made, Options(target="cortex-m4")).plan.arena_bytes for made in models]
    assert arenas[0] == arenas[1]
    x = np.random.default_rng(1).integers(*((-128, 128) if dtype == "int8" else (0, 256)), (1, 8, 16, 16)).astype(dtype)
    found = [Model.build(written(made, tmp_path / str(n))).run({"x": x})["yq"] for n, made in enumerate(models)]
    np.testing.assert_array_equal(*found)


def test_a_pad_of_another_number_stays(tmp_path: Path) -> None:
    made = network(padded(CONV, ", other"), "int8", 3)
    x = np.full((1, 8, 16, 16), 3, np.int8)  # zeros
    plain = Model.build(written(made, tmp_path / "plain", Options(optimize=False))).run({"x": x})["yq"]
    assert len(np.unique(plain)) > 1
    np.testing.assert_array_equal(Model.build(written(made, tmp_path / "best")).run({"x": x})["yq"], plain)
