"""Caches that a run makes longer, and tensors of other sizes in each run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper, parser

from mccompile.cli import run

CHANCE = np.random.default_rng(3)
CACHE = """(float[1,1,4] x, float[1,p,4] past) => (float[1,1,4] y, float[1,t,4] present) {
  q = MatMul(x, w0) k = MatMul(x, w1) present = Concat<axis=1>(past, k) kt = Transpose<perm=[0,2,1]>(present)
  s = MatMul(q, kt) a = Softmax(s) o = MatMul(a, present) y = MatMul(o, w2)
}"""


def model(text: str) -> ModelProto:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    weights = [CHANCE.standard_normal((4, 4)).astype(np.float32) for _ in range(3)]
    made.graph.initializer.extend(numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(weights))
    return made


def quantized(made: ModelProto, samples: dict[str, np.ndarray], folder: Path, *options: str) -> Path:
    onnx.save(made, folder / "m.onnx")
    np.savez(folder / "samples.npz", **samples)
    names = [str(folder / name) for name in ("m.onnx", "samples.npz", "q.onnx")]
    assert run(["quantize", names[0], "--data", names[1], "-o", names[2], *options]) == 0
    return folder / "q.onnx"


def test_a_cache_is_a_state_after_quantization_too(tmp_path: Path) -> None:
    samples = {name: CHANCE.standard_normal((8, 1, n, 4)).astype(np.float32) for name, n in (("x", 1), ("past", 5))}
    made = quantized(model(CACHE), samples, tmp_path, "--dim", "p=0..6")
    assert [entry.name for entry in onnx.load(made).graph.output] == ["y", "present"]
    onnx.checker.check_model(str(made), full_check=True)
    assert run(["check", str(made), "--dim", "p=0..6", "--state", "present=past"]) == 0


def test_samples_whose_tensors_differ_in_size(tmp_path: Path) -> None:
    text = "(float[6,4] x, bool[6] c) => (float[n,4] y) { a = Compress<axis=0>(x, c) b = MatMul(a, w0) y = Relu(b) }"
    chosen = np.arange(10)[:, None] % 6 >= np.arange(6)
    samples = {"x": CHANCE.standard_normal((10, 6, 4)).astype(np.float32), "c": chosen}
    made = quantized(model(text), samples, tmp_path)
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(made).graph.node}
