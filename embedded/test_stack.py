"""Kernels of products of bytes keep little on the stack, whose weights compilers would read in front of a loop; and no
model takes more than the bound that its evidence has, nor much less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from mccompile.driver import Options
from mccompile.evidence.stack import of_graph
from mccompile.targets import api as targets
from mccompile.toolchain.emulate import Emulated
from tests.small_models import branches, compiled, conv, floats, mlp, model, node, random_inputs
from tests.small_quantized import convolutions
from tests.stack import stack_bytes

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55", "rv32imc")
LAYERS = [(32, 3, 2), (0, 3, 1), (64, 1, 1), (0, 3, 1), (24, 1, 1), (0, 3, 1), (0, 3, 2)]


@pytest.mark.parametrize(("target", "most"), [("aarch64", 832), ("aarch64-i8mm", 512)])
def test_depthwise_kernels_keep_no_weights_on_the_stack(target: str, most: int, tmp_path: Path) -> None:
    package = compiled(convolutions(24, LAYERS), Options(target=target))
    found = stack_bytes(package, targets.load(target), tmp_path / "out")
    sizes = {name: size for name, size in found.items() if "depthwise" in name}
    assert len(sizes) == 4
    assert max(sizes.values()) <= most, sizes


def gated() -> ModelProto:
    """What needs much of the library: a GRU, and functions that few cores have."""
    weights = {"w": floats(0, 1, 12, 3), "r": floats(1, 1, 12, 4)}
    nodes = [node("GRU", "x w r", "h", hidden_size=4)]
    nodes += [node(op, to, of) for op, of, to in (("Erf", "e", "h"), ("Asinh", "a", "e"), ("Softmax", "y", "a"))]
    return model("gated", nodes, [("x", [5, 1, 3])], [("y", [5, 1, 1, 4])], weights)


def bytes_of_images() -> ModelProto:
    return convolutions(8, LAYERS[:5])


def inputs_of(made: ModelProto) -> dict[str, np.ndarray]:
    if made.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.INT8:
        return {"x": np.random.default_rng(0).integers(-128, 128, (1, 1, 8, 8), np.int8)}
    return random_inputs(made)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("made", [branches, bytes_of_images, conv, gated, mlp])
def test_no_run_takes_more_than_its_bound(core: str, made: Callable[[], ModelProto], tmp_path: Path) -> None:
    package, target = compiled(made(), Options(target=core)), targets.load(core)
    package.write(tmp_path / "out")
    program = Emulated.build(tmp_path / "out", target)
    names = [f"{package.plan.prefix}_{name}" for name in ("init", "run")]
    bounds, count = of_graph(program.call_graph, names)["bounds"], program.count(inputs_of(made()))
    for name, used in zip(names, (count.init_stack, count.run_stack), strict=True):
        assert used is not None and bounds[name]["without"] == []
        assert used <= bounds[name]["bytes"] <= 1.15 * used + 64, name
