"""Random quantized networks give the same integers on every target that runs on this machine, with and without
optimization: those of rational arithmetic. `make test-embedded` asks the emulated targets the same."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from onnx import ModelProto

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


def agree(model: ModelProto) -> None:
    inputs = some_integers(model)
    want = run(model, inputs)
    for options in OPTIONS:
        package = compile_graph(load_proto(model), options, "qdq")
        found = build(package, options.resolved_target()).run(inputs)
        for name, array in want.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{options.target} {options.optimize} {name}")
