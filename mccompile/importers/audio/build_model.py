"""Builds the ONNX model of an audio front end from its recipe (recipe.py).

Frames are pieces of the samples that lie side by side, so that they stay a view of these; all else is per frame, and
runs frame by frame (docs/streaming.md).
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ... import __version__
from ...base.records import dataclass
from . import front_end_tables, microfrontend
from .graph_writer import Writer
from .recipe import Recipe

_OPSET, _IR = 17, 8  # the first that have transforms
SAMPLES, FEATURES = "samples", "features"
_FULL_SCALE = 32768.0  # what int16 samples are divided by


@dataclass(frozen=True)
class Form:
    """How the features are handed over; what is empty is as it comes."""

    shape: tuple[int, ...] = ()  # of [1, frames, features]
    turned: bool = False  # features come before frames
    scale: float = 0.0  # of int8 or uint8; 0: floats
    zero_point: int = 0
    dtype: str = "int8"


_AS_IT_COMES = Form()


def model(recipe: Recipe, form: Form = _AS_IT_COMES) -> ModelProto:
    """From [1, samples] to the features."""
    to = Writer()
    x = _frames(to, recipe)
    made = _in_floats if recipe.arithmetic == "float" else _in_integers
    made(to, recipe, form, x)
    samples = TensorProto.INT16 if recipe.samples_type == "int16" else TensorProto.FLOAT
    element = TensorProto.DataType.Value(form.dtype.upper()) if form.scale else TensorProto.FLOAT
    own = (1, recipe.features, recipe.frames) if form.turned else (1, recipe.frames, recipe.features)
    graph = helper.make_graph(
        to.nodes,
        "frontend",
        [helper.make_tensor_value_info(SAMPLES, samples, (1, recipe.samples))],
        [helper.make_tensor_value_info(FEATURES, element, form.shape or own)],
        to.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=_IR, producer_name="mccompile", producer_version=__version__
    )


def _in_integers(to: Writer, recipe: Recipe, form: Form, x: str) -> None:
    x = microfrontend.features(to, recipe, x)
    if form.scale:
        x = microfrontend.stepped(to, x, form.scale, form.zero_point, form.dtype)
    else:
        x = to.node("Mul", to.cast(x, TensorProto.FLOAT), to.floats(1 / microfrontend.STEPS))
    _handed_over(to, form, x)


def _in_floats(to: Writer, recipe: Recipe, form: Form, x: str) -> None:
    x = _spectrum(to, recipe, x)
    if recipe.mels:
        x = to.node("MatMul", x, to.floats(front_end_tables.filters(recipe)))
    x = _logarithm(to, recipe, x)
    if recipe.coefficients:
        x = to.node("MatMul", x, to.floats(front_end_tables.cosines(recipe)))
    if recipe.delta:
        slopes = [to.floats(front_end_tables.changes(recipe, n + 1)) for n in range(recipe.delta)]
        changes = [to.node("MatMul", slope, x) for slope in slopes]
        x = to.node("Concat", x, *changes, axis=2)
    if form.scale:
        zero = np.array(form.zero_point, form.dtype)
        x = to.node("QuantizeLinear", x, to.floats(form.scale), to.constant(zero))
    _handed_over(to, form, x)


def _frames(to: Writer, recipe: Recipe) -> str:
    """[1, frames, window]: the first pieces of all frames, the second ones, and so on. The last piece of a frame ends
    where it ends."""
    x, window, hop, frames = SAMPLES, recipe.window, recipe.hop, recipe.frames
    around = recipe.around
    if around:
        x = to.node("Cast", x, to=TensorProto.FLOAT) if recipe.samples_type == "int16" else x
        mode = "constant" if recipe.padding == "zeros" else recipe.padding
        x = to.node("Pad", x, to.ints(0, around, 0, around), mode=mode)
    rest = window % hop or hop
    starts = [*range(0, window - rest, hop), window - hop]
    pieces = []
    for start in starts:
        piece = to.cut(x, start, start + frames * hop, 1)
        piece = to.node("Reshape", piece, to.ints(1, frames, hop))
        whole = rest == hop or start != starts[-1]
        pieces.append(piece if whole else to.cut(piece, hop - rest, hop, 2))
    return to.node("Concat", *pieces, axis=2) if len(pieces) > 1 else pieces[0]


def _spectrum(to: Writer, recipe: Recipe, x: str) -> str:
    weights = front_end_tables.window(recipe)
    if recipe.samples_type == "int16":
        weights = weights / _FULL_SCALE
        x = x if recipe.around else to.node("Cast", x, to=TensorProto.FLOAT)
    x = to.node("Mul", x, to.floats(weights))
    x = to.node("Unsqueeze", x, to.ints(3))
    x = to.node("DFT", x, to.constant(np.array(recipe.transform, np.int64)), axis=2, onesided=1)
    x = to.node("ReduceSum", to.node("Mul", x, x), to.ints(3), keepdims=0)
    return to.node("Sqrt", x) if recipe.power == 1 else x


def _logarithm(to: Writer, recipe: Recipe, x: str) -> str:
    if recipe.log == "none":
        return x
    if recipe.log == "pcen":
        return _energies(to, recipe, x)
    if recipe.offset:
        x = to.node("Add", x, to.floats(recipe.offset))
    if recipe.floor:
        x = to.node("Max", x, to.floats(recipe.floor))
    x = to.node("Log", x)
    if recipe.log == "db":
        x = to.node("Mul", x, to.floats(10 / np.log(10)))
    if recipe.top_db:
        least = to.node("Sub", to.node("ReduceMax", x, keepdims=1), to.floats(recipe.top_db))
        x = to.node("Max", x, least)
    return x


def _energies(to: Writer, recipe: Recipe, x: str) -> str:
    """Per-channel energy: each filter divided by what it was of late, and compressed."""
    weights, start = front_end_tables.smoothing(recipe)
    smooth = to.node("Add", to.node("MatMul", to.floats(weights), x), to.floats(start))
    gain = to.node("Pow", to.node("Add", smooth, to.floats(recipe.pcen_floor)), to.floats(-recipe.pcen_gain))
    x = to.node("Add", to.node("Mul", x, gain), to.floats(recipe.pcen_bias))
    x = to.node("Pow", x, to.floats(recipe.pcen_power))
    return to.node("Sub", x, to.floats(recipe.pcen_bias**recipe.pcen_power))


def _handed_over(to: Writer, form: Form, x: str) -> None:
    if form.turned:
        x = to.node("Transpose", x, perm=(0, 2, 1))
    if form.shape:
        to.node("Reshape", x, to.ints(*form.shape))
    to.rename(FEATURES)
