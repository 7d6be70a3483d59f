"""Operators that ONNX took over from onnxruntime, or that differ in little: in the names of modes, in what may be left
out, or in vectors of one element where ONNX has scalars."""

from __future__ import annotations

from onnx import TensorProto

from ...graph.ir import Unsupported
from ..composed_body import Body
from ..contributed import writes

_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


def _scalar(body: Body, index: int) -> str:
    return body.op("Squeeze", f"in{index}")


@writes(
    "ExpandDims",
    "g (float[3, 8] x) => (float[3, 1, 8] y) <int32 a = {-2}> { y = com.microsoft.ExpandDims (x, a) }",
)
def expand_dims(body: Body) -> None:
    axes = body.op("Reshape", body.op("Cast", body.operand(1), to=TensorProto.INT64), body.ints(1))
    body.give(0, body.op("Unsqueeze", "in0", axes), False)


@writes(
    "GatherND",
    "g (float[3, 4] x) => (float[2] y) <int64[2, 2] i = {0, 3, 2, 1}> { y = com.microsoft.GatherND (x, i) }",
)
def gather_nd(body: Body) -> None:
    indices = body.op("Cast", body.operand(1), to=TensorProto.INT64)
    body.give(0, body.op("GatherND", "in0", indices), False)


@writes(
    "GridSample",
    "g (float[1, 2, 5, 6] x, float[1, 3, 4, 2] s) => (float[1, 2, 3, 4] y)"
    ' { t = Tanh (s) y = com.microsoft.GridSample <mode = "bicubic", padding_mode = "border"> (x, t) }',
    "g (float[2, 1, 4, 4] x, float[2, 2, 2, 2] s) => (float[2, 1, 2, 2] y)"
    " { y = com.microsoft.GridSample <align_corners = 1> (x, s) }",
)
def grid_sample(body: Body) -> None:
    body.only("align_corners", "mode", "padding_mode")
    mode = str(body.attribute("mode", "bilinear"))
    if mode not in _MODES:
        raise Unsupported(f"mode {mode!r} is not one of {', '.join(_MODES)}")
    more = body.picked("align_corners", "padding_mode")
    body.give(0, body.op("GridSample", body.operand(0), body.operand(1), mode=_MODES[mode], **more))


@writes(
    "Pad",
    "g (float[2, 3] x) => (float[2, 6] y) <int64[1, 4] p = {0, 2, 0, 1}, float[1] v = {1.5}>"
    " { y = com.microsoft.Pad (x, p, v) }",
    "g (float[2, 3] x) => (float[4, 3] y) <int64[4] p = {1, 0, 1, 0}>"
    ' { y = com.microsoft.Pad <mode = "reflect"> (x, p) }',
)
def pad(body: Body) -> None:
    body.only("mode")
    value = _scalar(body, 2) if body.has(2) else ""
    pads = body.op("Reshape", body.operand(1), body.ints(-1))
    body.give(0, body.op("Pad", "in0", pads, value, **body.picked("mode")), False)


@writes(
    "Range",
    "g (float[5] x) => (float[5] y) <int64[1] a = {2}, int64 b = {12}, int64[1] d = {2}>"
    " { r = com.microsoft.Range (a, b, d) f = Cast <to = 1> (r) y = Mul (x, f) }",
    "g (float[3] x) => (float[3] y) <float a = {1}, float b = {4}> { r = com.microsoft.Range (a, b) y = Mul (x, r) }",
)
def arange(body: Body) -> None:
    step = _scalar(body, 2) if body.has(2) else ""
    if not step:
        one = body.index(1)
        step = one if body.type(0).dtype.onnx == TensorProto.INT64 else body.op("Cast", one, to=body.type(0).dtype.onnx)
    body.give(0, body.op("Range", _scalar(body, 0), _scalar(body, 1), step), False)


@writes("SampleOp", "g (float[3, 8] x) => (float[3, 8] y) { y = com.microsoft.SampleOp (x) }")
def sample_op(body: Body) -> None:
    body.give(0, "in0", False)


@writes(
    "Trilu",
    "g (float[3, 8] x) => (float[3, 8] y) <int64 k = {1}> { y = com.microsoft.Trilu (x, k) }",
    "g (float[2, 4, 4] x) => (float[2, 4, 4] y) { y = com.microsoft.Trilu <upper = 0> (x) }",
)
def trilu(body: Body) -> None:
    body.only("upper")
    body.give(0, body.op("Trilu", "in0", body.operand(1), **body.picked("upper")), False)


@writes("Unique", "g (float[6] x) => (float[n] y, int64[6] i, int64[m] c) { y, i, c = com.microsoft.Unique (x) }")
def unique(body: Body) -> None:
    found = body.op("Unique", "in0", outs=4, sorted=0)
    for number, name in enumerate((found, f"{found}_2", f"{found}_3")):
        body.give(number, name, False)
