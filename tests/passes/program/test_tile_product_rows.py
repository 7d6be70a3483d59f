"""Products behind each other by blocks of rows: the same results, in less memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.toolchain.run import Model
from tests.thorough import some

CHANCE = np.random.default_rng(3)
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def floats(*shape: int) -> np.ndarray:
    return (CHANCE.standard_normal(shape) / 4).astype(np.float32)


def mlp(rows: int, tail: str = "", outputs: str = "float[1,r,8] y") -> ModelProto:
    """The second half of a layer of a transformer: eight channels, 64, and eight again."""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1,{rows},8] x) => ({outputs.replace("r", str(rows), 1)})'
        "{ n = LayerNormalization<axis=-1>(x, g, b) p = MatMul(n, w) q = Add(p, c) h = Relu(q) s = MatMul(h, v)"
        "  t = Add(s, d) y = Add(x, t)" + tail + "}"
    )
    weights = {"g": floats(8), "b": floats(8), "w": floats(8, 64), "c": floats(64), "v": floats(64, 8), "d": floats(8)}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def compiled(made: ModelProto, **options: object) -> Package:
    return compile_graph(load_proto(made), Options(**options), "mlp")


def products(package: Package) -> list[tuple[int, ...]]:
    steps = (step.function.call for step in package.plan.steps())
    return [call.outs[0].type.static_shape[-2:] for call in steps if call.kind.name == "gemm"]


def test_blocks_go_through_both_products(tmp_path: Path) -> None:
    made = mlp(96)
    package, plain = compiled(made), compiled(made, without=frozenset({"tile_product_rows"}))
    shapes = products(package)
    assert shapes == [(16, 64), (16, 8)] * 6 and products(plain) == [(96, 64), (96, 8)]
    assert package.plan.arena_bytes < 0.6 * plain.plan.arena_bytes
    functions = {step.function.name for step in package.plan.steps() if step.function.call.kind.name == "gemm"}
    assert len(functions) == 2
    package.write(tmp_path / "out")
    model, x = Model.build(tmp_path / "out", flags=STRICT), floats(1, 96, 8)
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(model.run({"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (mlp(30), {}),  # too short
        (mlp(96), {"rows": "off"}),
        (mlp(96), {"prefer": "time"}),  # short blocks would read the weights too often
        (mlp(1024), {"prefer": "time", "rows": "off"}),
        (mlp(1024), {"prefer": "time", "threads": 4}),  # and workers part them
        (mlp(96, " z = Abs(h)", "float[1,r,8] y, float[1,96,64] z"), {}),  # somebody else reads what lies between
    ],
    ids=["short", "off", "time", "time-off", "threads", "read"],
)
def test_what_stays_whole(made: ModelProto, options: dict[str, object]) -> None:
    shapes = products(compiled(made, **options))
    assert len(shapes) == 2


def test_long_blocks_take_no_time() -> None:
    assert products(compiled(mlp(1024), prefer="time")) == [(256, 64), (256, 8)] * 4


@pytest.mark.parametrize("rows", [97, 131])
def test_the_last_block_may_be_shorter(rows: int, tmp_path: Path) -> None:
    made = mlp(rows)
    package, plain = compiled(made), compiled(made, without=frozenset({"tile_product_rows"}))
    last, *others = sorted(rows for rows, channels in products(package) if channels == 64)
    assert last + sum(others) == rows and len(set(others)) == 1 and last < others[0]
    assert package.plan.arena_bytes < 0.6 * plain.plan.arena_bytes
    package.write(tmp_path / "out")
    model, x = Model.build(tmp_path / "out", flags=STRICT), floats(1, rows, 8)
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(model.run({"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)


def test_blocks_of_as_many_rows_are_preferred() -> None:
    """Three would be enough for what is needed elsewhere, but only four divide 100."""
    tail = " u = Concat<axis=2>(y, y) k = Exp(u) z = Mul(k, k)"
    blocks = {rows: products(compiled(mlp(rows, tail, f"float[1,r,8] y, float[1,{rows},16] z"))) for rows in (99, 100)}
    assert blocks == {99: [(33, 64), (33, 8)] * 3, 100: [(25, 64), (25, 8)] * 4}


def test_other_steps_that_need_as_much_are_not_gone_below() -> None:
    """As few blocks as bring the memory down to what is needed elsewhere."""
    made = mlp(96, " u = Concat<axis=2>(y, y, y, y) k = Exp(u) z = Mul(k, k)", "float[1,r,8] y, float[1,96,32] z")
    assert 2 < len(products(compiled(made))) < 12


QUANTIZED = (  # int8 between two layers, residual behind them
    '<ir_version: 8, opset_import: ["": 17]> g (float[96,8] x) => (float[96,8] y)'
    "{ xq = QuantizeLinear(x, s, z) xd = DequantizeLinear(xq, s, z) wd = DequantizeLinear(w, sw)"
    "  vd = DequantizeLinear(v, sw) p = MatMul(xd, wd) pq = QuantizeLinear(p, s, z) pd = DequantizeLinear(pq, s, z)"
    "  h = Relu(pd) hq = QuantizeLinear(h, s, z) hd = DequantizeLinear(hq, s, z) q = MatMul(hd, vd) t = Add(q, xd)"
    "  tq = QuantizeLinear(t, s, z) y = DequantizeLinear(tq, s, z) }"
)
PACKED = (  # weights of 4 bits
    '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[96,32] x) => (float[96,32] y)'
    "{ p = com.microsoft.MatMulNBits<K=32, N=128, bits=4, block_size=32>(x, w, a) h = Relu(p)"
    "  q = com.microsoft.MatMulNBits<K=128, N=32, bits=4, block_size=32>(h, v, b) y = Add(x, q) }"
)


def bytes_of(*shape: int, dtype: type = np.int8) -> np.ndarray:
    info = np.iinfo(dtype)
    return CHANCE.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("name", ["quantized", "packed"])
def test_blocks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    if name == "quantized":
        made, weights = parser.parse_model(QUANTIZED), {"w": bytes_of(8, 64), "v": bytes_of(64, 8)}
        weights |= {"s": np.float32(0.05), "sw": np.float32(0.01), "z": np.int8(-3)}
        x = floats(96, 8)
    else:
        made = parser.parse_model(PACKED)
        weights = {"w": bytes_of(128, 1, 16, dtype=np.uint8), "v": bytes_of(32, 4, 16, dtype=np.uint8)}
        weights |= {"a": np.abs(floats(128)), "b": np.abs(floats(128))}
        x = floats(96, 32)
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    results, sizes = [], []
    for without in (frozenset(), frozenset({"tile_product_rows"})):
        package = compiled(made, without=without)
        sizes.append((package.plan.arena_bytes, len(list(package.plan.steps()))))
        package.write(tmp_path / str(len(sizes)))
        results.append(Model.build(tmp_path / str(len(sizes)), flags=STRICT).run({"x": x})["y"])
    assert sizes[0][0] < sizes[1][0] and sizes[0][1] > sizes[1][1]
    assert np.array_equal(*results) and len(np.unique(results[0])) > 50


def chain(rows: int, *widths: int) -> ModelProto:
    """Layers one behind the other: each but the first and the last belongs to two pairs."""
    layers = list(pairwise(widths))
    lines = [f"p{i} = MatMul({f'h{i - 1}' if i else 'x'}, w{i}) h{i} = Relu(p{i})" for i in range(len(layers))]
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[{rows},{widths[0]}] x) => (float[{rows},{widths[-1]}] y)'
        "{" + " ".join(lines) + f" y = Identity(h{len(layers) - 1}) }}"
    )
    made.graph.initializer.extend(numpy_helper.from_array(floats(*shape), f"w{i}") for i, shape in enumerate(layers))
    return made


@pytest.mark.parametrize(
    "widths",
    [(16, 64, 64, 16), (8, 64, 64, 64, 8), (8, 16, 64, 16, 64, 8), (64, 8, 64, 64, 64, 8, 64)],
    ids=lambda widths: "-".join(map(str, widths)),
)
@some(1, "rows", [33, 64])
def test_pairs_that_share_a_product(rows: int, widths: tuple[int, ...], tmp_path: Path) -> None:
    made = chain(rows, *widths)
    package, plain = compiled(made), compiled(made, without=frozenset({"tile_product_rows"}))
    assert package.plan.arena_bytes <= plain.plan.arena_bytes and len(products(package)) > len(products(plain))
    package.write(tmp_path / "out")
    model, x = Model.build(tmp_path / "out", flags=STRICT), floats(rows, widths[0])
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(model.run({"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)
