"""Makes voice.onnx, a small network that tells voice from other sounds, and recording.wav, six seconds to try it on.

    python examples/voice/train.py

The sounds are made up: vowels, which are harmonics of a pitch that glides, shaped by formants; and noise, hum, whistles
and knocks. The network sees windows of log-mel energies, as `mccompile frontend` makes them; its convolutions are drawn
by chance, and only the dense layer is fitted, by least squares.
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from onnx import ModelProto, numpy_helper, parser, save

import mccompile

HERE = Path(__file__).parent
RATE, WINDOW, HOP, MELS = 8000, 240, 160, 20  # the Makefile says the same to `mccompile frontend`
FRAMES, WIDTH = 16, 24
FORMANTS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))


def vowel(seconds: float, chance: np.random.Generator) -> np.ndarray:
    time = np.arange(int(seconds * RATE)) / RATE
    pitch = chance.uniform(90, 240) * (1 + chance.uniform(-0.3, 0.3) * time / seconds)
    turns, middle = np.cumsum(pitch) / RATE, float(pitch.mean())
    sound = np.zeros(len(time))
    formants = chance.choice(FORMANTS) * chance.uniform(0.9, 1.1)
    for n in range(1, int(RATE / 2.2 / pitch.max())):
        height = sum(1 / (1 + ((n * middle - f) / 90) ** 2) / k for k, f in enumerate(formants, 1))
        sound += (height + 0.01) * np.sin(2 * np.pi * n * turns)
    return np.asarray(sound / np.abs(sound).max() * np.sin(np.pi * time / seconds) ** 0.4)


def speech(seconds: float, chance: np.random.Generator) -> np.ndarray:
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < seconds * RATE:
        parts += [vowel(chance.uniform(0.1, 0.3), chance), np.zeros(int(chance.uniform(0, 0.06) * RATE))]
    return np.concatenate(parts)[: int(seconds * RATE)]


def other(kind: str, seconds: float, chance: np.random.Generator) -> np.ndarray:
    time = np.arange(int(seconds * RATE)) / RATE
    if kind == "noise":
        return chance.standard_normal(len(time)) / 3
    if kind == "hum":
        return np.asarray(sum(np.sin(2 * np.pi * 50 * n * time + n) / n for n in (1, 2, 3, 5)) / 2)
    if kind == "whistle":
        return np.asarray(np.sin(2 * np.pi * np.cumsum(chance.uniform(700, 2500) + 200 * np.sin(9 * time)) / RATE))
    return np.asarray(chance.standard_normal(len(time)) * np.exp(-30 * (time % chance.uniform(0.15, 0.4))))


def track(pieces: list[tuple[str, float]], chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples, and where there is voice."""
    sounds, voiced = [], []
    for kind, seconds in pieces:
        if kind == "voice":
            sound = speech(seconds, chance)
        else:
            sound = other(kind, seconds, chance) if kind != "quiet" else np.zeros(int(seconds * RATE))
        sounds.append(sound * chance.uniform(0.15, 0.7))
        voiced.append(np.full(len(sound), kind == "voice"))
    whole = np.concatenate(sounds)
    whole += chance.standard_normal(len(whole)) * chance.uniform(0.002, 0.02)
    return (np.clip(whole, -1, 1) * 32767).astype(np.int16), np.concatenate(voiced)


def network(dense: np.ndarray, bias: float, until: str = "score") -> ModelProto:
    chance = np.random.default_rng(1)
    seen = WIDTH * (FRAMES - 4)
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> voice (float[1,{MELS},{FRAMES}] energies) => '
        f"(float[1,{1 if until == 'score' else seen}] {until}) {{ a = Add(energies, middle) n = Mul(a, spread)"
        " c = Conv(n, w1) r = Relu(c) d = Conv(r, w2) s = Relu(d) seen = Flatten(s) score = Gemm(seen, dense, bias) }"
    )
    weights = {
        "middle": 2, "spread": 0.25, "dense": dense, "bias": [bias],
        "w1": chance.standard_normal((WIDTH, MELS, 3)) / np.sqrt(3 * MELS),
        "w2": chance.standard_normal((WIDTH, WIDTH, 3)) / np.sqrt(3 * WIDTH),
    }  # fmt: skip
    made.graph.initializer.extend(numpy_helper.from_array(np.float32(array), name) for name, array in weights.items())
    return made


def main() -> None:
    chance = np.random.default_rng(2)
    kinds = ("voice", "voice", "noise", "hum", "whistle", "knocks", "quiet")
    settings = {"rate": RATE, "window": WINDOW, "hop": HOP, "mels": MELS, "features_first": True}
    seconds = 6.0
    features = mccompile.load(mccompile.audio_frontend(samples=int(seconds * RATE), **settings))
    seen = mccompile.load(network(np.zeros((WIDTH * (FRAMES - 4), 1)), 0.0, "seen"))
    rows, wanted = [], []
    for _ in range(60):
        pieces = [(str(kind), 0.75) for kind in chance.choice(kinds, 8)]
        samples, voiced = track(pieces, chance)
        (energies,) = features(samples[None])
        for last in range(FRAMES, energies.shape[2] + 1):
            heard = voiced[(last - FRAMES) * HOP : last * HOP].mean()
            if heard in (0, 1):
                rows.append(seen(np.ascontiguousarray(energies[:, :, last - FRAMES : last]))[0][0])
                wanted.append(heard)
    known, target = np.array(rows), np.array(wanted)
    middle = known.mean(axis=0)
    apart = known - middle
    found = np.linalg.solve(apart.T @ apart + 3 * np.eye(known.shape[1]), apart.T @ (target - target.mean()))
    bias = float(target.mean() - middle @ found)
    score = known @ found + bias
    print(f"{((score > 0.5) == (target > 0.5)).mean():.1%} of {len(score)} windows are told right")
    save(network(found[:, None], bias), HERE / "voice.onnx")
    pieces = [("quiet", 0.6), ("voice", 1.4), ("noise", 1.0), ("whistle", 0.6), ("voice", 1.2), ("knocks", 1.2)]
    samples, _ = track(pieces, np.random.default_rng(5))
    with wave.open(str(HERE / "recording.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


if __name__ == "__main__":
    main()
