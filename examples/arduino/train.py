"""Trains a network of two layers on scikit-learn's digits, small enough for 8 KB of RAM:

digits.onnx     `image` float32 [1, 64] in 0..1 -> `scores` float32 [1, 10]
samples.npz     pictures of the training set, to quantize with
pictures.h      20 pictures that training never saw, for the sketch

pip install numpy onnx scikit-learn
python examples/arduino/train.py      # seconds
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 7
HELD_OUT = 200
HIDDEN = 32
EPOCHS = 120
BATCH = 32
RATE = 3e-3
DECAY = 0.03
BRIGHTEST = 16
PICTURES = 20


def forward(network: list[np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, first_bias, second, second_bias = network
    hidden = np.maximum(x @ first + first_bias, 0)
    return hidden, hidden @ second + second_bias


def train(x: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Adam on the cross-entropy; weights decay."""
    random = np.random.default_rng(SEED)
    shapes = [(64, HIDDEN), (1, HIDDEN), (HIDDEN, 10), (1, 10)]
    network = [random.normal(0, np.sqrt(2 / rows), (rows, columns)) * (rows > 1) for rows, columns in shapes]
    mean, square = ([np.zeros(shape) for shape in shapes] for _ in range(2))
    steps = EPOCHS * (len(x) // BATCH)
    for step in range(steps):
        chosen = random.integers(0, len(x), BATCH)
        batch = x[chosen]
        hidden, scores = forward(network, batch)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        wrong = shares / shares.sum(1, keepdims=True) - np.eye(10)[labels[chosen]]
        back = (wrong @ network[2].T) * (hidden > 0)
        slopes = [batch.T @ back, back.sum(0, keepdims=True), hidden.T @ wrong, wrong.sum(0, keepdims=True)]
        rate = RATE * (1 - step / steps)
        for at, slope in enumerate(slope / BATCH for slope in slopes):
            mean[at] = 0.9 * mean[at] + 0.1 * slope
            square[at] = 0.999 * square[at] + 0.001 * slope**2
            size = np.sqrt(square[at] / (1 - 0.999 ** (step + 1))) + 1e-8
            network[at] -= rate * (mean[at] / (1 - 0.9 ** (step + 1)) / size + DECAY * network[at])
    return network


def as_onnx(network: list[np.ndarray]) -> onnx.ModelProto:
    names = ["first/weight", "first/bias", "second/weight", "second/bias"]
    values = [array if "weight" in name else array[0] for array, name in zip(network, names, strict=True)]
    constants = [numpy_helper.from_array(v.astype(np.float32), name) for v, name in zip(values, names, strict=True)]
    nodes = [
        helper.make_node("Gemm", ["image", *names[:2]], ["first"]),
        helper.make_node("Relu", ["first"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", *names[2:]], ["scores"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 64])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "digits", [image], [scores], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    pixels, labels = load_digits(return_X_y=True)
    known, held_out, known_labels, held_out_labels = train_test_split(
        pixels, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels
    )
    network = train(known / BRIGHTEST, known_labels)
    scores = forward(network, held_out / BRIGHTEST)[1]
    print(f"{(scores.argmax(1) == held_out_labels).mean():.1%} of {HELD_OUT} held-out pictures right")
    onnx.save(as_onnx(network), HERE / "digits.onnx")
    samples = known[:: len(known) // 64, np.newaxis].astype(np.float32) / BRIGHTEST
    np.savez_compressed(HERE / "samples.npz", image=samples)
    rows = [f"  {{{', '.join(str(int(pixel)) for pixel in picture)}}}," for picture in held_out[:PICTURES]]
    answers = ", ".join(str(label) for label in held_out_labels[:PICTURES])
    lines = [
        "// Made by train.py: pictures that training never saw, 8x8 pixels in 0..16.",
        f"#define PICTURES {PICTURES}",
        "const uint8_t pictures[PICTURES][64] PROGMEM = {",
        *rows,
        "};",
        f"const uint8_t labels[PICTURES] PROGMEM = {{{answers}}};",
    ]
    (HERE / "pictures.h").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
