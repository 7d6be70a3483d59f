"""Trains a small transformer on made-up stories, and writes it as decoders with a cache are exported:

    story.onnx      `token` int64 [1, 1] and the past -> `logits` float32 [1, 1, 256] and the present;
                    weights of 4 bits (MatMulNBits), keys and values float32 [1, 4, past, 16]
    pieces.h        the vocabulary

    pip install numpy onnx
    OMP_NUM_THREADS=1 python examples/story/train.py      # some minutes

Everything is numpy, gradients are written by hand. Weights are kept as floats while training; in the second half each
step rounds them to 4 bits, and the slopes of the rounded ones change the floats.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from network import BLOCK, HEADS, LAYERS, WIDTH, onnx_model, quantized
from stories import as_header, encoded, pieces_of, stories

HERE = Path(__file__).resolve().parent
SEED, COUNT, FOR_PIECES, PIECES = 7, 20000, 3000, 256
LENGTH, BATCH, STEPS, RATE = 96, 32, 1000, 4e-3
EPSILON = 1e-5
Arrays = dict[str, np.ndarray]


def rounded(weights: np.ndarray) -> np.ndarray:
    """What 4 bits hold, in blocks of columns."""
    levels, scales = quantized(weights)
    return ((levels - 8.0).reshape(-1, BLOCK) * scales.reshape(-1, 1)).reshape(weights.shape).astype(np.float32)


def normalized(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
    return centred * inverse, inverse


def slopes_of_normalized(slope: np.ndarray, made: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    mean, along = slope.mean(-1, keepdims=True), (slope * made).mean(-1, keepdims=True)
    return (slope - mean - made * along) * inverse


def heads(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)


def by_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The slopes of weights [outputs, inputs] of which a are the results' slopes and b the inputs."""
    return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])


def step(w: Arrays, tokens: np.ndarray, bias: np.ndarray) -> tuple[float, Arrays]:
    """The cross-entropy of each next token, and the slopes of all weights."""
    given, wanted = tokens[:, :-1], tokens[:, 1:]
    x, kept = w["pieces"][given], []
    for n in range(LAYERS):
        a, a_inverse = normalized(x)
        q, k, v = (heads(part) for part in np.split(a @ w[f"{n}.qkv"].T, 3, axis=-1))
        shares = q @ k.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5 + bias
        shares = np.exp(shares - shares.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = flat(shares @ v)
        x = x + mixed @ w[f"{n}.out"].T
        b, b_inverse = normalized(x)
        h = np.maximum(b @ w[f"{n}.up"].T, 0)
        x = x + h @ w[f"{n}.down"].T
        kept.append((a, a_inverse, q, k, v, shares, mixed, b, b_inverse, h))
    f, f_inverse = normalized(x)
    logits = f @ w["pieces"].T
    logits -= logits.max(-1, keepdims=True)
    chances = np.exp(logits)
    chances /= chances.sum(-1, keepdims=True)
    chosen = np.take_along_axis(chances, wanted[..., None], -1)
    loss = float(-np.log(chosen + 1e-9).mean())

    slopes: Arrays = {}
    np.put_along_axis(chances, wanted[..., None], chosen - 1, -1)
    chances /= wanted.size
    slopes["pieces"] = by_rows(chances, f)
    dx = slopes_of_normalized(chances @ w["pieces"], f, f_inverse)
    for n in reversed(range(LAYERS)):
        a, a_inverse, q, k, v, shares, mixed, b, b_inverse, h = kept[n]
        slopes[f"{n}.down"] = by_rows(dx, h)
        dh = (dx @ w[f"{n}.down"]) * (h > 0)
        slopes[f"{n}.up"] = by_rows(dh, b)
        dx = dx + slopes_of_normalized(dh @ w[f"{n}.up"], b, b_inverse)
        slopes[f"{n}.out"] = by_rows(dx, mixed)
        dmixed = heads(dx @ w[f"{n}.out"])
        dshares = dmixed @ v.transpose(0, 1, 3, 2)
        dscores = shares * (dshares - (dshares * shares).sum(-1, keepdims=True)) * (WIDTH // HEADS) ** -0.5
        parts = (dscores @ k, dscores.transpose(0, 1, 3, 2) @ q, shares.transpose(0, 1, 3, 2) @ dmixed)
        dqkv = np.concatenate([flat(part) for part in parts], -1)
        slopes[f"{n}.qkv"] = by_rows(dqkv, a)
        dx = dx + slopes_of_normalized(dqkv @ w[f"{n}.qkv"], a, a_inverse)
    np.add.at(slopes["pieces"], given.reshape(-1), dx.reshape(-1, WIDTH))
    return loss, slopes


def started(chance: np.random.Generator) -> Arrays:
    def drawn(rows: int, columns: int, factor: float = 1.0) -> np.ndarray:
        return (chance.standard_normal((rows, columns)) * factor * columns**-0.5).astype(np.float32)

    w = {"pieces": drawn(PIECES, WIDTH, 0.5)}
    for n in range(LAYERS):
        w |= {f"{n}.qkv": drawn(3 * WIDTH, WIDTH), f"{n}.out": drawn(WIDTH, WIDTH, 0.4)}
        w |= {f"{n}.up": drawn(4 * WIDTH, WIDTH), f"{n}.down": drawn(WIDTH, 4 * WIDTH, 0.4)}
    return w


def train(texts: list[str], pieces: list[str]) -> Arrays:
    """Adam on windows of text that begin with a story."""
    chance = np.random.default_rng(SEED)
    numbers = [encoded(text, pieces) for text in texts]
    whole, starts = np.array([n for each in numbers for n in each]), np.cumsum([0, *map(len, numbers)])
    starts = starts[starts + LENGTH + 1 < len(whole)]
    places = np.arange(LENGTH)
    past = (places[None] - places[:, None]).astype(np.float32)
    tilt = 2.0 ** -np.arange(1, 2 * HEADS, 2, dtype=np.float32)
    bias = np.where(past > 0, np.float32(-1e9), tilt[:, None, None] * past)
    w = started(chance)
    mean, square = ({name: np.zeros_like(array) for name, array in w.items()} for _ in range(2))
    for number in range(STEPS):
        tokens = np.stack([whole[s : s + LENGTH + 1] for s in chance.choice(starts, BATCH)])
        now = {name: rounded(array) for name, array in w.items()} if 2 * number >= STEPS else w
        loss, slopes = step(now, tokens, bias)
        rate = RATE * min(1, (number + 1) / 50) * (0.02 + 0.98 * (1 - number / STEPS))
        for name, slope in slopes.items():
            mean[name] += 0.1 * (slope - mean[name])
            square[name] += 0.01 * (slope**2 - square[name])
            corrected = mean[name] / (1 - 0.9 ** (number + 1))
            w[name] -= rate * corrected / (np.sqrt(square[name] / (1 - 0.99 ** (number + 1))) + 1e-8)
        if number % 50 == 0 or number == STEPS - 1:
            print(f"step {number}: {loss:.3f}", flush=True)
    return w


def main() -> None:
    texts = stories(COUNT, SEED)
    pieces = pieces_of(texts[:FOR_PIECES], PIECES)
    w = train(texts, pieces)
    onnx_model(w, HERE / "story.onnx")
    (HERE / "pieces.h").write_text(as_header(pieces), encoding="ascii")


if __name__ == "__main__":
    main()
