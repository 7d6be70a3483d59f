"""What a layer of recurrent cells means: ONNX's equations, one step at a time, in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.recurrent import Recurrent


def oracle(kind: Recurrent, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    given = dict(zip(kind.names, arrays, strict=True))
    wide = {name: a if name == "lengths" else a.astype(np.float64) for name, a in given.items()}
    for name in ("r", "w"):
        if f"{name}_scale" in wide:
            wide[name] = wide[name] * wide[f"{name}_scale"][..., None]
    time, batch, directions, _ = wide["x"].shape
    rows, hidden = wide["r"].shape[1:]
    if "w" in wide:
        wide["x"] = np.einsum("tbdi,dri->tbdr", wide["x"], wide["w"])
        wide["x"] += wide.get("w_bias", 0)
    y = np.zeros((time, directions, batch, hidden))
    h_last, c_last = np.zeros((directions, batch, hidden)), np.zeros((directions, batch, hidden))
    for d in range(directions):
        for b in range(batch):
            bias = wide["bias"][d] if "bias" in wide else np.zeros(rows)
            h = wide["h0"][d, b] if "h0" in wide else np.zeros(hidden)
            c = wide["c0"][d, b] if "c0" in wide else np.zeros(hidden)
            peepholes = wide["peepholes"][d] if "peepholes" in wide else np.zeros(3 * hidden)
            length = int(wide["lengths"][b]) if "lengths" in wide else time
            places = range(length)
            for t in reversed(places) if kind.backwards[d] else places:
                h, c = _step(kind, wide["x"][t, b, d], wide["r"][d], bias, h, c, peepholes)
                y[t, d, b] = h
            h_last[d, b], c_last[d, b] = h, c
    dtype = kind.accumulator.numpy if arrays[1].dtype.kind == "i" else arrays[1].dtype
    results = {"y": y, "h": h_last, "c": c_last}
    return tuple(results[name].astype(dtype) for name in kind.gives)


def _step(
    kind: Recurrent, x: np.ndarray, r: np.ndarray, bias: np.ndarray, h: np.ndarray, c: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n = len(h)

    def activation(number: int, clips: bool = True) -> Callable[[np.ndarray], np.ndarray]:
        bound = kind.clip if clips and kind.clip is not None else np.inf
        return lambda value: evaluate(kind.activations[number], [np.clip(value, -bound, bound)], value.shape)

    f = activation(0)
    if kind.cell == "rnn":
        return f(x + r @ h + bias), c
    if kind.cell == "gru":
        g = activation(1)
        z = f(x[:n] + r[:n] @ h + bias[:n])
        reset = f(x[n : 2 * n] + r[n : 2 * n] @ h + bias[n : 2 * n])
        if kind.reset_after:
            new = g(x[2 * n :] + reset * (r[2 * n :] @ h + bias[2 * n :]))
        else:
            new = g(x[2 * n :] + r[2 * n :] @ (reset * h) + bias[2 * n :])
        return (1 - z) * new + z * h, c
    sums = x + r @ h + bias
    i = f(sums[:n] + p[:n] * c)
    forget = 1 - i if kind.coupled else f(sums[2 * n : 3 * n] + p[2 * n :] * c)
    c = forget * c + i * activation(1)(sums[3 * n :])
    o = f(sums[n : 2 * n] + p[n : 2 * n] * c)
    return o * activation(2, clips=False)(c), c
