"""Float networks in the shapes of those that are measured most on small machines (MLPerf Tiny's ResNet-8 and separable
keyword network, MobileNetV2 at 0.35 for 128 x 128), with weights at random: what instructions cost depends on shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks.small_transformers import IN_FEW_BITS, TRANSFORMERS


class _Net:
    """Operators one after the other; `channels` and `last` are what the one before has made."""

    def __init__(self, channels: int) -> None:
        self.chance = np.random.default_rng(8)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.channels, self.last = channels, "x"

    def node(self, op: str, *more: str, **attributes: Any) -> str:
        self.last = f"{op.lower()}{len(self.nodes)}"
        before = self.nodes[-1].output[0] if self.nodes else "x"
        ins = list(more) if op in ("Add", "Conv") else [before, *more]
        self.nodes.append(helper.make_node(op, ins, [self.last], name=self.last, **attributes))
        return self.last

    def constant(self, array: np.ndarray) -> str:
        name = f"constant{len(self.weights)}"
        self.weights[name] = array.astype(np.float32)
        return name

    def random(self, *shape: int) -> str:
        """Weights that keep the size of what they are multiplied with."""
        return self.constant(self.chance.standard_normal(shape) * np.sqrt(2 / prod(shape[1:])))

    def conv(
        self, channels: int, window: Sequence[int], stride: int, pads: Sequence[int], group: int = 1, of: str = ""
    ) -> str:
        x, c_in = of or self.last, self.channels
        self.channels = channels
        w, b = self.random(channels, c_in // group, *window), self.constant(self.chance.standard_normal(channels) / 10)
        return self.node("Conv", x, w, b, strides=[stride, stride], pads=pads, group=group)

    def same(self, channels: int, stride: int = 1, group: int = 1) -> str:
        """3x3 over an image of even size, which keeps its size or halves it."""
        return self.conv(channels, (3, 3), stride, (1, 1, 1, 1) if stride == 1 else (0, 0, 1, 1), group)

    def pointwise(self, channels: int, stride: int = 1, of: str = "") -> str:
        return self.conv(channels, (1, 1), stride, (0, 0, 0, 0), of=of)

    def clip(self) -> str:
        return self.node("Clip", self.constant(np.array(0)), self.constant(np.array(6)))

    def classified(self, classes: int) -> None:
        self.node("GlobalAveragePool")
        self.node("Flatten")
        self.node("Gemm", self.random(self.channels, classes), self.constant(np.zeros(classes)))
        self.node("Softmax", axis=1)

    def model(self, name: str, shape: Sequence[int]) -> ModelProto:
        out = [1, self.weights[self.nodes[-2].input[2]].size]
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, out)],
            [numpy_helper.from_array(array, key) for key, array in self.weights.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(made)
        return made


def resnet8() -> ModelProto:
    net = _Net(3)
    net.node("Transpose", perm=[0, 3, 1, 2])
    net.same(16)
    before = net.node("Relu")
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        c_in = net.channels
        net.same(channels, stride)
        net.node("Relu")
        after = net.same(channels)
        if stride != 1:
            net.channels = c_in
            before = net.pointwise(channels, stride, before)
        net.node("Add", before, after)
        before = net.node("Relu")
    net.classified(10)
    return net.model("resnet8", (1, 32, 32, 3))


def dscnn() -> ModelProto:
    net = _Net(1)
    net.conv(64, (10, 4), 2, (4, 1, 5, 1))
    net.node("Relu")
    for _ in range(4):
        net.same(64, group=64)
        net.node("Relu")
        net.pointwise(64)
        net.node("Relu")
    net.classified(12)
    return net.model("dscnn", (1, 1, 49, 10))


def mobilenet_v2_035() -> ModelProto:
    net = _Net(3)
    net.same(16, 2)
    net.clip()
    blocks = ((1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1), (6, 56, 3, 2), (6, 112, 1, 1))
    for expansion, channels, count, stride in blocks:
        for number in range(count):
            c_in, before = net.channels, net.last
            if expansion != 1:
                net.pointwise(c_in * expansion)
                net.clip()
            net.same(c_in * expansion, 1 if number else stride, c_in * expansion)
            net.clip()
            after = net.pointwise(channels)
            if number:
                net.node("Add", before, after)
    net.pointwise(1280)
    net.clip()
    net.classified(5)
    return net.model("mobilenet_v2_035", (1, 3, 128, 128))


def halved(wide: ModelProto) -> ModelProto:
    """A float network in 16-bit floats. From opset 19 on they may be the scales of weights in bytes."""
    made = ModelProto()
    made.CopyFrom(wide)
    del made.graph.value_info[:]
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for opset in made.opset_import:
        if opset.domain == "":
            opset.version = max(opset.version, 19)
    made.ir_version = max(made.ir_version, 9)
    onnx.checker.check_model(made, full_check=True)
    return made


NETWORKS: Mapping[str, Callable[[], ModelProto]] = {f.__name__: f for f in (resnet8, dscnn, mobilenet_v2_035)}


def path_of(name: str, folder: Path) -> Path:
    path = folder / f"{name}.onnx"
    onnx.save({**NETWORKS, **IN_FEW_BITS, **TRANSFORMERS}[name](), path)
    return path


def half_of(path: Path, folder: Path) -> Path:
    half = folder / f"{path.stem}_half.onnx"
    onnx.save(halved(onnx.load(path)), half)
    return half
