"""Makes words.onnx, a small network that knows six words and has room for two more, and recordings.bin.

    python examples/personal_words/train.py

The sounds are made up: a "word" is a whistle whose pitch goes along a curve of its own, in noise, at a loudness, pitch
and moment that chance draws. The network sees log-mel energies, as `mccompile frontend` makes them, as bytes; it is
trained on the six by `mccompile.train`. recordings.bin has those that main.c learns from and is tried on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import mccompile

HERE = Path(__file__).parent
RATE, WINDOW, HOP, MELS, FRAMES, WIDTH = 8000, 240, 160, 16, 20, 16
LENGTH = WINDOW + (FRAMES - 1) * HOP
CURVES = {  # of pitch, over time from 0 to 1
    "rising": lambda t: 700 + 1300 * t,
    "falling": lambda t: 2000 - 1300 * t,
    "level": lambda t: 1300 + 0 * t,
    "deep": lambda t: 600 + 0 * t,
    "peak": lambda t: 800 + 1200 * np.sin(np.pi * t),
    "valley": lambda t: 2000 - 1200 * np.sin(np.pi * t),
    "siren": lambda t: 1300 + 500 * np.sin(6 * np.pi * t),  # these two are learned on the device
    "stairs": lambda t: 700 + 400 * np.floor(4 * t),
}
OLD, WORDS = 6, len(CURVES)
REHEARSED, LEARNED, TRIED = 4, 8, 10  # recordings of each old word, of each new one, and of all to be tried on
BATCH, STEPS = 32, 400


def sound(word: str, chance: np.random.Generator) -> np.ndarray:
    time = np.clip((np.arange(LENGTH) / LENGTH - chance.uniform(0, 0.12)) / 0.88, 0, 1)
    turns = np.cumsum(CURVES[word](time) * chance.uniform(0.9, 1.1)) / RATE
    whistle = np.sin(2 * np.pi * turns) * np.sin(np.pi * time) ** 0.3 * chance.uniform(0.2, 0.6)
    return (np.clip(whistle + 0.03 * chance.standard_normal(LENGTH), -1, 1) * 32767).astype(np.int16)


def network() -> ModelProto:
    chance = np.random.default_rng(1)
    shapes = {"c1": (WIDTH, MELS, 3), "c2": (WIDTH, WIDTH, 3), "dense": (WIDTH * (FRAMES - 4), WORDS)}
    weights = {
        name: chance.standard_normal(s) / np.sqrt(s[0] if name == "dense" else 3 * s[1]) for name, s in shapes.items()
    }
    biases = {"b1": np.full(WIDTH, 0.01), "b2": np.full(WIDTH, 0.02), "bias": np.zeros(WORDS)}
    nodes = [
        helper.make_node("Conv", ["sound", "c1", "b1"], ["x1"]),
        helper.make_node("Relu", ["x1"], ["r1"]),
        helper.make_node("Conv", ["r1", "c2", "b2"], ["x2"]),
        helper.make_node("Relu", ["x2"], ["r2"]),
        helper.make_node("Flatten", ["r2"], ["seen"]),
        helper.make_node("Gemm", ["seen", "dense", "bias"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info("sound", TensorProto.FLOAT, ("batch", MELS, FRAMES))],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ("batch", WORDS))],
        [numpy_helper.from_array(np.asarray(a, np.float32), name) for name, a in (weights | biases).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    chance = np.random.default_rng(2)
    settings = {"rate": RATE, "window": WINDOW, "hop": HOP, "mels": MELS, "features_first": True}
    features = mccompile.load(mccompile.audio_frontend(samples=LENGTH, **settings))

    def recording(number: int) -> np.ndarray:
        """Log-mel energies as bytes."""
        (energies,) = features(sound(list(CURVES)[number], chance)[None])
        return np.asarray(np.clip((energies[0] + 2) * 32, -128, 127).astype(np.int8))

    net = mccompile.train(
        network(), loss="cross_entropy:scores", learn="all", optimizer="adam,lr=0.002", dims={"batch": BATCH}
    )
    for step in range(STEPS):
        words = chance.integers(0, OLD, BATCH)
        batch = np.stack([recording(word) for word in words]).astype(np.float32) / 128
        loss = net.step(batch, words)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.3f}")
    net.save(HERE / "words.onnx")
    counts = [(REHEARSED, range(OLD)), (LEARNED, range(OLD, WORDS)), (TRIED, range(WORDS))]
    made = [recording(word) for count, words in counts for word in words for _ in range(count)]
    (HERE / "recordings.bin").write_bytes(np.stack(made).tobytes())


if __name__ == "__main__":
    main()
