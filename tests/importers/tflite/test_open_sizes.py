"""Sizes that a file leaves open: its own without options, others with --dim and --shape, as LiteRT has them resized."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import tflite

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError, UnsupportedModel, WrongUse
from mccompile.importers.defaults import declared
from mccompile.importers.tflite.convert import to_onnx

from .build import Net
from .litert import Litert

_COMPILER = shutil.which("tcc") or "cc"
CHANCE = np.random.default_rng(3)


def same(data: bytes, *inputs: np.ndarray, steps: int = 0, **asked: Any) -> None:
    found = mccompile.load(data, target="generic", cc=_COMPILER, **asked)(*inputs)
    for got, wanted in zip(found, Litert(data)(inputs), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=max(steps, 1e-5))


def run(*words: str) -> int:
    return cli.run(list(words))


def classifier() -> bytes:
    """A convolution over int8, flattened by a shape with -1, and a dense layer."""
    net = Net()
    x = net.input((1, 6, 4, 2), "INT8", 0.05, 3, name="x", open=[0])
    w = net.constant(CHANCE.integers(-99, 99, (3, 3, 3, 2), np.int8), 0.02)
    y = net.tensor((1, 3, 2, 3), "INT8", 0.1, -5, open=[0])
    bias = [net.constant(CHANCE.integers(-99, 99, n, np.int32), scale) for n, scale in ((3, 0.001), (4, 0.003))]
    net.op("CONV_2D", [x, w, bias[0]], [y], "Conv2DOptions", StrideH=2, StrideW=2)
    flat = net.tensor((1, 18), "INT8", 0.1, -5, open=[0])
    net.op("RESHAPE", [y, net.constant(np.array([-1, 18], np.int32))], [flat], "ReshapeOptions")
    dense = net.constant(CHANCE.integers(-99, 99, (4, 18), np.int8), 0.03)
    made = net.tensor((1, 4), "INT8", 0.4, 7, open=[0])
    net.op("FULLY_CONNECTED", [flat, dense, bias[1]], [made], "FullyConnectedOptions")
    return net.file([made])


def pictures(count: int) -> np.ndarray:
    return CHANCE.integers(-128, 128, (count, 6, 4, 2), np.int8)


def averaged(open: list[int], stride: int = 1) -> bytes:
    """Pictures of any size, pooled to one number for each channel."""
    net = Net()
    x, y = net.input((1, 4, 4, 2), name="x", open=open), net.tensor((1, 4, 4, 2))
    fields = {"FilterHeight": 3, "FilterWidth": 3, "StrideH": stride, "StrideW": stride}
    net.op("MAX_POOL_2D", [x], [y], "Pool2DOptions", **fields)
    made = net.tensor((1, 2))
    net.op("MEAN", [y, net.constant(np.array([1, 2], np.int32))], [made], "ReducerOptions")
    return net.file([made])


def test_without_options_sizes_are_those_of_the_file() -> None:
    model = to_onnx(classifier(), "net.tflite")
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [1, 6, 4, 2]
    assert declared(model) == {"x": ("batch", 6, 4, 2)}
    same(classifier(), pictures(1))


def spectrogram() -> bytes:
    """Frames whose number is computed from the shape: the file has 1 in place of each size between."""
    net = Net()
    x = net.input((1, 32), name="x", open=[0])
    shape, counts, sizes = (net.tensor((n,), "INT32") for n in (2, 2, 3))
    net.op("SHAPE", [x], [shape], "ShapeOptions", OutType=tflite.TensorType.INT32)
    net.op("FLOOR_DIV", [shape, net.constant(np.array([1, 8], np.int32))], [counts])
    net.op("CONCATENATION", [counts, net.constant(np.array([8], np.int32))], [sizes], "ConcatenationOptions")
    frames = net.tensor((1, 1, 1), open=[0, 1, 2])
    net.op("RESHAPE", [x, sizes], [frames], "ReshapeOptions")
    rows, spectra = net.tensor((1, 1, 1, 1), open=[0, 1, 3]), net.tensor((1, 1, 1, 5), "COMPLEX64", open=[0, 1])
    net.op("EXPAND_DIMS", [frames, net.constant(np.array([-2], np.int32))], [rows], "ExpandDimsOptions")
    net.op("RFFT2D", [rows, net.constant(np.array([1, 8], np.int32))], [spectra], "Rfft2dOptions")
    squeezed, real = net.tensor((1, 1, 5), "COMPLEX64", open=[0, 1]), net.tensor((1, 1, 5), open=[0, 1])
    net.op("SQUEEZE", [spectra], [squeezed], "SqueezeOptions", SqueezeDims=[-2])
    net.op("CAST", [squeezed], [real], "CastOptions")
    flat, made = net.tensor((1, 1), open=[0, 1]), net.tensor((1, 3), open=[0])
    net.op("RESHAPE", [real, net.constant(np.array([-1, 20], np.int32))], [flat], "ReshapeOptions")
    w = net.constant(CHANCE.standard_normal((3, 20)).astype(np.float32))
    net.op("FULLY_CONNECTED", [flat, w, -1], [made], "FullyConnectedOptions")
    return net.file([made])


def test_sizes_between_may_be_placeholders() -> None:
    data = spectrogram()
    same(data, CHANCE.standard_normal((1, 32)).astype(np.float32))
    same(data, CHANCE.standard_normal((3, 32)).astype(np.float32), dims={"batch": 3})


def test_a_shape_without_elements_is_a_constant() -> None:
    net = Net()
    x, z = net.input((1,), name="x"), net.input((1, 2), name="z", open=[1])
    scalar, made = net.tensor(()), net.tensor((1, 2))
    net.op("RESHAPE", [x, net.constant(np.zeros(0, np.int32))], [scalar], "ReshapeOptions")
    net.op("ADD", [scalar, z], [made], "AddOptions")
    same(net.file([made]), np.array([5], np.float32), np.ones((1, 3), np.float32), dims={"z_1": 3})


def test_a_batch_of_another_size() -> None:
    same(classifier(), pictures(3), steps=1, dims={"batch": 3})


@pytest.mark.parametrize("count", [1, 4])
def test_a_range_of_batches(count: int) -> None:
    same(classifier(), pictures(count), steps=1, dims={"batch": (1, 4)})


def test_rows_and_columns_have_names_and_ranges() -> None:
    picture = CHANCE.random((1, 7, 5, 2), np.float32)
    same(averaged([1, 2]), picture, dims={"x_1": (4, 9), "x_2": 5})


def test_a_shape_of_a_file_that_leaves_nothing_open() -> None:
    """As LiteRT resizes any input."""
    same(averaged([], stride=2), CHANCE.random((2, 9, 6, 2), np.float32), shapes={"x": (2, 9, 6, 2)})


def test_a_size_given_for_one_input_holds_for_the_others() -> None:
    net = Net()
    a, b, y = net.input((1, 3), name="a", open=[0]), net.input((1, 3), name="b", open=[0]), net.tensor((1, 3))
    net.op("ADD", [a, b], [y], "AddOptions")
    x = CHANCE.random((5, 3), np.float32)
    same(net.file([y]), x, x, shapes={"a": (5, 3)})


def test_shapes_that_are_computed_follow() -> None:
    """Rows are put one behind the other by a shape that the file computes."""
    net = Net()
    x = net.input((1, 2, 3), name="x", open=[0, 1])
    shape, first, sizes, y = (net.tensor(s, "INT32") for s in ((3,), (1,), (2,), (1, 6)))
    net.op("SHAPE", [x], [shape], "ShapeOptions", OutType=2)
    ends = [net.constant(np.array([number], np.int32)) for number in (0, 1, 1)]
    net.op("STRIDED_SLICE", [shape, *ends], [first], "StridedSliceOptions")
    net.op("CONCATENATION", [first, net.constant(np.array([-1], np.int32))], [sizes], "ConcatenationOptions")
    y = net.tensor((1, 6))
    net.op("RESHAPE", [x, sizes], [y], "ReshapeOptions")
    for asked in ({"batch": 2, "x_1": 4}, {"batch": (1, 3), "x_1": 4}):
        same(net.file([y]), CHANCE.random((2, 4, 3), np.float32), dims=asked)


def test_a_signature_names_the_input_whose_sizes_are_given() -> None:
    net = Net()
    net.input((1,), name="unused")
    number, inside = net.subgraph("other")
    x, y = inside.input((1, 3), name="x", open=[0]), inside.tensor((1, 3))
    inside.op("ABS", [x], [y], "AbsOptions")
    inside.outputs = [y]
    net.signatures = [("other", number, {"sound": x}, {"loud": y})]
    x = CHANCE.random((2, 3), np.float32) - 0.5
    asked = {"signature": "other", "shapes": {"sound": (2, 3)}}
    (found,) = mccompile.load(net.file([]), target="generic", cc=_COMPILER, **asked)(x)
    np.testing.assert_array_equal(found, np.abs(x))


def test_a_loop_carries_values_of_the_sizes_that_are_asked_for() -> None:
    net = Net()
    x, trips, y = net.input((2, 3), name="x", open=[0]), net.input((), "INT32"), net.tensor((2, 3))
    condition, tested = net.subgraph("condition")
    _, n, goes_on = tested.input((2, 3)), tested.input((), "INT32"), tested.tensor((), "BOOL")
    tested.op("LESS", [n, tested.constant(np.array(3, np.int32))], [goes_on], "LessOptions")
    tested.outputs = [goes_on]
    body, looped = net.subgraph("body")
    a, n = looped.input((2, 3)), looped.input((), "INT32")
    doubled, after = looped.tensor((2, 3)), looped.tensor((), "INT32")
    looped.op("ADD", [a, a], [doubled], "AddOptions")
    looped.op("ADD", [n, looped.constant(np.array(1, np.int32))], [after], "AddOptions")
    looped.outputs = [doubled, after]
    count = net.tensor((), "INT32")
    net.op("WHILE", [x, trips], [y, count], "WhileOptions", CondSubgraphIndex=condition, BodySubgraphIndex=body)
    same(net.file([y]), CHANCE.random((5, 3), np.float32), np.array(0, np.int32), dims={"batch": 5})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"dims": {"bath": 2}}, r"no free dimension 'bath'(?s:.*)are batch(?s:.*)did you mean dims batch"),
        ({"shapes": {"x": (2, 6)}}, r"does not fit(?s:.*)1,6,4,2"),
        ({"shapes": {"z": (2, 6)}}, r"no input 'z'"),
    ],
)
def test_sizes_that_the_file_does_not_have_are_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        mccompile.compile(classifier(), **asked)


def test_a_range_where_a_number_is_needed_is_refused_with_one() -> None:
    net = Net()
    x, y = net.input((1, 4, 4, 2), name="x", open=[1]), net.tensor((1, 6, 4, 2), open=[1])
    pads = net.constant(np.array([[0, 0], [1, 1], [0, 0], [0, 0]], np.int32))
    net.op("MIRROR_PAD", [x, pads], [y], "MirrorPadOptions")
    with pytest.raises(UnsupportedModel, match=r"mirrors axis 1, whose size has a range(?s:.*)dims={\"x_1\": 9}"):
        mccompile.compile(net.file([y]), dims={"x_1": (4, 9)})


@pytest.mark.parametrize(("rows", "columns"), [(4, 3), (9, 6), (7, 5)])
def test_windows_with_a_stride_over_a_range(rows: int, columns: int) -> None:
    picture = CHANCE.random((1, rows, columns, 2), np.float32)
    same(averaged([1, 2], stride=2), picture, dims={"x_1": (4, 9), "x_2": (3, 6)})


def strided() -> bytes:
    """int8 windows with SAME and a stride."""
    net = Net()
    x = net.input((1, 6, 4, 2), "INT8", 0.05, 3, name="x", open=[0, 1, 2])
    w = net.constant(CHANCE.integers(-99, 99, (3, 3, 3, 2), np.int8), 0.02)
    y, made = (net.tensor((1, size, 2, 3), "INT8", 0.1, -5, open=[0, 1, 2]) for size in (3, 2))
    bias = net.constant(CHANCE.integers(-99, 99, 3, np.int32), 0.001)
    net.op("CONV_2D", [x, w, bias], [y], "Conv2DOptions", StrideH=2, StrideW=2)
    fields = {"FilterHeight": 3, "FilterWidth": 2, "StrideH": 2, "StrideW": 1}
    net.op("MAX_POOL_2D", [y], [made], "Pool2DOptions", **fields)
    return net.file([made])


def test_windows_with_a_stride_over_ranges_stay_integers() -> None:
    data, asked = strided(), {"dims": {"batch": (1, 2), "x_1": (1, 9), "x_2": (1, 9)}}
    assert mccompile.compile(data, **asked).report["float_in_quantized"] == []
    for rows, columns in ((1, 1), (6, 9), (9, 4)):
        same(data, CHANCE.integers(-128, 128, (2, rows, columns, 2), np.int8), steps=1, **asked)


def test_sizes_that_contradict_weights_are_refused() -> None:
    with pytest.raises(MccError, match=r"FULLY_CONNECTED cannot be compiled|RESHAPE cannot be compiled"):
        mccompile.compile(classifier(), shapes={"x": (1, 8, 4, 2)})


def test_where_the_sizes_of_the_file_do_not_fit_others_are_proposed(tmp_path: Path) -> None:
    net = Net()
    x, y = net.input((1, 1, 1, 1), name="x", open=[1]), net.tensor((1, 1, 1, 1))
    w = net.constant(np.ones((1, 9, 1, 1), np.float32))
    bias = net.constant(np.zeros(1, np.float32))
    net.op("CONV_2D", [x, w, bias], [y], "Conv2DOptions", Padding=1, StrideH=1, StrideW=1)
    file = tmp_path / "net.tflite"
    file.write_bytes(net.file([y]))
    with pytest.raises(
        UnsupportedModel, match=r"leaves them open(?s:.*)'x_1' of input 'x'(?s:.*)add dims={\"x_1\": 224} "
    ):
        mccompile.compile(file)
    assert run("check", str(file), "--dim", "x_1=16", "--target", "generic") == 0


def test_converted_files_keep_ranges_free_and_have_numbers_for_the_rest(tmp_path: Path) -> None:
    file, made = tmp_path / "net.tflite", tmp_path / "net.onnx"
    file.write_bytes(averaged([0, 1, 2]))
    assert run("convert", str(file), "-o", str(made), "--dim", "batch=1..8,x_1=9") == 0
    dims = onnx.load(made).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 9, 4, 2]


def test_check_resizes_the_interpreter() -> None:
    compiled = mccompile.compile(classifier(), dims={"batch": (1, 3)}, target="generic")
    verdict = compiled.check(runs=1)
    assert verdict.ok and {run.reference for run in verdict.runs} == {"LiteRT"}
