"""Builds an audio front end whose output fits the input of a network: number of frames, layout and quantization."""

from __future__ import annotations

from math import prod
from typing import Any

from onnx import ModelProto

from ..base.errors import Problem, WrongUse
from ..base.near import meant
from ..graph.ir import Graph, Value
from ..importers.audio.build_model import Form, model
from ..importers.audio.recipe import Recipe, recipe
from ..ops.concat import Concat
from ..ops.quantize import DequantizeLinear
from ..ops.reshape import SameElements
from ..ops.slice import Slice
from ..ops.transpose import Transpose

INTEGERS = ("int8", "uint8")


def front_end(
    style: str = "plain",
    mfcc: bool = False,
    network: Graph | None = None,
    input_name: str = "",
    quantized: tuple[float, int, str] | None = None,
    features_first: bool | None = None,
    **asked: Any,
) -> ModelProto:
    """The model of a front end; see `mccompile.audio_frontend`."""
    form = Form(turned=bool(features_first))
    if network is not None:
        value = _input(network, input_name)
        made, form = _fitted(style, mfcc, value, features_first, asked)
        quantized = quantized or _integers(value)
    else:
        made = recipe(style, mfcc, **asked)
    if quantized is not None:
        scale, zero, dtype = quantized
        low, high = (0, 255) if dtype == "uint8" else (-128, 127)
        if dtype not in INTEGERS or not scale > 0 or not low <= zero <= high:
            why = f"{scale:g},{zero},{dtype} is not a scale above 0, zero point and type int8 or uint8 that go together"
            raise WrongUse(Problem("features cannot be quantized so", "--quantized", why, "write --quantized 0.05,0"))
        form = Form(form.shape, form.turned, scale, zero, dtype)
    return model(made, form)


def _input(network: Graph, name: str) -> Value:
    states = set(network.states_of_file.values())
    inputs = {value.name: value for value in network.inputs if value.name not in states}
    if not name and len(inputs) == 1:
        return next(iter(inputs.values()))
    if name not in inputs:
        what = f"there is no input {name!r}" if name else "nothing says which input the features are for"
        fix = meant(name, inputs) or f"write --for MODEL --input-name {next(iter(inputs), 'NAME')}"
        raise WrongUse(Problem(what, network.name, f"the inputs are {', '.join(inputs) or 'none'}", fix))
    return inputs[name]


def _fitted(style: str, mfcc: bool, value: Value, first: bool | None, asked: dict[str, Any]) -> tuple[Recipe, Form]:
    """With the frames that the input holds, in its shape."""
    type = value.type
    if not type.is_static:
        fix = "give each of its sizes one number, such as --dim batch=1"
        raise WrongUse(Problem("a front end is for an input of a fixed size", f"input {value.name!r}", f"{type}", fix))
    each = recipe(style, mfcc, **asked).features
    count = prod(type.static_shape)
    frames = asked.get("frames") or count // each
    made = recipe(style, mfcc, **{**asked, "frames": frames}) if frames else recipe(style, mfcc, **asked)
    sizes = [size for size in type.static_shape if size != 1]
    orders = {turned: [n for n in pair if n != 1] for turned, pair in _orders(made)}
    flat = [[made.frames * each]] if made.frames * each != 1 else []
    fitting = [turned for turned, order in orders.items() if sizes in (order, *flat) and first in (None, turned)]
    if not fitting:
        why = f"it is {type}, and {each} features a frame make no such shape"
        fix = f"choose --mels or --coefficients so that they are one of its sizes: {', '.join(map(str, sizes))}"
        raise WrongUse(Problem("the features do not fit the network", f"input {value.name!r}", why, fix))
    if len(fitting) > 1 and len(sizes) > 1:
        why = f"it is {type}, with as many frames as features"
        fix = "say which come first: --features-first or --frames-first"
        raise WrongUse(Problem("nothing tells frames from features", f"input {value.name!r}", why, fix))
    return made, Form(type.static_shape, fitting[0])


def _orders(made: Recipe) -> list[tuple[bool, tuple[int, int]]]:
    return [(False, (made.frames, made.features)), (True, (made.features, made.frames))]


def _integers(value: Value) -> tuple[float, int, str] | None:
    """How the network reads an input of 8 bits."""
    if value.type.dtype.is_float:
        return None
    readers = list(value.uses)
    for node, place in readers:
        if isinstance(node.op, Concat) or (isinstance(node.op, SameElements | Transpose | Slice) and place == 0):
            readers += [use for use in node.output.uses if use not in readers]  # it only moves elements
        if isinstance(node.op, DequantizeLinear) and place == 0:
            scale, zero = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
            if scale is not None and scale.constant is not None and prod(scale.type.static_shape) == 1:
                start = 0 if zero is None or zero.constant is None else int(zero.constant.array.reshape(-1)[0])
                dtype = "uint8" if value.type.dtype.kind == "uint" else "int8"
                return float(scale.constant.array.reshape(-1)[0]), start, dtype
    why = f"it is {value.type}, and no DequantizeLinear reads it"
    raise WrongUse(Problem("nothing says how the input is quantized", f"input {value.name!r}", why,
                           "write --quantized SCALE,ZERO_POINT"))  # fmt: skip
