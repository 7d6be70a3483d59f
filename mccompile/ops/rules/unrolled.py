"""Recurrent layers as ordinary nodes, one step after the other: what their gradients are taken of.

Invariant: the results are those of the layer's own lowering; forms that are not written out are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...expr.ir import apply, literal, operand
from ...graph.ir import Value
from .backward import Backward

MOST_STEPS = 512
_OPERATORS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "softsign": "Softsign", "softplus": "Softplus"}
_WITH_ALPHA = {"leakyrelu": "LeakyRelu", "thresholdedrelu": "ThresholdedRelu", "elu": "Elu"}

Activation = tuple[str, float, float]  # name in lower case, alpha, beta
Cell = Callable[["Steps", Value, list[Value]], list[Value]]


def activated(back: Backward, named: Activation, x: Value) -> Value:
    name, alpha, beta = named
    if name in _OPERATORS:
        return back.op(_OPERATORS[name], x)
    if name in _WITH_ALPHA:
        return back.op(_WITH_ALPHA[name], x, alpha=alpha)
    if name == "hardsigmoid":
        return back.op("HardSigmoid", x, alpha=alpha, beta=beta)
    element = operand(0, x.type.dtype)
    first, second = literal(alpha, x.type.dtype), literal(beta, x.type.dtype)
    if name == "affine":
        return back.pointwise(apply("add", apply("mul", first, element), second), x)
    return back.pointwise(apply("mul", first, apply("tanh", apply("mul", second, element))), x)


class Steps:
    """One direction of a layer: weights, and how a step makes the next states of [batch, hidden]. `clip`: how far from
    0 what goes into gates may be."""

    def __init__(self, back: Backward, direction: int, functions: Sequence[Activation], clip: float | None) -> None:
        self.back, self.direction, self.functions, self.clip = back, direction, functions, clip
        _, rows, self.hidden = back.shape(2)
        self.w, self.r = (back.turned(self._own(i, back.shape(i)[1:])) for i in (1, 2))  # [inputs, rows]
        self.of_x, self.of_h = None, None
        if back.has(3):
            bias = self._own(3, (2, rows))
            self.of_x, self.of_h = (back.reshape(back.slice(bias, 0, n, 1), (1, rows)) for n in range(2))

    def _own(self, index: int, shape: Sequence[int]) -> Value:
        back = self.back
        return back.reshape(back.slice(back.input(index), 0, self.direction, 1), shape)

    def gate(self, rows: Value, number: int) -> Value:
        return self.back.slice(rows, 1, number * self.hidden, self.hidden)

    def activated(self, function: int, x: Value) -> Value:
        if self.clip is not None:
            x = self.back.op("Clip", x, self.back.number(-self.clip, x), self.back.number(self.clip, x))
        return activated(self.back, self.functions[function], x)

    def shown(self, memory: Value) -> Value:
        """Of an LSTM's cell, which is not clipped."""
        return activated(self.back, self.functions[2], memory)

    def sum(self, *values: Value | None) -> Value:
        first, *rest = [value for value in values if value is not None]
        for value in rest:
            first = self.back.op("Add", first, value)
        return first

    def product(self, a: Value, b: Value) -> Value:
        return self.back.op("Mul", a, b)

    def peephole(self, number: int, cell: Value) -> Value | None:
        if not self.back.has(7):
            return None
        weights = self._own(7, (1, 3 * self.hidden))
        return self.product(self.gate(weights, number), cell)


def rnn(steps: Steps, x: Value, states: list[Value]) -> list[Value]:
    own = steps.back.op("MatMul", states[0], steps.r)
    return [steps.activated(0, steps.sum(x, own, steps.of_h))]


def gru(reset_after: bool) -> Cell:
    def cell(steps: Steps, x: Value, states: list[Value]) -> list[Value]:
        back, (h,) = steps.back, states
        own = steps.sum(back.op("MatMul", h, steps.r), steps.of_h)
        update, reset = (steps.activated(0, steps.sum(steps.gate(x, n), steps.gate(own, n))) for n in range(2))
        if reset_after:
            inner = steps.product(reset, steps.gate(own, 2))
        else:
            inner = back.op("MatMul", steps.product(reset, h), steps.gate(steps.r, 2))
            inner = steps.sum(inner, None if steps.of_h is None else steps.gate(steps.of_h, 2))
        new = steps.activated(1, steps.sum(steps.gate(x, 2), inner))
        return [steps.sum(new, steps.product(update, back.op("Sub", h, new)))]

    return cell


