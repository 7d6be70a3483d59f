"""Ethos-U: what goes to Vela, what stays, and the calls of Arm's driver, with a stand-in of that."""

from __future__ import annotations

import importlib.util
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.accelerators.ethos_u import backend
from mccompile.accelerators.registry import accelerator
from mccompile.base.errors import WrongUse
from mccompile.base.own_functions import own_function
from mccompile.driver import Options, compile
from mccompile.measure import correctness
from mccompile.measure.building import build
from mccompile.targets import api as targets
from mccompile.toolchain.tools import missing
from tests.small_models import save

needs_vela = pytest.mark.skipif(importlib.util.find_spec("ethosu") is None, reason="Vela is not installed")
ASKED = Options(accelerator="ethos-u55-128")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
NODES = """
    xr = DequantizeLinear (x, s, z)
    wr = DequantizeLinear <axis = 0> (w, ws, wz)
    br = DequantizeLinear <axis = 0> (b, bs)
    [conv] c = Conv <pads = [1, 1, 1, 1]> (xr, wr, br)
    [relu] r = Relu (c)
    q = QuantizeLinear (r, s2, z)
    qr = DequantizeLinear (q, s2, z)
    [sum] a = Add (qr, xr)
    q2 = QuantizeLinear (a, s, z)
    q2r = DequantizeLinear (q2, s, z)
    [sine] m = Sin (q2r)
    q3 = QuantizeLinear (m, s3, z)
    q3r = DequantizeLinear (q3, s3, z)
    vr = DequantizeLinear (v, s, wz0)
    [depthwise] d = Conv <group = 16, strides = [2, 2], pads = [0, 0, 1, 1]> (q3r, vr)
    q4 = QuantizeLinear (d, s, z)
    q4r = DequantizeLinear (q4, s, z)
    [pool] p = AveragePool <kernel_shape = [8, 8]> (q4r)
    y = QuantizeLinear (p, s, z)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, np.int8(-3))


def saved(folder: Path, zero: np.generic) -> Path:
    """`zero`: the zero point of activations, which have its type."""
    kind = zero.dtype.name
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20]> m ({kind}[1,16,16,16] x) => ({kind}[1,16,1,1] y) {{ {NODES} }}'
    )
    draw = np.random.default_rng(1)
    scales = draw.uniform(0.002, 0.004, 16).astype(np.float32)
    weights = {
        "s": np.float32(0.05), "s2": np.float32(0.03), "s3": np.float32(1 / 64), "z": zero, "wz0": np.int8(0),
        "w": draw.integers(-127, 128, (16, 16, 3, 3), np.int8), "ws": scales, "wz": np.zeros(16, np.int8),
        "b": draw.integers(-999, 999, 16, np.int32), "bs": scales * np.float32(0.05),
        "v": draw.integers(-127, 128, (16, 1, 3, 3), np.int8),
    }  # fmt: skip
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in weights.items())
    onnx.save(made, folder / "m.onnx")
    return folder / "m.onnx"


@needs_vela
def test_regions_go_to_vela_and_the_rest_to_the_core(model: Path, tmp_path: Path) -> None:
    package = compile(model, replace(ASKED, target="cortex-m55"))
    partition = package.plan.partition
    assert partition is not None
    assert [list(region.provenance) for region in partition.taken] == [["conv", "relu", "sum"], ["depthwise", "pool"]]
    assert [(left.provenance, left.what) for left in partition.left] == [(("sine",), "Sin")]
    assert all(region.workspace >= 4096 and region.cycles < region.core_cycles for region in partition.taken)
    package.write(tmp_path / "out")
    words = ["gcc", *STRICT, "-I", "out/runtime", "-c"]
    for region in partition.taken:
        source = tmp_path / f"{region.name}.c"
        lines = ("int f(const mcc_external *);", f"int f(const mcc_external *call) {{ return {region.name}(call); }}")
        source.write_text("\n".join([f'#include "{region.name}.h"', *lines, ""]), encoding="utf-8")
        subprocess.run([*words, source.name], cwd=tmp_path, check=True)


@needs_vela
@pytest.mark.parametrize("target", ["generic", "cortex-m55"])
def test_the_driver_is_called_as_it_asks(model: Path, target: str) -> None:
    if target != "generic" and missing(["arm-none-eabi-gcc", "qemu-system-arm"]):
        pytest.skip("nothing emulates the board")
    assert correctness.check(model, replace(ASKED, target=target)).ok


@needs_vela
def test_regions_of_uint8_are_those_of_int8(model: Path, tmp_path: Path) -> None:
    taken, results = [], []
    (tmp_path / "u8").mkdir()
    for path, more in ((model, 0), (saved(tmp_path / "u8", np.uint8(125)), 128)):
        package = compile(path, replace(ASKED, target="generic"))
        assert package.plan.partition is not None
        taken.append([region.provenance for region in package.plan.partition.taken])
        x = np.random.default_rng(2).integers(-128, 128, (1, 16, 16, 16)) + more
        x = x.astype(package.plan.inputs[0].type.dtype.numpy)
        results.append(build(package, targets.load("generic")).run({"x": x})["y"].astype(int) - more)
    assert len(taken[0]) == 2 and taken[0] == taken[1]
    assert np.array_equal(*results)


@needs_vela
@pytest.mark.parametrize("name", ["ethos-u65-256", "ethos-u85-256"])
def test_larger_cores_need_no_second_memory(model: Path, name: str) -> None:
    partition = compile(model, Options(accelerator=name, target="cortex-m55")).plan.partition
    assert partition is not None and len(partition.taken) == 2


HALVED = """
static int halved(const mcc_external *call)
{
    const float *x = (const float *)call->operands[0].data;
    float *y = (float *)call->results[0].data;
    size_t count = 1;
    for (int axis = 0; axis < call->operands[0].rank; ++axis) { count *= (size_t)call->operands[0].shape[axis]; }
    for (size_t i = 0; i < count; ++i) { y[i] = x[i] * 0.5f; }
    return 0;
}
"""
BETWEEN = {
    "ConvTranspose": "ur = DequantizeLinear (u, s, z0) m = ConvTranspose <group = 2, strides = [2, 2]> (ar, ur)",
    "GRU": "f = Reshape (ar, steps) h, last = GRU <hidden_size = 16> (f, gw, gr) m = Reshape (h, picture)",
    "Sigmoid": "m = com.microsoft.QuickGelu (ar)",
}


@needs_vela
@pytest.mark.parametrize("left", BETWEEN)
def test_the_core_computes_between_two_regions(left: str, tmp_path: Path) -> None:
    if missing(["arm-none-eabi-gcc", "qemu-system-arm"]):
        pytest.skip("nothing emulates the board")
    path = save(between_regions(BETWEEN[left]), tmp_path)
    asked = replace(ASKED, target="cortex-m55")
    partition = compile(path, asked).plan.partition
    assert partition is not None
    assert [region.provenance for region in partition.taken] == [("first", "relu"), ("second",)]
    assert left in " ".join(each.what for each in partition.left)
    assert correctness.check(path, asked).ok


def between_regions(nodes: str, domain: str = "com.microsoft") -> onnx.ModelProto:
    made = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20, "{domain}" : 1]>
        m (int8[1,8,16,16] x) => (int8[1,8,height,width] y) {{
        xr = DequantizeLinear (x, s, z)
        wr = DequantizeLinear <axis = 0> (w, ws, wz)
        [first] a = Conv <pads = [1, 1, 1, 1]> (xr, wr)
        [relu] r = Relu (a)
        aq = QuantizeLinear (r, s, z)
        ar = DequantizeLinear (aq, s, z)
        {nodes}
        mq = QuantizeLinear (m, s, z)
        mr = DequantizeLinear (mq, s, z)
        [second] b = Conv <pads = [1, 1, 1, 1]> (mr, wr)
        y = QuantizeLinear (b, s, z) }}""")
    draw = np.random.default_rng(1)
    weights = {
        "s": np.float32(0.05), "z": np.int8(-3), "z0": np.int8(0), "wz": np.zeros(8, np.int8),
        "w": draw.integers(-127, 128, (8, 8, 3, 3), np.int8), "ws": draw.uniform(0.002, 0.004, 8).astype(np.float32),
        "u": draw.integers(-9, 9, (8, 4, 2, 2), np.int8), "steps": np.array([128, 1, 16]),
        "gw": draw.standard_normal((1, 48, 16)).astype(np.float32), "picture": np.array([1, 8, 16, 16]),
        "gr": draw.standard_normal((1, 48, 16)).astype(np.float32) / 4,
    }  # fmt: skip
    used = {name for node in made.graph.node for name in node.input}
    given = {name: np.asarray(each) for name, each in weights.items() if name in used}
    made.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in given.items())
    return made


