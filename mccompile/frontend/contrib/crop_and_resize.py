"""CropAndResize: boxes cut out of pictures and resized to one size, as TensorFlow does it."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body, Size
from ..contributed import writes

_TAIL = "<int32[2] i = {1, 0}, int32[2] s = {3, 4}>"


@writes(
    "CropAndResize",
    f"g (float[2, 3, 6, 5] x, float[2, 4] r) => (float[2, 3, 3, 4] y) {_TAIL}"
    " { t = Tanh (r) y = com.microsoft.CropAndResize <extrapolation_value = 0.5> (x, t, i, s) }",
    f"g (float[2, 3, 6, 5] x, float[2, 4] r) => (float[2, 3, 3, 4] y) {_TAIL}"
    ' { t = Sigmoid (r) y = com.microsoft.CropAndResize <mode = "nearest"> (x, t, i, s) }',
)
def crop_and_resize(body: Body) -> None:
    body.only("extrapolation_value", "mode")
    mode, given = str(body.attribute("mode", "bilinear")), body.value(3)
    size = None if given is None else given.fact.value
    if mode not in ("bilinear", "nearest"):
        raise Invalid(f"mode {mode!r} is not bilinear or nearest")
    if size is None or not all(isinstance(number, int | np.integer) for number in size.reshape(-1)):
        raise Unsupported("crop_size (operand 3) is computed at run time", "make it a constant of the model")
    sides = [int(number) for number in size.reshape(-1)]
    edges = body.op("Split", body.op("Cast", body.operand(1), to=TensorProto.FLOAT), axis=1, num_outputs=4, outs=4)
    corners = (edges, f"{edges}_1", f"{edges}_2", f"{edges}_3")
    rows, columns = (
        _places(body, corners[axis], corners[axis + 2], body.size(0, 2 + axis), sides[axis]) for axis in range(2)
    )
    pictures = body.op("Transpose", body.operand(0), perm=[0, 2, 3, 1])
    which = body.op("Reshape", body.op("Cast", body.operand(2), to=TensorProto.INT64), body.ints(-1, 1, 1, 1))
    y, x = body.op("Unsqueeze", rows[0], body.ints(2)), body.op("Unsqueeze", columns[0], body.ints(1))
    inside = body.op("And", body.op("Unsqueeze", rows[1], body.ints(2)), body.op("Unsqueeze", columns[1], body.ints(1)))
    half = body.number(0.5)
    if mode == "nearest":
        found = _picked(body, pictures, which, *(body.op("Floor", body.op("Add", p, half)) for p in (y, x)))
    else:
        (top, left), lines = (body.op("Floor", y), body.op("Floor", x)), []
        for line in (top, body.op("Ceil", y)):
            first, last = (_picked(body, pictures, which, line, c) for c in (left, body.op("Ceil", x)))
            lines.append(_between(body, first, last, body.op("Unsqueeze", body.op("Sub", x, left), body.ints(3))))
        found = _between(body, lines[0], lines[1], body.op("Unsqueeze", body.op("Sub", y, top), body.ints(3)))
    outside = body.number(body.attribute("extrapolation_value", 0.0))
    found = body.op("Where", body.op("Unsqueeze", inside, body.ints(3)), found, outside)
    body.give(0, body.op("Transpose", found, perm=[0, 3, 1, 2]))


def _places(body: Body, start: str, end: str, size: Size, count: int) -> tuple[str, str]:
    """Where the elements of a side lie in the picture, [boxes, count], and which of them lie inside."""
    last = body.op("Sub", body.as_float(body.sizes(size)), body.number(1.0))
    if count > 1:
        step = body.op("Div", body.op("Mul", body.op("Sub", end, start), last), body.number(count - 1))
        steps = body.op("Mul", body.constant(np.arange(count, dtype=np.float32)[None]), step)
        places = body.op("Add", body.op("Mul", start, last), steps)
    else:
        places = body.op("Mul", body.op("Mul", body.number(0.5), body.op("Add", start, end)), last)
    beside = body.op("Or", body.op("Less", places, body.number(0.0)), body.op("Greater", places, last))
    return body.op("Min", body.op("Max", places, body.number(0.0)), last), body.op("Not", beside)


def _picked(body: Body, pictures: str, which: str, y: str, x: str) -> str:
    """The channels at those rows and columns: [boxes, rows, columns, channels]."""
    y, x = (body.op("Unsqueeze", body.op("Cast", place, to=TensorProto.INT64), body.ints(3)) for place in (y, x))
    shape = body.op("Shape", body.op("Add", body.op("Add", y, x), which))
    parts = [body.op("Expand", part, shape) for part in (which, y, x)]
    return body.op("GatherND", pictures, body.op("Concat", *parts, axis=3))


def _between(body: Body, first: str, last: str, share: str) -> str:
    return body.op("Add", first, body.op("Mul", body.op("Sub", last, first), share))
