"""Products of two computed matrices of bytes take kernels that pack one of them, and are rescaled in 32 bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, parser

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.targets.api import Prefer


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1024, 1024), (8, 512, 512), (64, 128, 64)])
def test_dot_products_are_chosen(target: str, m: int, k: int, n: int) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (uint8[{m},{k}] a, int8[{k},{n}] b) => (int32[{m},{n}] y) {{ y = MatMulInteger (a, b) }}""")
    plan = compile_graph(load_proto(model, Path()), Options(target=target), "product").plan
    assert [step.function.kernel.id for step in plan.steps()] == ["gemm/i8_batches_tile__dot"]


def quantized(m: int, k: int, n: int) -> ModelProto:
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (int8[2,{m},{k}] a, int8[2,{k},{n}] b) => (int8[2,{m},{n}] y)
        <float s = {{0.05}}, float t = {{0.3}}, int8 z = {{-3}}> {{
            ad = DequantizeLinear (a, s, z)
            bd = DequantizeLinear (b, s, z)
            c = MatMul (ad, bd)
            y = QuantizeLinear (c, t, z)
        }}""")


@pytest.mark.parametrize("prefer", ["ram", "time", "balanced"])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33", "cortex-m55"])
@pytest.mark.parametrize(("m", "k", "n"), [(16, 32, 16), (9, 31, 7)])
def test_dsp_cores_multiply_pairs(target: str, prefer: str, m: int, k: int, n: int) -> None:
    found = compile_graph(load_proto(quantized(m, k, n), Path()), Options(target=target, prefer=Prefer(prefer)), "p")
    assert [step.function.kernel.id for step in found.plan.steps()] == ["gemm/i8_batches_pairs__dsp"]


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "x86-64-v3"])
def test_sums_are_rescaled_in_32_bits(target: str) -> None:
    found = compile_graph(load_proto(quantized(4, 24, 9), Path()), Options(target=target), "product")
    assert not any("mcc_fixed_round" in str(contents) for name, contents in found.files.items() if "kernels" in name)
