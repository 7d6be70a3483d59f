"""onnxruntime's LSTM whose weights are bytes, decomposed into a Scan; see composed.py.

Invariant: what is multiplied with weights is made bytes as DynamicQuantizeLinear does it: the whole input up to the end
of the longest sequence at once, and the hidden state of the whole batch anew in every step. There, a sequence that has
ended takes part with zeros, or, where nobody reads all hidden states, with its last one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ..base.dtypes import f32, i8, i32, u8
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..graph.ir import Invalid, Unsupported
from ..ops.recurrent import DIRECTIONS, named_activations
from .composed_body import Body

X, W, R, BIAS, LENGTHS, H0, C0, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO = range(12)
_USUAL = ("Sigmoid", "Tanh", "Tanh")
# what ONNX has as an operator -> its name and attributes
_OPERATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "relu": ("Relu", ()),
    "tanh": ("Tanh", ()),
    "sigmoid": ("Sigmoid", ()),
    "softsign": ("Softsign", ()),
    "softplus": ("Softplus", ()),
    "leakyrelu": ("LeakyRelu", ("alpha",)),
    "thresholdedrelu": ("ThresholdedRelu", ("alpha",)),
    "hardsigmoid": ("HardSigmoid", ("alpha", "beta")),
    "elu": ("Elu", ("alpha",)),
}
Activation = tuple[str, float, float]  # name, alpha, beta


def dynamic_quantize_lstm(body: Body) -> None:
    body.only("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget")
    way = body.attribute("direction", "forward")
    if way not in DIRECTIONS:
        raise Invalid(f"direction {way!r} means nothing")
    backwards = DIRECTIONS[way]
    given = body.attribute("activations", _USUAL * len(backwards))
    alphas, betas = body.attribute("activation_alpha", ()), body.attribute("activation_beta", ())
    functions = named_activations(given, alphas, betas)
    if len(functions) != 3 * len(backwards):
        raise Invalid(f"activations are {', '.join(given)}, not 3 for each direction")
    _check(body, len(backwards))
    lengths = _Lengths.of(body)
    x = body.op("DynamicQuantizeLinear", lengths.seen if lengths else body.operand(X), outs=3)
    results = []
    for d, back in enumerate(backwards):
        gates = _product(body, x, W, _of_direction(body, d, W, W_SCALE, W_ZERO))
        results.append(_direction(body, d, gates, back, functions[3 * d : 3 * d + 3], lengths))
    for position, (parts, axis) in enumerate(zip(zip(*results, strict=True), (1, 0, 0), strict=True)):
        if body.wants(position):
            apart = [body.op("Unsqueeze", part, body.ints(axis)) for part in parts]
            body.give(position, apart[0] if len(apart) == 1 else body.op("Concat", *apart, axis=axis))


def _check(body: Body, directions: int) -> None:
    x, w, r = (body.type(index) for index in (X, W, R))
    if x.rank != 3 or x.dtype is not f32 or r.rank != 3 or {w.dtype, r.dtype} - {i8, u8}:
        raise Invalid(f"x {x}, w {w} and r {r} are not one {f32} tensor and two of {i8} or {u8}, all of rank 3")
    hidden = r.shape[1]
    if not isinstance(hidden, int) or body.attribute("hidden_size", hidden) != hidden:
        raise Invalid(f"hidden_size is {body.attribute('hidden_size', 'not given')}, but r is {r}")
    state = (directions, x.shape[1], hidden)
    wanted: dict[int, tuple[Shape, ...]] = {
        W: ((directions, x.shape[2], 4 * hidden),),
        R: ((directions, hidden, 4 * hidden),),
        BIAS: ((directions, 8 * hidden),),
        H0: (state,),
        C0: (state,),
        PEEPHOLES: ((directions, 3 * hidden),),
        **dict.fromkeys((W_SCALE, W_ZERO, R_SCALE, R_ZERO), ((directions,), (directions, 4 * hidden))),
    }
    dtypes = {W: w.dtype, W_ZERO: w.dtype, R: r.dtype, R_ZERO: r.dtype}
    for index, shapes in wanted.items():
        if index in (BIAS, H0, C0, PEEPHOLES) and not body.has(index):
            continue
        type = body.type(index)
        if type.shape not in shapes or type.dtype is not dtypes.get(index, f32):
            raise Invalid(f"operand {index} is {type}, which does not fit x {x}, w {w} and r {r}")
    if body.has(LENGTHS) and body.type(LENGTHS) != TensorType(i32, (x.shape[1],)):
        raise Invalid(f"sequence_lens is {body.type(LENGTHS)}, not one {i32} for each sequence of x {x}")


@dataclass(frozen=True)
class _Lengths:
    """Of the sequences, where some are shorter than the longest could be."""

    each: str  # [batch]
    going: str  # [time, batch, 1]: has the sequence not ended?
    some: str  # [batch, 1]: is the sequence not empty?
    seen: str  # x with zeros behind the end of the longest sequence

    @staticmethod
    def of(body: Body) -> _Lengths | None:
        if not body.has(LENGTHS):
            return None
        time, given = body.type(X).shape[0], body.value(LENGTHS)
        if given is not None and given.constant is not None:
            known = given.constant.array
            if isinstance(time, int) and np.any((known < 0) | (known > time)):
                raise Invalid(f"sequence_lens is {known.tolist()}, but x has {time} steps")
            if np.all(known == time):
                return None
        each = body.op("Cast", body.operand(LENGTHS), to=TensorProto.INT64)
        column = body.op("Unsqueeze", each, body.ints(1))
        place = body.op("Unsqueeze", body.places(body.size(X, 0)), body.ints(1, 2))
        inside = body.op("Less", place, body.op("ReduceMax", each, keepdims=1))
        seen = body.op("Where", inside, body.operand(X), body.number(0.0))
        return _Lengths(each, body.op("Less", place, column), body.op("Less", body.index(0), column), seen)

    def reversed(self, body: Body, x: str) -> str:
        """[time, batch, ...] with each sequence from its end to its begin."""
        return body.op("ReverseSequence", x, self.each, batch_axis=1, time_axis=0)


def _of_direction(body: Body, d: int, *operands: int) -> list[str]:
    return [body.op("Gather", body.operand(index), body.index(d), axis=0) for index in operands]


def _product(body: Body, quantized: str, weights: int, parts: list[str]) -> str:
    """What DynamicQuantizeLinear made, times weights, as floats."""
    matrix, scale, zero = parts
    total = body.op("MatMulInteger", quantized, matrix, f"{quantized}_2", zero)
    return body.op("Mul", body.as_float(total), body.op("Mul", f"{quantized}_1", scale))


def _direction(
    body: Body, d: int, gates: str, back: bool, functions: list[Activation], lengths: _Lengths | None
) -> tuple[str, str, str]:
    """All hidden states, the last one, and the last cell state."""
    parts = _of_direction(body, d, R, R_SCALE, R_ZERO)
    bias = peepholes = ""
    if body.has(BIAS):
        (whole,) = _of_direction(body, d, BIAS)
        halves = body.op("Split", whole, axis=0, num_outputs=2, outs=2)
        bias = body.op("Add", halves, f"{halves}_1")
    if body.has(PEEPHOLES):
        (whole,) = _of_direction(body, d, PEEPHOLES)
        peepholes = body.op("Split", whole, axis=0, num_outputs=3, outs=3)
    starts = [_of_direction(body, d, i)[0] if body.has(i) else _zeros(body) for i in (H0, C0)]
    step = body.inner()
    h, c, last, own, going = (f"{step.prefix}{name}" for name in ("h", "c", "last", "gates", "going"))
    given = _product(step, step.op("DynamicQuantizeLinear", h, outs=3), R, parts)
    hidden, cell = _cell(step, step.op("Add", own, given), c, bias, peepholes, functions)
    if lengths is None:
        graph = step.graph((h, c, own), (hidden, cell, step.op("Identity", hidden)))
        ways = {"scan_input_directions": [int(back)], "scan_output_directions": [int(back)]}
        made = body.op("Scan", *starts, gates, outs=3, body=graph, num_scan_inputs=1, **ways)
        return f"{made}_2", made, f"{made}_1"
    ending = step.op("Where", going, hidden, last)
    carried = step.op("Where", going, hidden, step.number(0.0)) if body.wants(0) else step.op("Identity", ending)
    kept = step.op("Where", going, cell, c)
    graph = step.graph((h, c, last, own, going), (carried, kept, ending, step.op("Identity", carried)))
    gates = lengths.reversed(body, gates) if back else gates
    made = body.op("Scan", *starts, _zeros(body), gates, lengths.going, outs=4, body=graph, num_scan_inputs=2)
    whole = lengths.reversed(body, f"{made}_3") if back else f"{made}_3"
    return whole, f"{made}_2", body.op("Where", lengths.some, f"{made}_1", body.number(0.0))


def _zeros(body: Body) -> str:
    batch, hidden = body.type(X).shape[1], body.type(R).shape[1]
    if not isinstance(batch, int):
        raise Unsupported(f"the size of the batch, {batch}, is known only at run time", "fix it with --dim or --shape")
    return body.constant(np.zeros((batch, int(str(hidden))), np.float32))


def _cell(step: Body, total: str, c: str, bias: str, peepholes: str, functions: list[Activation]) -> tuple[str, str]:
    """The next hidden state and the next cell state."""
    f, g, h = functions
    pieces = step.op("Split", total, axis=-1, num_outputs=4, outs=4)
    biases = step.op("Split", bias, axis=-1, num_outputs=4, outs=4) if bias else ""

    def named(first: str, place: int) -> str:
        return f"{first}_{place}" if place else first

    def gate(place: int, function: Activation, seen: str = "", peephole: int = 0) -> str:
        x = named(pieces, place)
        if peepholes and seen:
            x = step.op("Add", x, step.op("Mul", seen, named(peepholes, peephole)))
        if bias:
            x = step.op("Add", x, named(biases, place))
        clip = step.attribute("clip", 0.0)
        if clip:
            x = step.op("Clip", x, step.number(-clip), step.number(clip))
        return _activated(step, x, function)

    taken = gate(0, f, c, 0)
    kept = step.op("Sub", step.number(1.0), taken) if step.attribute("input_forget", 0) else gate(2, f, c, 2)
    cell = step.op("Add", step.op("Mul", kept, c), step.op("Mul", taken, gate(3, g)))
    shown = gate(1, f, cell, 1)
    return step.op("Mul", shown, _activated(step, cell, h)), cell


def _activated(step: Body, x: str, function: Activation) -> str:
    name, alpha, beta = function
    if name == "affine":
        return step.op("Add", step.op("Mul", x, step.number(alpha)), step.number(beta))
    if name == "scaledtanh":
        return step.op("Mul", step.op("Tanh", step.op("Mul", x, step.number(beta))), step.number(alpha))
    op, taken = _OPERATORS[name]
    values: dict[str, Any] = {"alpha": alpha, "beta": beta}
    return step.op(op, x, **{attribute: values[attribute] for attribute in taken})
