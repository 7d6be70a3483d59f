"""Operators of early exporters, and old versions of ONNX's own, next to what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from .net import Net, f, ints
from .spelling import add_spelling, spelled

OLD = 7
CHANNELS = np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1, 1)


def picture(net: Net, size: int = 6) -> str:
    return net.input(net.floats(1, 3, size, size))


@spelled("early/affine")
def scale_and_shift(net: Net) -> str:
    return net.op("Add", net.op("Mul", picture(net), f(2.0)), f(1.0))


@spelled("early/affine", opset=OLD)
def affine(net: Net) -> str:
    return net.op("Affine", picture(net), alpha=2.0, beta=1.0)


@spelled("early/scale")
def times(net: Net) -> str:
    return net.op("Mul", picture(net), f(2.0))


@spelled("early/scale", opset=OLD)
def scale(net: Net) -> str:
    return net.op("Scale", picture(net), scale=2.0)


@spelled("early/image")
def scale_and_bias(net: Net) -> str:
    return net.op("Add", net.op("Mul", picture(net), f(0.5)), CHANNELS)


@spelled("early/image", opset=OLD)
def image_scaler(net: Net) -> str:
    return net.op("ImageScaler", picture(net), scale=0.5, bias=[1.0, 2.0, 3.0])


@spelled("early/crop")
def slice_of_both_axes(net: Net) -> str:
    x = picture(net)
    return net.op("Relu", net.op("Slice", x, ints(2, 1), ints(5, 4), ints(2, 3)))


@spelled(
    "early/crop", {"more": {"border": [1, 2, 2, 1]}}, {"more": {"border": [1, 2, 0, 0], "scale": [3, 3]}}, opset=OLD
)
def crop(net: Net, more: dict[str, Any]) -> str:
    return net.op("Relu", net.op("Crop", picture(net), **more))


def _scaled(net: Net, op: str) -> str:
    return net.op("Mul", net.op(op, net.op("Mul", picture(net), f(0.5))), f(2.0))


def _scaled_by_itself(net: Net, op: str) -> str:
    return net.op(op, picture(net), alpha=2.0, beta=0.5)


for _op, _old, _name in (
    ("Softplus", "ParametricSoftplus", "parametric_softplus"),
    ("Tanh", "ScaledTanh", "scaled_tanh"),
):
    _family = f"early/{_op.lower()}"
    add_spelling(_family, f"{_op.lower()}_scaled", _scaled, {"op": _op})
    add_spelling(_family, _name, _scaled_by_itself, {"op": _old}, opset=OLD)


@spelled("early/thresholded")
def thresholded(net: Net) -> str:
    return net.op("ThresholdedRelu", picture(net), alpha=0.25)


@spelled("early/thresholded", opset=OLD)
def thresholded_before_it_came_to_onnx(net: Net) -> str:
    return net.op("ThresholdedRelu", picture(net), alpha=0.25)


@spelled("early/fill")
def added_constant(net: Net) -> str:
    return net.op("Add", picture(net), CHANNELS.reshape(3, 1, 1))


@spelled("early/fill", {"shape": [3, 1, 1]}, opset=OLD, unknown=True)
def given_tensor_fill(net: Net, shape: list[int]) -> str:
    filled = net.op("GivenTensorFill", values=[1.0, 2.0, 3.0], shape=shape)
    return net.op("Add", picture(net), filled)


@spelled("early/constant_fill")
def added_number(net: Net) -> str:
    return net.op("Add", picture(net), np.full((3, 1, 1), 2.0, np.float32))


@spelled("early/constant_fill", opset=OLD, unknown=True)
def constant_fill(net: Net) -> str:
    return net.op("Add", picture(net), net.op("ConstantFill", value=2.0, shape=[3, 1, 1], dtype=1))


@spelled("early/constant_fill", opset=OLD, unknown=True)
def constant_fill_of_shape(net: Net) -> str:
    return net.op("Add", picture(net), net.op("ConstantFill", ints(3, 1, 1), value=2.0, input_as_shape=1))


@spelled("early/slice")
def slice_by_constants(net: Net) -> str:
    return net.op("Relu", net.op("Slice", picture(net), ints(1), ints(4), ints(2)))


@spelled("early/slice", opset=OLD)
def dynamic_slice(net: Net) -> str:
    return net.op("Relu", net.op("DynamicSlice", picture(net), ints(1), ints(4), ints(2)))


@spelled("early/slice", opset=OLD)
def slice_by_attributes(net: Net) -> str:
    return net.op("Relu", net.op("Slice", picture(net), starts=[1], ends=[4], axes=[2]))


@spelled("early/reshape")
def reshape(net: Net) -> str:
    return net.op("Relu", net.op("Reshape", picture(net), ints(0, -1, 4)))


@spelled("early/reshape", opset=1, unknown=True)
def reshape_by_attribute(net: Net) -> str:
    return net.op("Relu", net.op("Reshape", picture(net), shape=[0, -1, 4], consumed_inputs=[0]))


@spelled("early/upsample")
def resize(net: Net) -> str:
    x = picture(net)
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.op("Relu", net.op("Resize", x, "", np.array([1, 1, 2, 3], np.float32), **nearest))


@spelled("early/upsample", opset=7)
def upsample_by_attribute(net: Net) -> str:
    return net.op("Relu", net.op("Upsample", picture(net), scales=[1.0, 1.0, 2.0, 3.0]))


@spelled("early/upsample", opset=9)
def upsample_by_operand(net: Net) -> str:
    return net.op("Relu", net.op("Upsample", picture(net), np.array([1, 1, 2, 3], np.float32)))


@spelled("early/upsample", opset=1, unknown=True)
def upsample_of_caffe2(net: Net) -> str:
    return net.op("Relu", net.op("Upsample", picture(net), height_scale=2.0, width_scale=3.0))


@spelled("early/upsample", opset=7, refused="below 1")
def upsample_down_by_attribute(net: Net) -> str:
    return net.op("Upsample", picture(net), scales=[1.0, 1.0, 0.5, 1.0])


@spelled("early/upsample", opset=9, refused="below 1")
def upsample_down_by_operand(net: Net) -> str:
    return net.op("Upsample", picture(net), np.array([1, 1, 0.5, 1], np.float32))


def statistics(net: Net, *shape: int) -> list[np.ndarray]:
    return [net.floats(*shape), net.floats(*shape), net.floats(*shape), net.floats(*shape, low=0.5)]


@spelled("early/norm")
def batch_norm(net: Net) -> str:
    return net.op("BatchNormalization", picture(net), *statistics(net, 3), epsilon=1e-3)


@spelled("early/norm", {"opset": 1}, {"opset": 6}, unknown=True, opset=6)
def batch_norm_for_tests(net: Net, opset: int) -> str:
    net.opsets[0].version = opset
    more: dict[str, Any] = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {}
    return net.op("BatchNormalization", picture(net), *statistics(net, 3), epsilon=1e-3, is_test=1, spatial=1, **more)


@spelled("early/norm", unknown=True, opset=6)
def batch_norm_in_training_before_7(net: Net) -> str:
    return net.op("BatchNormalization", picture(net), *statistics(net, 3), epsilon=1e-3)


@spelled("early/norm", opset=9)
def batch_norm_with_momentum(net: Net) -> str:
    return net.op("BatchNormalization", picture(net), *statistics(net, 3), epsilon=1e-3, momentum=0.99)


@spelled("early/norm_per_element")
def per_element(net: Net) -> str:
    x = picture(net)
    scale, shift, mean, variance = (net.constant(array) for array in statistics(net, 3, 6, 6))
    root = net.op("Sqrt", net.op("Add", variance, f(1e-3)))
    return net.op("Add", net.op("Mul", net.op("Div", net.op("Sub", x, mean), root), scale), shift)


@spelled("early/norm_per_element", {"opset": 7}, {"opset": 8}, close=1e-4)
def not_spatial(net: Net, opset: int) -> str:
    net.opsets[0].version = opset
    return net.op("BatchNormalization", picture(net), *statistics(net, 3, 6, 6), epsilon=1e-3, spatial=0)


@spelled("early/norm_of_rank", {"shape": (4, 5)}, {"shape": (4, 5, 3)}, {"shape": (5,)}, steps=None, room=99)
def batch_norm_of_rank(net: Net, shape: tuple[int, ...]) -> str:
    channels = 1 if len(shape) == 1 else shape[1]
    return net.op("BatchNormalization", net.input(net.floats(*shape)), *statistics(net, channels))


@spelled("early/norm_training")
def of_this_batch(net: Net) -> list[str]:
    x = net.input(net.floats(2, 3, 4, 4))
    made = net.op("BatchNormalization", x, *statistics(net, 3), outs=3, training_mode=1, momentum=0.75)
    return [made, f"{made}.1", f"{made}.2"]


@spelled("early/norm_training", opset=17, unknown=True)
def statistics_left_out(net: Net) -> str:
    x = net.input(net.floats(2, 3, 4, 4))
    return net.op("BatchNormalization", x, *statistics(net, 3), training_mode=1, momentum=0.75)


@spelled("early/dropout")
def nothing(net: Net) -> str:
    return net.op("Relu", net.op("Identity", picture(net)))


@spelled("early/dropout", {"opset": 7}, {"opset": 10})
def dropout(net: Net, opset: int) -> str:
    net.opsets[0].version = opset
    return net.op("Relu", net.op("Dropout", picture(net), ratio=0.5))


@spelled("early/dropout", {"opset": 1}, {"opset": 6}, unknown=True)
def dropout_for_tests(net: Net, opset: int) -> str:
    net.opsets[0].version = opset
    more: dict[str, Any] = {"consumed_inputs": [0]} if opset == 1 else {}
    return net.op("Relu", net.op("Dropout", picture(net), ratio=0.5, is_test=1, **more))


@spelled("early/dropout", opset=13)
def dropout_with_operands(net: Net) -> str:
    return net.op("Relu", net.op("Dropout", picture(net), f(0.5), np.array(False)))


@spelled("early/dropout", opset=13)
def dropout_with_training_off_by_a_node(net: Net) -> str:
    off = net.op("Not", np.array(True))
    return net.op("Relu", net.op("Dropout", picture(net), f(0.5), off))


@spelled("early/import")
def imported(net: Net) -> str:
    return net.ms("Gelu", picture(net))


@spelled("early/import", domains=(), unknown=True)
def not_imported(net: Net) -> str:
    return net.ms("Gelu", picture(net))


@spelled("early/outputs")
def once(net: Net) -> str:
    return net.op("Relu", picture(net))


@spelled("early/outputs")
def twice(net: Net) -> list[str]:
    made = net.op("Relu", picture(net))
    return [made, made]


@spelled("early/mean_variance")
def mean_variance(net: Net) -> str:
    return net.op("MeanVarianceNormalization", picture(net), axes=[0, 2, 3])


@spelled("early/mean_variance", {"more": {}}, {"more": {"across_channels": 0, "normalize_variance": 1}}, opset=OLD)
def mean_variance_before_9(net: Net, more: dict[str, int]) -> str:
    return net.op("MeanVarianceNormalization", picture(net), **more)


@spelled("early/mean_of_all", steps=None)
def mean_variance_across_channels(net: Net) -> str:
    return net.op("MeanVarianceNormalization", picture(net), axes=[1, 2, 3])


@spelled("early/mean_of_all", opset=OLD, steps=None)
def across_channels_before_9(net: Net) -> str:
    return net.op("MeanVarianceNormalization", picture(net), across_channels=1)


@spelled("early/constants")
def clip(net: Net) -> str:
    return net.op("Clip", picture(net), f(-0.25), f(0.5))


@spelled("early/constants", opset=6)
def clip_by_attributes(net: Net) -> str:
    return net.op("Clip", picture(net), min=-0.25, max=0.5)


@spelled("early/broadcast")
def add(net: Net) -> str:
    return net.op("Add", picture(net), CHANNELS.reshape(3, 1, 1))


@spelled("early/broadcast", {"opset": 1}, {"opset": 6}, opset=6, unknown=True)
def add_with_axis(net: Net, opset: int) -> str:
    net.opsets[0].version = opset
    return net.op("Add", picture(net), CHANNELS.reshape(3), broadcast=1, axis=1)


# -- the first opsets


@spelled("early/compared", {"op": "Less"}, {"op": "Greater"}, steps=None)
def compared(net: Net, op: str) -> str:
    return net.op("Where", net.op(op, picture(net), CHANNELS.reshape(3, 1, 1)), f(1), f(0))


@spelled("early/less")
def less(net: Net) -> str:
    return net.op("Not", net.op("Less", picture(net), CHANNELS.reshape(3, 1, 1) / 4))


@spelled("early/less", opset=1, unknown=True)
def less_with_axis(net: Net) -> str:
    return net.op("Not", net.op("Less", picture(net), CHANNELS.reshape(3) / 4, broadcast=1, axis=1))


@spelled("early/equal")
def equal(net: Net) -> str:
    x = net.input(net.integers(0, 3, 2, 3, 4, dtype=np.int32))
    return net.op("Not", net.op("Equal", x, np.array([[1], [2], [0]], np.int32)))


@spelled("early/equal", opset=1, unknown=True)
def equal_with_axis(net: Net) -> str:
    x = net.input(net.integers(0, 3, 2, 3, 4, dtype=np.int32))
    return net.op("Not", net.op("Equal", x, np.array([1, 2, 0], np.int32), broadcast=1, axis=1))


@spelled("early/selu")
def selu(net: Net) -> str:
    return net.op("Selu", picture(net), alpha=1.6732, gamma=1.0507)


@spelled("early/selu", opset=1, unknown=True)
def selu_with_its_defaults(net: Net) -> str:
    return net.op("Selu", picture(net), consumed_inputs=[0])


@spelled("early/split")
def split(net: Net) -> str:
    parts = net.op("Split", picture(net), ints(1, 2), outs=2, axis=1)
    return net.op("Concat", f"{parts}.1", parts, axis=1)


@spelled("early/split", opset=1, unknown=True)
def split_by_attribute(net: Net) -> str:
    parts = net.op("Split", picture(net), outs=2, axis=1, split=[1, 2])
    return net.op("Concat", f"{parts}.1", parts)


@spelled("early/split", opset=1, unknown=True)
def split_by_operand(net: Net) -> str:
    parts = net.op("Split", picture(net), np.array([1, 2], np.float32), outs=2, axis=1)
    return net.op("Concat", f"{parts}.1", parts)


def _recurrent(net: Net, op: str, gates: int, **more: Any) -> str:
    x = net.input(net.floats(4, 2, 3))
    made = net.op(op, x, net.floats(1, gates * 5, 3), net.floats(1, gates * 5, 5), outs=2, hidden_size=5, **more)
    return f"{made}.1"


for _op, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    _name, _given = _op.lower(), {"op": _op, "gates": _gates}
    add_spelling(f"early/{_name}", f"{_name}_of_opset_7", _recurrent, _given, opset=7)
    add_spelling(
        f"early/{_name}", f"{_name}_of_opset_1", _recurrent, {**_given, "output_sequence": 0}, opset=1, unknown=True
    )


@spelled("early/cast")
def cast(net: Net) -> str:
    return net.op("Neg", net.op("Cast", net.input(net.integers(0, 9, 2, 3, dtype=np.int32)), to=1))


@spelled("early/cast", opset=1, unknown=True)
def cast_by_name(net: Net) -> str:
    return net.op("Neg", net.op("Cast", net.input(net.integers(0, 9, 2, 3, dtype=np.int32)), to="FLOAT"))


@spelled("early/pad")
def pad(net: Net) -> str:
    return net.op("Neg", net.op("Pad", picture(net), ints(0, 0, 1, 0, 0, 0, 0, 2), f(0.5)))


@spelled("early/pad", opset=1, unknown=True)
def pad_by_paddings(net: Net) -> str:
    return net.op("Neg", net.op("Pad", picture(net), paddings=[0, 0, 1, 0, 0, 0, 0, 2], value=0.5))


@spelled("early/clip")
def clip_above(net: Net) -> str:
    return net.op("Clip", picture(net), "", f(0.5))


@spelled("early/clip", opset=1, unknown=True)
def clip_above_by_attribute(net: Net) -> str:
    return net.op("Clip", picture(net), max=0.5, consumed_inputs=[0])
