"""DFT and STFT, of all lengths, types and forms, against numpy; what is computed at run time; what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile import backend
from mccompile.base.dims import symbol
from mccompile.base.dtypes import f32, i64
from mccompile.base.errors import CheckFailed
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site, Unsupported
from mccompile.ops.fourier import DFT, STFT

from .bundle import One, outcomes

RANDOM = np.random.default_rng(4)


def signal(*shape: int, dtype: type[np.generic] = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


# onnxruntime sums by the definition, with angles in single precision: the matrix of kernels knows a closer oracle
def transforms() -> Iterator[One]:
    fixed = frozenset({1, 2})
    for length in (1, 2, 15, 37, 100, 128):
        ins = [signal(2, length, 2), None, scalar(1)]
        yield One(f"complex_{length}", "DFT", ins, {}, fixed)
        yield One(f"back_{length}", "DFT", ins, {"inverse": 1}, fixed)
        yield One(f"real_{length}", "DFT", [signal(3, length, 1), None, scalar(-2)], {"onesided": 1}, fixed)
    for length in (6, 9, 15, 20):
        ins = [signal(2, 3, 9, 1), scalar(length), scalar(2)]
        yield One(f"cut_or_filled_{length}", "DFT", ins, {"onesided": 1}, fixed)
        yield One(f"both_sides_{length}", "DFT", ins, {}, fixed)
    yield One("middle", "DFT", [signal(2, 12, 5, 2), None, scalar(-3)], {}, fixed)


def test_every_transform_is_right() -> None:
    for label, (outcome,) in outcomes(20, list(transforms())).items():
        tolerance = 5e-5 * np.abs(outcome.want).max()
        np.testing.assert_allclose(outcome.got, outcome.want, rtol=0, atol=tolerance, err_msg=label)


def test_doubles_are_computed_in_double() -> None:
    x = signal(2, 30, 2, dtype=np.float64)
    node = One("double", "DFT", [x, None, scalar(1)], {"inverse": 1}, frozenset({1, 2}))
    ((outcome,),) = outcomes(20, [node]).values()
    want = np.fft.ifft(x[..., 0] + 1j * x[..., 1], axis=1)
    np.testing.assert_allclose(outcome.got, np.stack([want.real, want.imag], -1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("length", [2, 8, 11, 30])
def test_real_signals_come_back(length: int) -> None:
    x = signal(2, length, 1)
    nodes = [
        helper.make_node("DFT", ["x"], ["f"], onesided=1, axis=1),
        helper.make_node("DFT", ["f", "n"], ["y"], onesided=1, inverse=1, axis=1),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in ("x", "y")]
    size = helper.make_tensor("n", TensorProto.INT64, [], [length])
    graph = helper.make_graph(nodes, "there_and_back", value[:1], value[1:], [size])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (y,) = backend.prepare(model, flags=("-O1",)).run([x])
    np.testing.assert_allclose(y, x, rtol=0, atol=1e-6)


def frames() -> Iterator[One]:
    window = np.hanning(12).astype(np.float32)
    x = signal(2, 50, 1)
    yield One("window", "STFT", [x, scalar(5), window], {}, frozenset({1}))
    yield One("length", "STFT", [x, scalar(7), None, scalar(15)], {"onesided": 0}, frozenset({1, 3}))
    yield One("both", "STFT", [x, scalar(12), window, scalar(12)], {}, frozenset({1, 3}))


def test_every_frame_is_right() -> None:
    for label, (outcome,) in outcomes(17, list(frames())).items():
        np.testing.assert_allclose(outcome.got, outcome.want, rtol=0, atol=1e-4, err_msg=label)


def test_a_complex_signal_has_frames() -> None:
    x, window = signal(1, 20, 2), np.hanning(8).astype(np.float32)
    wide = x[..., 0] + 1j * x[..., 1]
    want = np.stack([np.fft.fft(wide[:, at : at + 8] * window) for at in range(0, 13, 4)], axis=1)
    (got,) = _stft_of(x, window)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, atol=1e-5)


def _stft_of(x: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, ...]:
    node = helper.make_node("STFT", ["x", "s", "w"], ["y"], onesided=0)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name, a in (("x", x), ("w", window))]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    step = helper.make_tensor("s", TensorProto.INT64, [], [4])
    graph = helper.make_graph([node], "frames", inputs, [output], [step])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return tuple(backend.prepare(model, flags=("-O1",)).run([x, window]))


def test_axis_and_length_may_come_at_run_time() -> None:
    x = signal(2, 6, 6, 1)
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    infos += [helper.make_tensor_value_info(name, TensorProto.INT64, ()) for name in ("n", "axis")]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 4, 6, 2))
    node = helper.make_node("DFT", ["x", "n", "axis"], ["y"], onesided=1)
    graph = helper.make_graph([node], "chosen", infos, [output])
    rep = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), flags=("-O1",))
    for length in (6, 7):
        (y,) = rep.run([x, scalar(length), scalar(-3)])
        want = np.fft.rfft(x[..., 0], n=length, axis=1)
        np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], want, atol=1e-5)
    with pytest.raises(CheckFailed, match="outside the bounds"):
        rep.run([x, scalar(8), scalar(1)])


def test_a_complex_signal_has_no_half() -> None:
    with pytest.raises(Invalid, match="onesided"):
        DFT(onesided=1).infer(Site((Fact(TensorType(f32, (2, 8, 2))),), 1))


def test_frames_fit_into_the_signal() -> None:
    step = Fact(TensorType(i64, ()), np.array(2, dtype=object))
    facts = (Fact(TensorType(f32, (1, 8, 1))), step, Fact(TensorType(f32, (9,))))
    with pytest.raises(Invalid, match="fits"):
        STFT().infer(Site(facts, 1))


def test_how_a_signal_of_free_length_is_cut_has_to_be_known() -> None:
    size = symbol("n", 4, 40)
    step, computed = Fact(TensorType(i64, ()), np.array(2, dtype=object)), Fact(TensorType(i64, ()))
    free, window = Fact(TensorType(f32, (1, size))), Fact(TensorType(f32, (8,)))
    assert STFT().infer(Site((free, step, window), 1))[0].type.shape == (1, (size - 8) // 2 + 1, 5, 2)
    for facts, why in (((free, computed, window), "how it is cut"), ((free, step), "a frame is n long")):
        with pytest.raises(Unsupported, match=why):
            STFT().infer(Site(facts, 1))
    with pytest.raises(Invalid, match="fits"):
        STFT().infer(Site((free, step, Fact(TensorType(f32, (41,)))), 1))
