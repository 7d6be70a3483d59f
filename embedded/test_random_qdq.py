"""Random quantized networks give the integers of rational arithmetic on every emulated target."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from onnx import ModelProto, numpy_helper

from embedded.test_targets import TARGETS
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.targets.api import Prefer
from tests.passes.graph.exact_qdq import run
from tests.passes.qdq_graphs import networks, networks_of_16_bits, some_integers

FEW = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))


@pytest.mark.parametrize("target", TARGETS)
@settings(FEW, max_examples=4)
@given(model=networks(widest=40, fewest=3, most=6))
def test_random_networks_agree_exactly(target: str, model: ModelProto) -> None:
    agree(target, model)


@pytest.mark.parametrize("target", TARGETS)
@settings(FEW, max_examples=2)
@given(model=networks_of_16_bits())
def test_activations_of_16_bits_agree_exactly(target: str, model: ModelProto) -> None:
    agree(target, model)


@settings(FEW, max_examples=4)
@given(model=networks(widest=40, fewest=3, most=6))
def test_weights_of_4_bits_agree_exactly(model: ModelProto) -> None:
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name.startswith("w") and array.dtype == np.int8 and array.ndim > 1:
            tensor.CopyFrom(numpy_helper.from_array(array >> 4, tensor.name))
        elif tensor.name.startswith("w_scale"):
            tensor.CopyFrom(numpy_helper.from_array(array * np.float32(16), tensor.name))
    agree("cortex-m4", model, Prefer.FLASH)


@settings(FEW, max_examples=4)
@given(model=networks(widest=40, fewest=3, most=6))
def test_channels_with_two_numbers_agree_exactly(model: ModelProto) -> None:
    """As sums are rescaled where flash comes first."""
    agree("cortex-m4", model, Prefer.FLASH)


def agree(target: str, model: ModelProto, prefer: Prefer | None = None) -> None:
    inputs, options = some_integers(model), Options(name="qdq", target=target, prefer=prefer)
    found = build(compile_graph(load_proto(model), options, "qdq"), options.resolved_target()).run(inputs)
    for name, array in run(model, inputs).items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
