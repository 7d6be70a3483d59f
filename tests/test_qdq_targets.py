"""Random quantized networks give the same integers on every target that runs on this machine, with and without
optimization: those of rational arithmetic. `make test-embedded` asks the emulated targets the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from onnx import ModelProto, parser

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.targets import api as targets
from tests.passes.graph.exact_qdq import run
from tests.passes.qdq_graphs import networks, networks_of_16_bits, some_integers

NATIVE = targets.load("native")
HERE = [
    name
    for name in ("generic", "native", "x86-64-v3", "x86-64-v4", "aarch64")
    if not targets.load(name).run and set(targets.load(name).isas) <= set(NATIVE.isas)
]
OPTIONS = [Options(name="qdq", target=name) for name in HERE] + [Options(name="qdq", optimize=False)]


FEW = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))


@settings(FEW, max_examples=5)
@given(networks(widest=24, fewest=3, most=6))
def test_random_networks_agree_exactly(model: ModelProto) -> None:
    agree(model)


@settings(FEW, max_examples=2)
@given(networks_of_16_bits())
def test_activations_of_16_bits_agree_exactly(model: ModelProto) -> None:
    agree(model)


@pytest.mark.parametrize("channels", [1, 13])
def test_a_depthwise_convolution_between_bytes_may_end_in_floats(channels: int) -> None:
    weights = ", ".join(str(7 * i % 23 - 11) for i in range(channels))
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 19]>
        ends_in_floats (float[1,{channels},1,3] x) => (float[1,1,3,{channels}] z)
        <float xs = {{0.03125}}, uint8 xz = {{117}}, int8[{channels},1,1,1] w = {{{weights}}}, float ws = {{0.0078125}},
         float ys = {{0.125}}, uint8 yz = {{101}}>
        {{
            xq = QuantizeLinear(x, xs, xz)
            xd = DequantizeLinear(xq, xs, xz)
            wd = DequantizeLinear(w, ws)
            c = Conv <group = {channels}> (xd, wd)
            yq = QuantizeLinear(c, ys, yz)
            y = DequantizeLinear(yq, ys, yz)
            z = Transpose <perm = [0, 2, 3, 1]> (y)
        }}""")
    x = np.linspace(-3, 3, 3 * channels, dtype=np.float32).reshape(1, channels, 1, 3)
    found = []
    for options in OPTIONS:
        package = compile_graph(load_proto(model), options, "qdq")
        found.append(build(package, options.resolved_target()).run({"x": x})["z"])
    assert found[0].any()
    for options, array in zip(OPTIONS, found, strict=True):
        np.testing.assert_array_equal(array, found[0], err_msg=options.target)


def agree(model: ModelProto) -> None:
    inputs = some_integers(model)
    want = run(model, inputs)
    for options in OPTIONS:
        package = compile_graph(load_proto(model), options, "qdq")
        found = build(package, options.resolved_target()).run(inputs)
        for name, array in want.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{options.target} {options.optimize} {name}")