def lstm(coupled: bool) -> Cell:
    """Gates in the order i, o, f, c; peepholes i, o, f."""

    def cell(steps: Steps, x: Value, states: list[Value]) -> list[Value]:
        back, (h, c) = steps.back, states
        whole = steps.sum(x, back.op("MatMul", h, steps.r), steps.of_h)
        enter = steps.activated(0, steps.sum(steps.gate(whole, 0), steps.peephole(0, c)))
        if coupled:
            forget = back.op("Sub", back.number(1, enter), enter)
        else:
            forget = steps.activated(0, steps.sum(steps.gate(whole, 2), steps.peephole(2, c)))
        new = steps.activated(1, steps.gate(whole, 3))
        memory = steps.sum(steps.product(forget, c), steps.product(enter, new))
        leave = steps.activated(0, steps.sum(steps.gate(whole, 1), steps.peephole(1, memory)))
        return [steps.product(leave, steps.shown(memory)), memory]

    return cell


def written_out(
    back: Backward,
    cell: Cell,
    states: int,
    functions: Sequence[Sequence[Activation]],
    backwards: Sequence[bool],
    batch_first: bool,
    clip: float | None,
) -> list[Value]:
    """The layer's results: all outputs, and the last of each state. Behind its end a sequence gives 0 and keeps its
    states."""
    x = back.transpose(back.input(0), (1, 0, 2)) if batch_first else back.input(0)
    time, batch, inputs = (int(n) for n in x.type.static_shape)
    if time * len(backwards) > MOST_STEPS:
        back.refuse(f"{time} steps of a recurrent layer are more than {MOST_STEPS}", "learn from shorter sequences")
    directions = []
    for number, (named, turned) in enumerate(zip(functions, backwards, strict=True)):
        steps = Steps(back, number, named, clip)
        flat = back.op("MatMul", back.reshape(x, (time * batch, inputs)), steps.w)
        rows = back.reshape(steps.sum(flat, steps.of_x), (time, batch, back.shape(1)[1]))
        now = [_initial(back, 5 + n, number, batch, steps.hidden, batch_first) for n in range(states)]
        outputs: list[Value] = []
        for place in reversed(range(time)) if turned else range(time):
            given = back.reshape(back.slice(rows, 0, place, 1), (batch, back.shape(1)[1]))
            before, now = now, cell(steps, given, now)
            output = now[0]
            if back.has(4):
                goes_on = _goes_on(back, place, batch)
                output = back.op("Where", goes_on, output, back.number(0, output))
                now = [back.op("Where", goes_on, *pair) for pair in zip(now, before, strict=True)]
            outputs.append(back.reshape(output, (1, 1, batch, steps.hidden)))
        whole = outputs[::-1] if turned else outputs
        lasts = [back.reshape(state, (1, batch, steps.hidden)) for state in now]
        directions.append([_joined(back, whole, 0), *lasts])
    results = zip(*directions, strict=True)
    found = [_joined(back, list(parts), axis) for parts, axis in zip(results, (1, 0, 0), strict=False)]
    if not batch_first:
        return found
    return [back.transpose(found[0], (2, 0, 1, 3)), *(back.transpose(state, (1, 0, 2)) for state in found[1:])]


def _goes_on(back: Backward, place: int, batch: int) -> Value:
    """Which sequences of the batch have this place."""
    lengths = back.input(4)
    return back.reshape(back.op("Greater", lengths, back.number(place, lengths)), (batch, 1))


def _initial(back: Backward, index: int, direction: int, batch: int, hidden: int, batch_first: bool) -> Value:
    if not back.has(index):
        return back.expand(back.number(0, back.input(0)), (batch, hidden))
    return back.reshape(back.slice(back.input(index), 1 if batch_first else 0, direction, 1), (batch, hidden))


def _joined(back: Backward, parts: list[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else back.op("Concat", *parts, axis=axis)
