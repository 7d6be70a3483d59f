"""Trains a network whose weights are -1, 0 and 1, with a factor per channel, on scikit-learn's digits:

    digits.onnx     `image` float32 [1, 64] in 0..1 -> `scores` float32 [1, 10]
    samples.npz     pictures of the training set, to quantize with
    held_out.npz    200 pictures that training never saw, with labels

    pip install numpy onnx scikit-learn
    python examples/ternary/train.py      # half a minute

Weights are kept as floats while training. Each step rounds them, and the slopes of the rounded ones change the floats.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 7
HELD_OUT = 200
SIZES = (64, 96, 48, 10)
EPOCHS = 200
BATCH = 32
RATE = 3e-3
BRIGHTEST = 16


def ternary(weights: np.ndarray) -> np.ndarray:
    """What is stored: weights above half of a column's mean are its factor, with their sign, others are 0."""
    is_large = np.abs(weights) > 0.5 * np.abs(weights).mean(0)
    factor = (np.abs(weights) * is_large).sum(0) / np.maximum(is_large.sum(0), 1)
    return np.sign(weights) * is_large * factor


def forward(weights: list[np.ndarray], biases: list[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    """The input of each layer, and the scores."""
    found = [x]
    for at, (w, b) in enumerate(zip(weights, biases, strict=True)):
        y = found[-1] @ w + b
        found.append(y if at == len(weights) - 1 else np.maximum(y, 0))
    return found


def train(x: np.ndarray, labels: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Adam on the cross-entropy."""
    random = np.random.default_rng(SEED)
    layers = list(pairwise(SIZES))
    numbers = [random.normal(0, np.sqrt(2 / rows), (rows, columns)) for rows, columns in layers]
    numbers += [np.zeros(columns) for _, columns in layers]
    mean, square = ([np.zeros_like(array) for array in numbers] for _ in range(2))
    count, steps = len(layers), EPOCHS * (len(x) // BATCH)
    for step in range(steps):
        chosen = random.integers(0, len(x), BATCH)
        rounded = [ternary(weights) for weights in numbers[:count]]
        inputs = forward(rounded, numbers[count:], x[chosen])
        shares = np.exp(inputs[-1] - inputs[-1].max(1, keepdims=True))
        back = (shares / shares.sum(1, keepdims=True) - np.eye(10)[labels[chosen]]) / BATCH
        slopes = [np.zeros(0)] * len(numbers)
        for at in reversed(range(count)):
            slopes[at], slopes[count + at] = inputs[at].T @ back, back.sum(0)
            back = (back @ rounded[at].T) * (inputs[at] > 0)
        for at, slope in enumerate(slopes):
            mean[at] = 0.9 * mean[at] + 0.1 * slope
            square[at] = 0.999 * square[at] + 0.001 * slope**2
            size = np.sqrt(square[at] / (1 - 0.999 ** (step + 1))) + 1e-8
            numbers[at] -= RATE * (1 - step / steps) * mean[at] / (1 - 0.9 ** (step + 1)) / size
    return [ternary(weights) for weights in numbers[:count]], numbers[count:]


def as_onnx(weights: list[np.ndarray], biases: list[np.ndarray]) -> onnx.ModelProto:
    nodes, constants, last = [], [], "image"
    for at, (w, b) in enumerate(zip(weights, biases, strict=True)):
        ends = at == len(weights) - 1
        constants += [numpy_helper.from_array(v.astype(np.float32), f"{n}{at}") for n, v in (("w", w), ("b", b))]
        nodes.append(helper.make_node("Gemm", [last, f"w{at}", f"b{at}"], ["scores" if ends else f"sums{at}"]))
        if not ends:
            nodes.append(helper.make_node("Relu", [f"sums{at}"], [f"layer{at}"]))
        last = f"layer{at}"
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, SIZES[0]])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, SIZES[-1]])
    graph = helper.make_graph(nodes, "digits", [image], [scores], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    pixels, labels = load_digits(return_X_y=True)
    known, held_out, known_labels, held_out_labels = train_test_split(
        pixels / BRIGHTEST, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels
    )
    weights, biases = train(known, known_labels)
    right = forward(weights, biases, held_out)[-1].argmax(1) == held_out_labels
    print(f"{right.mean():.1%} of {HELD_OUT} held-out pictures right")
    onnx.save(as_onnx(weights, biases), HERE / "digits.onnx")
    samples = known[:: len(known) // 64, np.newaxis].astype(np.float32)
    np.savez_compressed(HERE / "samples.npz", image=samples)
    pictures = held_out[:, np.newaxis].astype(np.float32)
    np.savez_compressed(HERE / "held_out.npz", image=pictures, labels=held_out_labels.astype(np.uint8))


if __name__ == "__main__":
    main()
