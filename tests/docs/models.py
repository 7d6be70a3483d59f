"""Small models for the pages: `python -m tests.docs.models vad net` writes vad.onnx and net.onnx."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper, parser

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
GRAPHS = {
    "net": "net (float[batch, time, 16] x) => (float[batch, time, 4] y) { h = MatMul(x, w16x4)  y = Relu(h) }",
    "detector": """detector (float[1, 1000] scores_in) => (int64[2, selected] places) {
        limit = Constant<value_float = 0.9>()  high = Greater(scores_in, limit)  places = NonZero(high) }""",
    "vad": """vad (float[1, 16] x, float[1, 4] state) => (float[1, 4] speech, float[1, 4] stateN) {
        p = MatMul(x, w16x4)  s = Add(p, state)  stateN = Tanh(s)  speech = Sigmoid(stateN) }""",
    "denoiser": """denoiser (float[1, 16] x, float[1, 4] h_in, float[1, 4] c_in)
        => (float[1, 4] y, float[1, 4] h_out, float[1, 4] c_out) {
        p = MatMul(x, w16x4)  c_out = Add(p, c_in)  g = Tanh(c_out)  h_out = Mul(g, h_in)  y = Add(h_out, g) }""",
    "decoder": """decoder (float[1, 1, 4] token, float[1, past, 4] keys)
        => (float[1, 1, 4] y, float[1, all, 4] new_keys) {
        k = MatMul(token, w4x4)  new_keys = Concat <axis = 1> (keys, k)  t = Transpose <perm = [0, 2, 1]> (new_keys)
        s = MatMul(token, t)  a = Softmax(s)  y = MatMul(a, new_keys) }""",
    "wake": """wake (float[1, 8, 20] x) => (float[1, 2] scores) {
        c = Conv(x, w8x8x3)  r = Relu(c)  d = Conv <dilations = [2]> (r, w8x8x3)  f = Flatten(d)
        g = MatMul(f, w112x2)  scores = Softmax(g) }""",
    "spotter": """spotter (float[1, 20, 40] x) => (float[1, 4] scores) {
        t = Transpose <perm = [0, 2, 1]> (x)  c = Conv(t, w16x40x3)  r = Relu(c)  d = Conv(r, w16x16x3)
        f = Flatten(d)  g = MatMul(f, w256x4)  scores = Softmax(g) }""",
    "hearer": """hearer (float[1, 3, 40] x, float[1, 6, 40] old) => (float[1, 2] scores, float[1, 6, 40] kept) {
        both = Concat <axis = 1> (old, x)  a = Constant <value_ints = [3]> ()  b = Constant <value_ints = [9]> ()
        c = Constant <value_ints = [1]> ()  kept = Slice(both, a, b, c)  f = Flatten(both)  g = MatMul(f, w360x2)
        scores = Softmax(g) }""",
    "words": """words (string[2] words) => (string[2] y) { y = Identity(words) }""",
}


def model(name: str, chance: np.random.Generator) -> onnx.ModelProto:
    made = parser.parse_model(_HEAD + GRAPHS[name])
    for weights in dict.fromkeys(re.findall(r"w\d+(?:x\d+)+", GRAPHS[name])):
        drawn = chance.standard_normal([int(size) for size in weights[1:].split("x")]).astype(np.float32) / 4
        made.graph.initializer.append(numpy_helper.from_array(drawn, weights))
    return made


def main(names: Sequence[str]) -> None:
    for name in names:
        onnx.save(model(name, np.random.default_rng(1)), f"{name}.onnx")


if __name__ == "__main__":
    main(sys.argv[1:])