@needs_vela
def test_floats_are_no_region_and_say_why(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 20]> m (float[1,8] x) => (float[1,8] y) { y = Relu (x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    partition = compile(tmp_path / "m.onnx", ASKED).plan.partition
    assert partition is not None and not partition.taken
    assert [left.why for left in partition.left] == ["it is not between quantized tensors"]


def test_without_vela_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    with pytest.raises(WrongUse, match="pip install ethos-u"):
        accelerator("ethos-u85-256")


@needs_vela
@pytest.mark.parametrize("relu", ["", "Relu"])
def test_average_pools_round_halves_away_from_zero_as_they_do_there(relu: str, tmp_path: Path) -> None:
    made = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]> m (int8[1,16,32,32] x) => (int8[1,16,16,16] y)
        <float s = {{0.05}}, int8 z = {{-3}}> {{
        xr = DequantizeLinear (x, s, z)
        p = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (xr)
        r = {relu or "Identity"} (p)
        y = QuantizeLinear (r, s, z) }}""")
    package = compile(save(made, tmp_path), ASKED)
    assert package.plan.partition is not None and len(package.plan.partition.taken) == 1
    x = np.random.default_rng(1).integers(-128, 128, (1, 16, 32, 32)).astype(np.int8)
    (y,) = build(package, targets.load("generic")).run({"x": x}).values()
    mean = x.reshape(1, 16, 16, 2, 16, 2).astype(np.float64).mean((3, 5))
    away = np.sign(mean) * np.floor(np.abs(mean) + 0.5)
    assert np.array_equal(y, np.maximum(away, -3) if relu else away)


BETWEEN_CONVOLUTIONS = {
    "BatchNormalization": "n = BatchNormalization (a, gain, shift, mean, wide) [relu] r = Relu (n)",
    "factors and sums": "m1 = Mul (a, gain3) m2 = Add (m1, shift3) [relu] r = Clip (m2, zero, six)",
}


@needs_vela
@pytest.mark.parametrize("behind", BETWEEN_CONVOLUTIONS)
def test_what_is_done_to_channels_is_part_of_a_convolution(behind: str, tmp_path: Path) -> None:
    made = between_regions("mq1 = Identity (aq) m = DequantizeLinear (mq1, s, z)")
    text = BETWEEN_CONVOLUTIONS[behind]
    nodes = parser.parse_graph(f"g (float[1,8,16,16] a) => (float[1,8,16,16] r) {{ {text} }}").node
    (relu,) = (place for place, node in enumerate(made.graph.node) if node.op_type == "Relu")
    rest = [*made.graph.node[:relu], *nodes, *made.graph.node[relu + 1 :]]
    del made.graph.node[:]
    made.graph.node.extend(rest)
    each = np.linspace(-0.5, 1.5, 8, dtype=np.float32)
    more = {"gain": each, "shift": each, "mean": each, "wide": np.abs(each) + 1, "zero": np.float32(0)}
    more |= {"gain3": each.reshape(8, 1, 1), "shift3": each.reshape(8, 1, 1), "six": np.float32(6)}
    used = {name for node in rest for name in node.input}
    given = {name: np.asarray(array) for name, array in more.items() if name in used}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in given.items())
    path = save(made, tmp_path)
    partition = compile(path, ASKED).plan.partition
    assert partition is not None and not partition.left and len(partition.taken) == 1
    assert correctness.check(path, ASKED).ok


@needs_vela
@pytest.mark.parametrize(("op", "function"), [("Sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("Tanh", np.tanh)])
def test_tables_of_vela_have_the_scale_of_the_result(op: str, function: Any, tmp_path: Path) -> None:
    made = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]> m (int8[1,8,32,32] x) => (int8[1,8,32,32] y)
        <float s = {{0.03}}, int8 z = {{-3}}, float s2 = {{0.0045}}, int8 z2 = {{5}}> {{
        xr = DequantizeLinear (x, s, z)
        f = {op} (xr)
        y = QuantizeLinear (f, s2, z2) }}""")
    package = compile(save(made, tmp_path), replace(ASKED, blob="external"))
    reals = (np.arange(-128, 128) + 3) * np.float64(np.float32(0.03))
    table = np.clip(np.rint(function(reals) / np.float64(np.float32(0.0045)) + 5), -128, 127).astype(np.int8)
    assert any(table.tobytes() in bytes(text) for text in package.files.values())


@needs_vela
def test_a_custom_operator_stands_between_two_regions(tmp_path: Path) -> None:
    header = tmp_path / "halved.h"
    header.write_text(HALVED, encoding="utf-8")
    header.with_suffix(".py").write_text(
        "def run(operands, attributes):\n    return [operands[0] / 2]\n", encoding="utf-8"
    )
    path = save(between_regions("m = theirs.Halve (ar)", "theirs"), tmp_path)
    function = own_function(f"Halve=halved,result=f32:1x8x16x16,include={header},python={header.with_suffix('.py')}")
    asked = replace(ASKED, functions=(function,))
    partition = compile(path, asked).plan.partition
    assert partition is not None
    assert [region.provenance for region in partition.taken] == [("first", "relu"), ("second",)]
    assert correctness.check(path, asked).ok
