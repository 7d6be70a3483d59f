"""A Gather or Slice of few tokens goes in front of the products that make them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mccompile.driver import Options, compile
from mccompile.toolchain.run import Model
from tests.small_models import compiled, floats, reference, save, written

PLAIN, OFF = Options(), Options(without=frozenset({"move_gather"}))
MLP = "h = MatMul (x, w)\n g = Relu (h)\n y = MatMul (g, v)"
TAKEN = {
    "scalar": "int64 at = {0}",
    "last": "int64[1] at = {-1}",
    "pair": "int64[2] at = {5, 1}",
}


def network(body: str, constants: str = "", tokens: int | str = 9, result: str = "[1,8]") -> onnx.ModelProto:
    made = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    tokens (float[1,{tokens},8] x) => (float{result} out) <{constants}> {{ {body} }}""")
    weights = {"w": floats(0, 8, 16), "v": floats(1, 16, 8), "q": floats(2, 8, 8), "s": floats(3, 8)}
    read = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in weights.items() if name in read)
    return made


def macs(made: onnx.ModelProto, options: Options = PLAIN) -> int:
    return sum(step.macs for step in compiled(made, options).plan.steps())


def is_right(made: onnx.ModelProto, folder: Path, options: Options = PLAIN) -> None:
    x = {"x": floats(4, 1, 9, 8)}
    result = Model.build(written(made, folder, options)).run(x)["out"]
    np.testing.assert_allclose(result, reference(made, x)["out"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("index", TAKEN)
def test_products_of_other_tokens_are_not_computed(index: str, tmp_path: Path) -> None:
    taken = 2 if index == "pair" else 1
    result = "[1,8]" if index == "scalar" else f"[1,{taken},8]"
    made = network(f"{MLP}\n out = Gather <axis = 1> (y, at)", TAKEN[index], result=result)
    assert macs(made) * 9 == macs(made, OFF) * taken
    is_right(made, tmp_path)


def test_a_slice_is_taken_early(tmp_path: Path) -> None:
    bounds = "int64[1] start = {-3}, int64[1] end = {9223372036854775807}, int64[1] axis = {1}, int64[1] step = {2}"
    made = network(f"{MLP}\n out = Slice (y, start, end, axis, step)", bounds, result="[1,2,8]")
    assert macs(made) * 9 == macs(made, OFF) * 2
    is_right(made, tmp_path)


ATTENTION = """
    n = LayerNormalization <axis = -1> (x, s)
    k = MatMul (n, q)
    kh = Reshape (k, heads)
    kt = Transpose <perm = [0, 2, 3, 1]> (kh)
    r = MatMul (n, q)
    rh = Reshape (r, heads)
    rt = Transpose <perm = [0, 2, 1, 3]> (rh)
    scores = MatMul (rt, kt)
    seen = Where (mask, scores, low)
    p = Softmax <axis = -1> (seen)
    vt = Transpose <perm = [0, 2, 1, 3]> (kh)
    m = MatMul (p, vt)
    mt = Transpose <perm = [0, 2, 1, 3]> (m)
    flat = Reshape (mt, joined)
    a = Add (x, flat)
    f = MatMul (a, w)
    g = Relu (f)
    d = MatMul (g, v)
    y = Add (a, d)
    out = Gather <axis = 1> (y, at)
"""
SIZES = "int64[4] heads = {0, -1, 2, 4}, int64[3] joined = {0, -1, 8}, float low = {-1e9}, int64[1] at = {-1}"


def attention(tokens: int | str = 9) -> onnx.ModelProto:
    positions = "size = Shape <start = 1, end = 2> (x)\n count = Squeeze (size)\n all = Range (zero, count, one)\n"
    mask = positions + "rows = Unsqueeze (all, axis1)\n mask = LessOrEqual (all, rows)\n"
    numbers = f"{SIZES}, int64 zero = {{0}}, int64 one = {{1}}, int64[1] axis1 = {{1}}"
    return network(mask + ATTENTION, numbers, tokens, "[1,1,8]")


def test_one_query_meets_all_keys(tmp_path: Path) -> None:
    made = attention()
    keys, query, mixing, feed_forward = 9 * 8 * 8, 8 * 8, 2 * 9 * 8, 2 * 8 * 16
    assert keys + query + mixing + feed_forward >= macs(made) >= keys + mixing + feed_forward
    assert macs(made) < 0.3 * macs(made, OFF)
    is_right(made, tmp_path)


def test_the_number_of_tokens_may_be_free(tmp_path: Path) -> None:
    path = save(attention("tokens"), tmp_path)
    package = compile(path, Options(dims={"tokens": (1, 12)}))
    package.write(tmp_path / "out")
    assert package.macs < 0.4 * compile(path, replace(OFF, dims={"tokens": (1, 12)})).macs
    x = {"x": floats(4, 1, 9, 8)}
    result = Model.build(tmp_path / "out").run(x)["out"]
    np.testing.assert_allclose(result, reference(attention("tokens"), x)["out"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "h = MatMul (x, w)\n y = MatMul (h, v)\n t = Softmax <axis = 1> (y)\n out = Gather <axis = 1> (t, at)",
        "y = MatMul (x, q)\n a = Gather <axis = 1> (y, at)\n b = ReduceMax <axes = [1], keepdims = 0> (y)\n"
        " out = Add (a, b)",
        "y = MatMul (x, q)\n a = Gather <axis = 1> (y, at)\n b = Gather <axis = 1> (y, other)\n out = Add (a, b)",
    ],
    ids=["sums over tokens", "another reader", "another token"],
)
def test_what_others_need_is_computed(body: str, tmp_path: Path) -> None:
    made = network(body, "int64 at = {0}, int64 other = {3}")
    assert macs(made) == macs(made, OFF)
    is_right(made, tmp_path)


def test_without_a_product_nothing_moves() -> None:
    made = network("y = Relu (x)\n out = Gather <axis = 1> (y, at)", TAKEN["scalar"])
    one, other = (compiled(made, options).files for options in (PLAIN, OFF))
    assert all(one[name] == other[name] for name in one if name.endswith(".c"))


def test_columns_of_weights_are_selected_when_compiling(tmp_path: Path) -> None:
    made = network("y = MatMul (x, w)\n out = Gather <axis = 2> (y, at)", "int64[2] at = {3, 1}", result="[1,9,2]")
    assert macs(made) * 8 == macs(made, OFF)
    is_right(made, tmp_path)
