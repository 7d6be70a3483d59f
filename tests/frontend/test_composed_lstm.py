"""onnxruntime's LSTM of bytes gives what onnxruntime gives.

A hidden state at the edge between two bytes could fall to either side of it, by the last bit of a float; with the fixed
numbers here none does, so that results are compared as closely as those of other operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from mccompile import backend
from mccompile.base.errors import MccError

from .test_composed import CONTRIB, agrees, i32, model_of

SEQUENCE, BATCH, INPUTS, HIDDEN = 5, 3, 7, 6
STATES = ("bias", "h0", "c0")


def _operands(
    directions: int = 1, dtype: type = np.uint8, channels: bool = False, given: tuple[str, ...] = STATES
) -> list[np.ndarray | None]:
    chance = np.random.default_rng(directions)

    def floats(*shape: int) -> np.ndarray:
        return chance.uniform(-1, 1, shape).astype(np.float32)

    def weights(depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bytes, scales and zero points. Those of columns must be alike in onnxruntime, and 0 where bytes are signed;
        those of directions need not."""
        lowest = int(np.iinfo(dtype).min)
        shape = (directions, 4 * HIDDEN) if channels else (directions,)
        middle = np.full(shape, lowest + 128)
        zero = middle if channels else middle + chance.integers(-9, 9, shape)
        numbers = chance.integers(lowest, lowest + 256, (directions, depth, 4 * HIDDEN))
        return numbers.astype(dtype), chance.uniform(0.002, 0.01, shape).astype(np.float32), zero.astype(dtype)

    x = floats(SEQUENCE, BATCH, INPUTS)
    w, w_scale, w_zero = weights(INPUTS)
    r, r_scale, r_zero = weights(HIDDEN)
    shapes = {
        "bias": (directions, 8 * HIDDEN),
        "h0": (directions, BATCH, HIDDEN),
        "c0": (directions, BATCH, HIDDEN),
        "peepholes": (directions, 3 * HIDDEN),
    }
    bias, h0, c0, peepholes = (floats(*shape) if name in given else None for name, shape in shapes.items())
    return [x, w, r, bias, None, h0, c0, peepholes, w_scale, w_zero, r_scale, r_zero]


def _agrees(*operands: np.ndarray | None, outs: str = "y,h,c", **attributes: Any) -> None:
    agrees("DynamicQuantizeLSTM", *operands, outs=outs, hidden_size=HIDDEN, **attributes)


def _model(operands: list[np.ndarray | None], **attributes: Any) -> Any:
    return model_of("DynamicQuantizeLSTM", operands, CONTRIB, "y,h,c", {"hidden_size": HIDDEN, **attributes})


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_directions(direction: str, dtype: type) -> None:
    _agrees(*_operands(1 + (direction == "bidirectional"), dtype), direction=direction)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_scale_for_each_column(dtype: type) -> None:
    _agrees(*_operands(2, dtype, channels=True), direction="bidirectional")


def test_states_and_bias_may_be_left_out() -> None:
    _agrees(*_operands(given=()))
    _agrees(*_operands(given=()), outs=",h,")


def test_clip_peepholes_and_coupled_gates() -> None:
    _agrees(*_operands(given=(*STATES, "peepholes")), clip=0.4)
    _agrees(*_operands(given=(*STATES, "peepholes")), input_forget=1)


def test_activations_with_parameters() -> None:
    first, second = ["HardSigmoid", "Affine", "ScaledTanh"], ["Sigmoid", "LeakyRelu", "Softsign"]
    parameters = {"activation_alpha": [0.3, 0.5, 1.2, 0.2], "activation_beta": [0.4, 0.1, 0.7]}
    _agrees(*_operands(2), direction="bidirectional", activations=first + second, **parameters)


def test_sequences_as_long_as_the_longest() -> None:
    operands = _operands()
    operands[4] = i32(*[SEQUENCE] * BATCH)
    _agrees(*operands)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("outs", ["y,h,c", ",h,c"])
def test_shorter_sequences(direction: str, outs: str) -> None:
    """Without all hidden states, onnxruntime makes bytes of those of sequences that have ended too."""
    operands = _operands(1 + (direction == "bidirectional"))
    operands[4] = i32(3, 4, 1)
    _agrees(*operands, outs=outs, direction=direction)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_an_empty_sequence(direction: str) -> None:
    operands = _operands()
    operands[4] = i32(2, 0, SEQUENCE)
    _agrees(*operands, direction=direction)


def test_lengths_that_a_run_computes() -> None:
    operands = _operands(2)
    operands[4] = i32(3, 0, 1)
    model = _model(operands, direction="bidirectional")
    model.graph.initializer.remove(next(each for each in model.graph.initializer if each.name == "x4"))
    model.graph.input.add().CopyFrom(helper.make_tensor_value_info("x4", TensorProto.INT32, [BATCH]))
    given = {"x0": operands[0], "x4": operands[4]}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    wants = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, given)
    for got, want in zip(backend.run_model(model, given), wants, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def test_a_sequence_longer_than_the_input_is_refused() -> None:
    operands = _operands()
    operands[4] = i32(SEQUENCE + 1, 2, SEQUENCE)
    with pytest.raises(MccError, match="x has 5 steps"):
        backend.run_model(_model(operands), {"x0": operands[0]})
