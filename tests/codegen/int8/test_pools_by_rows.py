"""Pools of bytes between convolutions keep their kernel where a chain runs row by row, in line buffers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests.small_models import model, node


def network(pool: str) -> ModelProto:
    chance = np.random.default_rng(0)
    weights = {"s": np.array(0.05, np.float32), "t": np.array(0.002, np.float32)}
    weights |= {"z": np.array(-3, np.int8), "n": np.array(0, np.int8)}
    shapes = {"a": (16, 1, 3, 3), "c": (2, 16, 3, 3)}
    weights |= {w: chance.integers(-90, 90, shape).astype(np.int8) for w, shape in shapes.items()}
    nodes = [node("QuantizeLinear", "x s z", "i"), node("DequantizeLinear", "i s z", "i_")]
    for before, w, after in (("i", "a", "p"), ("p", "", "q"), ("q", "c", "r")):
        if w:
            nodes.append(node("DequantizeLinear", f"{w} t n", f"{w}_"))
            nodes.append(node("Conv", f"{before}_ {w}_", f"{after}f", pads=[1, 1, 1, 1]))
        else:
            nodes.append(node(pool, f"{before}_", f"{after}f", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))
        nodes.append(node("QuantizeLinear", f"{after}f s z", after))
        nodes.append(node("DequantizeLinear", f"{after} s z", f"{after}_" if after != "r" else "y"))
    return model("pooled", nodes, [("x", (1, 1, 40, 36))], [("y", (1, 2, 20, 18))], weights)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_pools_in_line_buffers_read_four_channels_at_once(pool: str, target: str) -> None:
    plan = compile_graph(load_proto(network(pool), Path()), Options(target=target, prefer="balanced"), "pooled").plan
    pools = [step.function for step in plan.steps() if step.function.call.kind.name == "pool"]
    assert [function.kernel.id for function in pools] == ["pool/i8_nhwc_windows__dsp"]
    assert pools[0].call.rows is not None and pools[0].call.ins[0].lines
