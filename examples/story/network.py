"""The network of train.py as ONNX: for one token, with keys and values of the past as inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, BLOCK = 3, 64, 4, 32
CONTRIB = "com.microsoft"


def quantized(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels 0..15, of which 8 is zero, and a scale for each block of columns, which 16 bits hold."""
    blocks = weights.reshape(len(weights), -1, BLOCK)
    scales = (np.maximum(np.abs(blocks).max(-1), 1e-3) / 7).astype(np.float16).astype(np.float32)
    levels = np.clip(np.round(blocks / scales[..., None]), -8, 7) + 8
    return levels.reshape(weights.shape).astype(np.uint8), scales


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def op(
        self, name: str, *inputs: str, made: str = "", outputs: int = 1, domain: str = "", **attributes: object
    ) -> str:
        made = made or f"{name}_{len(self.nodes)}"
        names = [made, *(f"{made}_{n}" for n in range(1, outputs))]
        self.nodes.append(helper.make_node(name, inputs, names, made, domain=domain, **attributes))
        return made

    def packed(self, name: str, weights: np.ndarray) -> tuple[str, str]:
        levels, scales = quantized(weights)
        pairs = levels[:, 0::2] | levels[:, 1::2] << 4
        return self.constant(f"{name}.levels", pairs), self.constant(f"{name}.scales", scales)

    def product(self, x: str, name: str, weights: np.ndarray, made: str = "") -> str:
        levels, scales = quantized(weights)
        rows, columns = weights.shape
        pairs = (levels[:, 0::2] | levels[:, 1::2] << 4).reshape(rows, columns // BLOCK, BLOCK // 2)
        operands = self.constant(f"{name}.levels", pairs), self.constant(f"{name}.scales", scales.reshape(-1))
        sizes = {"K": columns, "N": rows, "bits": 4, "block_size": BLOCK}
        return self.op("MatMulNBits", x, *operands, made=made, domain=CONTRIB, **sizes)


def onnx_model(w: dict[str, np.ndarray], file: Path) -> None:
    g = _Writer()
    deep = WIDTH // HEADS
    ones = g.constant("ones", np.ones(WIDTH, np.float32))
    cut, whole = g.constant("cut", np.array([1, 1, HEADS, deep])), g.constant("whole", np.array([1, 1, WIDTH]))
    zero, one = g.constant("zero", np.array(0)), g.constant("one", np.array(1))
    scale = g.constant("scale", np.array(deep**-0.5, np.float32))
    tilt = g.constant("tilt", (2.0 ** -np.arange(1, 2 * HEADS, 2, dtype=np.float32)).reshape(1, HEADS, 1, 1))

    # Scores fall with the distance: from the length of the past follow the distances of its tokens.
    length = g.op("Gather", g.op("Shape", "past_key_values.0.key"), g.constant("two", np.array(2)), axis=0)
    places = g.op("Range", zero, g.op("Add", length, one), one)
    distances = g.op("Cast", g.op("Sub", places, length), to=TensorProto.FLOAT)
    bias = g.op("Mul", tilt, distances)

    table = g.packed("pieces", w["pieces"])
    x = g.op("GatherBlockQuantized", table[0], "token", table[1], domain=CONTRIB, block_size=BLOCK, bits=4)
    for n in range(LAYERS):
        a = g.op("LayerNormalization", x, ones, epsilon=1e-5)
        parts = g.op("Split", g.product(a, f"{n}.qkv", w[f"{n}.qkv"]), outputs=3, axis=2, num_outputs=3)
        sides = [parts, f"{parts}_1", f"{parts}_2"]
        q, k, v = (g.op("Transpose", g.op("Reshape", side, cut), perm=[0, 2, 1, 3]) for side in sides)
        k = g.op("Concat", f"past_key_values.{n}.key", k, made=f"present.{n}.key", axis=2)
        v = g.op("Concat", f"past_key_values.{n}.value", v, made=f"present.{n}.value", axis=2)
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), scale)
        mixed = g.op("MatMul", g.op("Softmax", g.op("Add", scores, bias), axis=-1), v)
        mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), whole)
        x = g.op("Add", x, g.product(mixed, f"{n}.out", w[f"{n}.out"]))
        b = g.op("LayerNormalization", x, ones, epsilon=1e-5)
        h = g.op("Relu", g.product(b, f"{n}.up", w[f"{n}.up"]))
        x = g.op("Add", x, g.product(h, f"{n}.down", w[f"{n}.down"]))
    f = g.op("LayerNormalization", x, ones, epsilon=1e-5)
    g.product(f, "head", w["pieces"], made="logits")

    def floats(name: str, length: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, HEADS, length, deep])

    names = [f"{n}.{side}" for n in range(LAYERS) for side in ("key", "value")]
    inputs = [helper.make_tensor_value_info("token", TensorProto.INT64, [1, 1])]
    inputs += [floats(f"past_key_values.{name}", "past") for name in names]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, len(w["pieces"])])]
    outputs += [floats(f"present.{name}", "past + 1") for name in names]
    graph = helper.make_graph(g.nodes, "story", inputs, outputs, g.constants)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, file)
