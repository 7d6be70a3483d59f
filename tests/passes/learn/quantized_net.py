"""A small network in int8 that can learn."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

# Integers saturate at 0 in place of a Relu; the pooled ones are reshaped as integers.
MODEL = """<ir_version: 8, opset_import: ["" : 17]> net (int8[1, 3, 12, 12] q) => (int8[1, 4] p) {
    x = DequantizeLinear(q, s, z)       k = DequantizeLinear(kq, ks, z)     b = DequantizeLinear(bq, bs)
    c = Conv <pads = [1, 1, 1, 1]> (x, k, b)  cq = QuantizeLinear(c, s, low)  d = DequantizeLinear(cq, s, low)
    l = DequantizeLinear(lq, ks, z)     e = Conv <strides = [2, 2]> (d, l)
    eq = QuantizeLinear(e, s, low)      f = DequantizeLinear(eq, s, low)    g = GlobalAveragePool(f)
    gq = QuantizeLinear(g, s, low)      hq = Reshape(gq, flat)              h = DequantizeLinear(hq, s, low)
    w = DequantizeLinear(wq, ks, z)     y = MatMul(h, w)                    v = DequantizeLinear(vq, bs)
    t = Add(y, v)                       tq = QuantizeLinear(t, s, z)        u = DequantizeLinear(tq, s, z)
    o = Softmax <axis = 1> (u)          p = QuantizeLinear(o, ps, low) }"""


def quantized_net() -> onnx.ModelProto:
    model, chance = onnx.parser.parse_model(MODEL), np.random.default_rng(3)
    scalars = {"s": np.float32(0.05), "ks": np.float32(0.01), "bs": np.float32(0.0005), "ps": np.float32(1 / 256)}
    arrays = {name: np.asarray(value) for name, value in scalars.items()}
    arrays |= {"z": np.array(0, np.int8), "low": np.array(-128, np.int8), "flat": np.array([1, 8], np.int64)}
    for name, shape in {"kq": (6, 3, 3, 3), "lq": (8, 6, 3, 3), "wq": (8, 4)}.items():
        arrays[name] = chance.integers(-60, 61, shape).astype(np.int8)
    arrays |= {"bq": chance.integers(-900, 900, 6).astype(np.int32), "vq": chance.integers(-99, 99, 4).astype(np.int32)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model
