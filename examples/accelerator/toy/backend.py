"""A chip that multiplies by matrices, behind a serial line (SPI)."""

from pathlib import Path

import numpy as np

from mccompile.accelerators.api import Accelerator, Built, No, Region, Unit

MOST = 512  # elements that a layer of the chip may read and make


class Toy(Accelerator):
    def takes(self, unit: Unit) -> No | None:
        node = unit.nodes[0]
        if len(unit.nodes) > 1 or node.op.name not in ("Gemm", "Relu"):
            return No("the chip knows Gemm and Relu, in floats")
        x, y = node.inputs[0].type, node.output.type
        if str(x.dtype) != "f32" or max(x.count, y.count) > MOST:
            return No(f"a layer has at most {MOST} elements of f32")
        if node.op.name == "Relu":
            return None
        if (node.op.alpha, node.op.beta, node.op.transA) != (1, 1, 0) or x.shape[0] != 1:
            return No("the chip computes one row, x W + b")
        if len(node.inputs) < 3 or any(value.constant is None for value in node.inputs[1:]):
            return No("the chip reads W and b from flash")
        return None

    def build(self, region: Region) -> No | Built:
        if len(region.inputs) != 1 or len(region.results) != 1:
            return No("the chip has one input and one output")
        layers, numbers = [], []
        for node in region.nodes:
            rows = node.inputs[0].type.count if node.op.name == "Gemm" else 0
            layers += [rows, node.output.type.count]
            if rows:
                weights, bias = (value.constant.array for value in node.inputs[1:])
                numbers += [weights.T if node.op.transB else weights, np.broadcast_to(bias, (1, layers[-1]))]
        program = np.array([len(layers), *layers], np.int32)
        weights = np.concatenate([part.ravel() for part in numbers] or [np.zeros(1)]).astype(np.float32)
        sent = 4 * (region.inputs[0].type.count + region.results[0].type.count)
        code = Path(__file__).with_name("toy.h").read_text().replace("TOY_RUN", region.name)
        return Built(code, cycles=8 * sent, constants=[program, weights], align=4)
