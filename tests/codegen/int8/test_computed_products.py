"""Products of two computed matrices of bytes take the kernel with dot products where it packs whole steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1024, 1024), (8, 512, 512), (64, 128, 64)])
def test_dot_products_are_chosen(target: str, m: int, k: int, n: int) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (uint8[{m},{k}] a, int8[{k},{n}] b) => (int32[{m},{n}] y) {{ y = MatMulInteger (a, b) }}""")
    plan = compile_graph(load_proto(model, Path()), Options(target=target), "product").plan
    assert [step.function.kernel.id for step in plan.steps()] == ["gemm/i8_batches_tile__dot"]
