"""Rows whose number is known only at run time, by weights of few bits: one is computed apart from many."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.targets.api import load as load_target
from tests.thorough import some

DEPTH, COLUMNS = 328, 43  # more than a piece of the sum, and a block and a tile that are not full


def model(stored: str, columns: int = COLUMNS) -> tuple[ModelProto, np.ndarray]:
    """SiLU(x @ weights) + z, and the weights."""
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[n, {DEPTH}] x, float[n, {columns}] z) => (float[n, {columns}] y) {{
            w = DequantizeLinear <axis = 0, block_size = 32> (levels, scales)
            h = MatMul(x, w)
            s = Sigmoid(h)
            g = Mul(h, s)
            y = Add(g, z)
        }}"""
    chance = np.random.default_rng(3)
    high = 8 if stored == "INT4" else 128
    levels, scales = chance.integers(-high, high, (DEPTH, columns)), chance.uniform(0.1, 1, (11, columns)) / high
    made = parser.parse_model(text)
    kind = getattr(TensorProto, stored)
    made.graph.initializer.append(helper.make_tensor("levels", kind, levels.shape, levels.flat))
    made.graph.initializer.append(helper.make_tensor("scales", TensorProto.FLOAT, scales.shape, scales.flat))
    return made, levels * scales.astype(np.float32).repeat(32, 0)[:DEPTH]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stored", ["INT4", "INT8"])
@some(1, "target", ["generic", "native"])
def test_one_row_and_many(target: str, stored: str, threads: int) -> None:
    made, weights = model(stored)
    options = Options(target=target, threads=threads)
    package = compile_graph(load_proto(made, dims={"n": (1, 70)}), options, "rows")
    (step,) = [s for s in package.plan.steps() if s.function.kernel.kind.__name__ == "BlockGemm"]
    if target == "native" and "vec" in load_target(target).isas:
        assert step.function.kernel.id == "block_gemm/f32_rows_tile__vec"
    built = build(package, load_target(target))
    chance = np.random.default_rng(4)
    x, z = (chance.standard_normal((70, size)).astype(np.float32) for size in (DEPTH, COLUMNS))
    for first, end in pairwise((0, 1, 4, 70)):
        h = x[first:end].astype(np.float64) @ weights
        want = h / (1 + np.exp(-h)) + z[first:end]
        got = built.run({"x": x[first:end], "z": z[first:end]})["y"]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("stored", "columns", "is_fetched"), [("INT4", COLUMNS, False), ("INT4", 4096, True), ("INT8", 4096, False)]
)
def test_weights_that_no_cache_keeps_are_fetched_while_others_are_multiplied(
    stored: str, columns: int, is_fetched: bool
) -> None:
    for sizes in ((1, 1), (1, 70)):
        made = load_proto(model(stored, columns)[0], dims={"n": sizes})
        package = compile_graph(made, Options(target="x86-64-v3"), "rows")
        kernels = package.files["rows_kernels.c"].decode()
        assert ("__builtin_prefetch(packed + 2048, 0, 2);" in kernels) == is_fetched
