"""RNN, GRU and LSTM, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from .elementwise import sigmoid, softplus

Function = Callable[[Array], Array]


def activation(name: str, alpha: float | None, beta: float | None) -> Function:
    def number(given: float | None, default: float) -> float:
        return float(np.float32(default)) if given is None else given

    functions: dict[str, Function] = {
        "affine": lambda x: number(alpha, 1.0) * x + number(beta, 0.0),
        "elu": lambda x: np.where(x < 0, number(alpha, 1.0) * np.expm1(np.minimum(x, 0)), x),
        "hardsigmoid": lambda x: np.clip(number(alpha, 0.2) * x + number(beta, 0.5), 0, 1),
        "leakyrelu": lambda x: np.where(x < 0, number(alpha, 0.01) * x, x),
        "relu": lambda x: np.maximum(x, 0),
        "scaledtanh": lambda x: number(alpha, 1.0) * np.tanh(number(beta, 1.0) * x),
        "sigmoid": sigmoid,
        "softplus": softplus,
        "softsign": lambda x: x / (1 + np.abs(x)),
        "tanh": np.tanh,
        "thresholdedrelu": lambda x: np.where(x > number(alpha, 1.0), x, 0),
    }
    if name.lower() not in functions:
        raise NoWitness(f"activation {name}")
    return functions[name.lower()]


_TAKES_ALPHA = ("affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu")
_TAKES_BETA = ("affine", "hardsigmoid", "scaledtanh")


def activations(at: NodeSite, usual: list[str], directions: int) -> list[list[Function]]:
    """Per direction. Numbers go to the functions that take them, in order."""
    names = at.attr("activations") or usual * directions
    alphas, betas = list(at.attr("activation_alpha") or ()), list(at.attr("activation_beta") or ())
    found = []
    for name in names:
        alpha = alphas.pop(0) if alphas and name.lower() in _TAKES_ALPHA else None
        beta = betas.pop(0) if betas and name.lower() in _TAKES_BETA else None
        found.append(activation(name, alpha, beta))
    return [found[n : n + len(usual)] for n in range(0, len(found), len(usual))]


Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]


def walk(
    x: Array, lengths: Array, state: tuple[Array, ...], step: Step, backward: bool
) -> tuple[Array, tuple[Array, ...]]:
    """All steps of one direction: x[time, batch, input]. Behind its end a sequence gives 0 and keeps its state."""
    time, batch = x.shape[:2]
    found = np.zeros((time, batch, state[0].shape[-1]))
    for n in range(batch):
        order = range(int(lengths[n]))
        now = tuple(each[n] for each in state)
        for t in reversed(order) if backward else order:
            now = step(x[t, n], now)
            found[t, n] = now[0]
        for each, last in zip(state, now, strict=True):
            each[n] = last
    return found, state


def run(at: NodeSite, gates: int, states: int, make: Callable[[int], Step], hidden: int) -> tuple[Array, ...]:
    x = at[0]
    turned = bool(at.attr("layout", 0))
    if turned:
        x = x.swapaxes(0, 1)
    time, batch = x.shape[:2]
    lengths = at.get(4, np.full(batch, time))
    how = at.attr("direction", "forward")
    directions = 2 if how == "bidirectional" else 1
    begin = []
    for n in range(states):
        given = at.get(5 + n)
        given = np.zeros((directions, batch, hidden)) if given is None else given.swapaxes(0, 1) if turned else given
        begin.append(given.copy())
    outs, ends = [], []
    for direction in range(directions):
        backward = how == "reverse" or direction == 1
        found, state = walk(x, lengths, tuple(each[direction] for each in begin), make(direction), backward)
        outs.append(found)
        ends.append(state)
    y = np.stack(outs, 1)
    last = [np.stack([end[n] for end in ends]) for n in range(states)]
    if turned:
        y, last = y.transpose(2, 0, 1, 3), [each.swapaxes(0, 1) for each in last]
    return (y, *last)


def _clipped(at: NodeSite) -> Function:
    limit = at.attr("clip")
    return (lambda v: v) if limit is None else (lambda v: np.clip(v, -limit, limit))


def _parts(at: NodeSite, direction: int, gates: int, hidden: int) -> tuple[Array, Array, Array, Array]:
    w, r = at[1][direction], at[2][direction]
    bias = at.get(3, np.zeros((direction + 1, 2 * gates * hidden)))[direction]
    return w, r, bias[: gates * hidden], bias[gates * hidden :]


@judges("RNN")
def rnn(at: NodeSite) -> tuple[Array, ...]:
    hidden, clip = at[2].shape[-1], _clipped(at)
    functions = activations(at, ["Tanh"], at[1].shape[0])

    def make(direction: int) -> Step:
        w, r, wb, rb = _parts(at, direction, 1, hidden)
        (f,) = functions[direction]
        return lambda x, state: (f(clip(w @ x + r @ state[0] + wb + rb)),)

    return run(at, 1, 1, make, hidden)


@judges("GRU")
def gru(at: NodeSite) -> tuple[Array, ...]:
    hidden, clip = at[2].shape[-1], _clipped(at)
    functions = activations(at, ["Sigmoid", "Tanh"], at[1].shape[0])
    after = at.attr("linear_before_reset", 0)

    def make(direction: int) -> Step:
        w, r, wb, rb = _parts(at, direction, 3, hidden)
        f, g = functions[direction]

        def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            (h,) = state
            wz, wr, wh = (w @ x + wb).reshape(3, hidden)
            rz, rr, _ = (r @ h + rb).reshape(3, hidden)
            update, reset = f(clip(wz + rz)), f(clip(wr + rr))
            rh, bias = r[2 * hidden :], rb[2 * hidden :]
            inner = reset * (rh @ h + bias) if after else rh @ (reset * h) + bias
            new = g(clip(wh + inner))
            return ((1 - update) * new + update * h,)

        return step

    return run(at, 3, 1, make, hidden)


@judges("LSTM")
def lstm(at: NodeSite) -> tuple[Array, ...]:
    return lstm_with(at, at[1], at[2])


def lstm_with(at: NodeSite, weights: Array, recurrence: Array) -> tuple[Array, ...]:
    hidden, clip = recurrence.shape[-1], _clipped(at)
    functions = activations(at, ["Sigmoid", "Tanh", "Tanh"], weights.shape[0])
    forget_less = at.attr("input_forget", 0)

    def make(direction: int) -> Step:
        w, r = weights[direction], recurrence[direction]
        bias = at.get(3, np.zeros((direction + 1, 8 * hidden)))[direction]
        bias = bias[: 4 * hidden] + bias[4 * hidden :]
        peep = at.get(7, np.zeros((direction + 1, 3 * hidden)))[direction].reshape(3, hidden)
        f, g, h = functions[direction]

        def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            before, cell = state
            i, o, forget, c = (w @ x + r @ before + bias).reshape(4, hidden)
            i = f(clip(i + peep[0] * cell))
            forget = 1 - i if forget_less else f(clip(forget + peep[2] * cell))
            cell = forget * cell + i * g(clip(c))
            o = f(clip(o + peep[1] * cell))
            return o * h(cell), cell

        return step

    return run(at, 4, 2, make, hidden)
