"""Makes kws.onnx, a small network that tells four sounds apart, and words.h, one of each to try it on a board.

    python examples/bare_metal/train.py

The sounds are made up: in a spectrogram of 48 times and 16 frequencies something rises, falls, stays, or wavers, in
noise. The network is of the kind that spots keywords: a convolution, two separable ones, a mean, a dense layer. The
convolutions are drawn by chance and only the dense layer is fitted, by least squares, which is enough for these.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from onnx.reference import ReferenceEvaluator

HERE = Path(__file__).parent
WORDS = ("rising", "falling", "level", "wavering")
TIMES, BANDS, WIDTH = 48, 16, 16


def sounds(word: int, count: int, chance: np.random.Generator) -> np.ndarray:
    """Spectrograms as bytes."""
    time = np.linspace(0, 1, TIMES)[None, :]
    start, size = chance.uniform(0.1, 0.3, (count, 1)), chance.uniform(0.4, 0.6, (count, 1))
    path = {
        0: start + size * time,
        1: start + size * (1 - time),
        2: start + size * 0.5 + 0 * time,
        3: start + size * (0.5 + 0.5 * np.sin(time * 18)),
    }[word]
    bands = np.arange(BANDS)[None, None, :] / (BANDS - 1)
    loudness = np.exp(-(((bands - path[:, :, None]) / 0.07) ** 2)) + chance.uniform(0, 0.35, (count, TIMES, BANDS))
    return np.clip(loudness * 190, 0, 255).astype(np.uint8)[:, None]


def network(dense: np.ndarray, bias: np.ndarray, chance: np.random.Generator) -> object:
    def drawn(*shape: int) -> np.ndarray:
        return (chance.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32) * 1.5

    weights = {"w0": drawn(WIDTH, 1, 5, 5), "w_out": dense, "b_out": bias}
    nodes = [helper.make_node("Conv", ["sound", "w0"], ["c0"], pads=[2, 2, 2, 2], strides=[2, 2])]
    nodes.append(helper.make_node("Relu", ["c0"], ["r0"]))
    for n in (1, 2):
        weights |= {f"d{n}": drawn(WIDTH, 1, 3, 3), f"p{n}": drawn(WIDTH, WIDTH, 1, 1)}
        nodes += [
            helper.make_node("Conv", [f"r{n - 1}", f"d{n}"], [f"e{n}"], group=WIDTH, pads=[1, 1, 1, 1]),
            helper.make_node("Conv", [f"e{n}", f"p{n}"], [f"f{n}"]),
            helper.make_node("Relu", [f"f{n}"], [f"r{n}"]),
        ]
    nodes += [
        helper.make_node("AveragePool", ["r2"], ["m"], kernel_shape=[6, 4], strides=[6, 4]),
        helper.make_node("Flatten", ["m"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w_out", "b_out"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "kws",
        [helper.make_tensor_value_info("sound", TensorProto.FLOAT, (1, 1, TIMES, BANDS))],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, len(WORDS)))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    features = (TIMES // 2 // 6) * (BANDS // 2 // 4) * WIDTH
    made = network(np.zeros((features, 4), np.float32), np.zeros(4, np.float32), np.random.default_rng(1))
    made.graph.output.append(helper.make_tensor_value_info("flat", TensorProto.FLOAT, (1, features)))
    evaluator = ReferenceEvaluator(made)

    def seen(pictures: np.ndarray) -> np.ndarray:
        rows = [evaluator.run(["flat"], {"sound": picture[None].astype(np.float32) / 255})[0] for picture in pictures]
        return np.concatenate(rows)

    chance = np.random.default_rng(2)
    known = [sounds(word, 60, chance) for word in range(4)]
    rows, wanted = seen(np.concatenate(known)), np.repeat(np.eye(4), 60, axis=0)
    full = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    found = np.linalg.solve(full.T @ full + 1e-3 * np.eye(features + 1), full.T @ wanted).astype(np.float32)
    fresh = [sounds(word, 25, chance) for word in range(4)]
    right = [np.argmax(seen(p) @ found[:-1] + found[-1], axis=1) == word for word, p in enumerate(fresh)]
    print(f"{np.mean(right):.1%} of sounds never seen before are told right")
    save(network(found[:-1], found[-1], np.random.default_rng(1)), HERE / "kws.onnx")
    lines = ["/* words.h: one sound of each kind, never seen in training; written by train.py. */"]
    lines += [f"#define SOUND_BYTES {TIMES * BANDS}", f"static const char *const word_names[{len(WORDS)}] = {{"]
    lines += [f'    "{word}",' for word in WORDS] + ["};"]
    lines += [f"static const uint8_t words[{len(WORDS)}][SOUND_BYTES] = {{"]
    for pictures in fresh:
        flat = pictures[0].reshape(-1, 24)
        lines += ["    {", *("        " + ", ".join(map(str, row)) + "," for row in flat), "    },"]
    (HERE / "words.h").write_text("\n".join([*lines, "};"]) + "\n")


if __name__ == "__main__":
    main()
