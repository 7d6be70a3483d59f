"""Small quantized networks as exporters write them: DequantizeLinear, operator, QuantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper


def convolutions(height: int, layers: Sequence[tuple[int, int, int]]) -> onnx.ModelProto:
    """Between integers: (channels, size of the kernel, stride); of no channels each for itself. Then their mean."""
    chance, body, last, channels, arrays = np.random.default_rng(0), "", "x", 1, {}
    for n, (outs, size, stride) in enumerate(layers):
        group = 1 if outs else channels
        shape = (outs or channels, channels // group, size, size)
        arrays[f"w{n}"] = chance.integers(-127, 128, shape).astype(np.int8)
        pads = [size // 2] * 4
        body += f"""x{n} = DequantizeLinear({last}, s, z)
        f{n} = DequantizeLinear(w{n}, ws, wz)
        y{n} = Conv <group = {group}, strides = [{stride}, {stride}], pads = {pads}> (x{n}, f{n})
        q{n} = QuantizeLinear(y{n}, s, z)
        """
        last, channels = f"q{n}", outs or channels
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    convolutions (int8[1,1,{height},{height}] x) => (int8[1,{channels},1,1] y)
    <float s = {{0.05}}, int8 z = {{3}}, float ws = {{0.002}}, int8 wz = {{0}}> {{
        {body}
        last = DequantizeLinear({last}, s, z)
        mean = GlobalAveragePool(last)
        y = QuantizeLinear(mean, s, z)
    }}"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return made
