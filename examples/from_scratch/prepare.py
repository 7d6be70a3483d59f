"""Writes a network with random weights and the pictures it learns from: `python prepare.py FOLDER`.

net.onnx      `image` float32 [batch, 1, 8, 8] in 0..1  ->  `scores` float32 [batch, 10]
pictures.bin  pictures of ../digits as the C program reads them: 200 labels, then 200 times 64 pixels in 0..16
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

HERE = Path(__file__).resolve().parent
NETWORK = """<ir_version: 8, opset_import: ["" : 17]> net (float[batch, 1, 8, 8] image) => (float[batch, 10] scores) {
    a = Conv <pads = [1, 1, 1, 1]> (image, w1, b1)  b = Relu(a)
    c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)  d = Conv <pads = [1, 1, 1, 1]> (c, w2, b2)
    e = Relu(d)  f = Flatten(e)  scores = Gemm <transB = 1> (f, w3, b3) }"""
WEIGHTS = {"w1": (8, 1, 3, 3), "b1": (8,), "w2": (16, 8, 3, 3), "b2": (16,), "w3": (10, 256), "b3": (10,)}


def network() -> onnx.ModelProto:
    """Weights are drawn as He and others do, biases are 0."""
    model, chance = parser.parse_model(NETWORK), np.random.default_rng(1)
    for name, shape in WEIGHTS.items():
        spread = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.0
        weight = (spread * chance.standard_normal(shape)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    return model


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(network(), folder / "net.onnx")
    held = np.load(HERE.parent / "digits" / "pictures.npz")
    (folder / "pictures.bin").write_bytes(held["labels"].tobytes() + held["pixels"].tobytes())


if __name__ == "__main__":
    main()
