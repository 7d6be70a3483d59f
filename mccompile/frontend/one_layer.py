"""A network of one convolution or product, for who wants the function alone: `mccompile kernel`.

Integers are int8 between scales, channels of pictures come last in what programs hand over and in weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ..base.errors import Problem, WrongUse
from ..base.records import dataclass

KINDS = ("conv", "gemm")
_OPSET = 17
_SEED = 1


@dataclass(frozen=True)
class Layer:
    """What is asked for. Shapes: x [batch, rows, columns, channels] and w [channels, rows, columns, channels of x], or
    x [rows, channels] and w [channels, channels of x]."""

    kind: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    int8: bool = False
    strides: tuple[int, int] = (1, 1)
    pad: int | None = None  # around pictures; None: as many as keep their size
    relu: bool = False

    def check(self) -> None:
        """Raises WrongUse."""
        rank = 4 if self.kind == "conv" else 2
        fix = f"--x {','.join(['1', '16', '16', '8'] if rank == 4 else ['1', '64'])}"
        for what, shape in (("--x", self.x), ("--w", self.w)):
            if len(shape) != rank or min(shape) < 1:
                why = f"it has {rank} sizes"
                raise WrongUse(Problem(f"{what} is not a shape of {self.kind}", str(shape), why, fix))
        groups = self.x[-1] // self.w[-1] if self.x[-1] % self.w[-1] == 0 else 0
        if (self.kind == "gemm" and groups != 1) or groups == 0 or self.w[0] % max(groups, 1):
            why = f"weights read {self.w[-1]} channels, x has {self.x[-1]}"
            fix = f"let the last size of w be {self.x[-1]}"
            raise WrongUse(Problem("x and w do not fit", f"--x {self.x} --w {self.w}", why, fix))
        if min(self.result) < 1:
            why, fix = "the window is larger", f"--pad {max(self.w[1:3])}"
            raise WrongUse(Problem("nothing comes out", f"--x {self.x} --w {self.w}", why, fix))

    @property
    def pads(self) -> tuple[int, int]:
        if self.kind == "gemm":
            return 0, 0
        return (self.w[1] // 2, self.w[2] // 2) if self.pad is None else (self.pad, self.pad)

    @property
    def result(self) -> tuple[int, ...]:
        if self.kind == "gemm":
            return self.x[0], self.w[0]
        space = [
            (size + 2 * pad - taps) // step + 1
            for size, pad, taps, step in zip(self.x[1:3], self.pads, self.w[1:3], self.strides, strict=True)
        ]
        return (self.x[0], *space, self.w[0])


def numbers(layer: Layer, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights and scales: those given, others of a seed."""
    chance, count = np.random.default_rng(_SEED), int(np.prod(layer.w[1:]))
    found: dict[str, Any]
    if not layer.int8:
        found = {"w": chance.normal(0, count**-0.5, layer.w).astype(np.float32), "b": np.zeros(layer.w[0], np.float32)}
    else:
        found = {
            "w": chance.integers(-127, 128, layer.w).astype(np.int8),
            "b": np.zeros(layer.w[0], np.int32),
            "x_scale": np.float32(1 / 32),
            "x_zero": np.int8(0),
            "w_scale": np.full(layer.w[0], 1 / 128, np.float32),
            "y_scale": np.float32(count**0.5 / 32),
            "y_zero": np.int8(0),
        }
    for name, array in given.items():
        if name not in found:
            why = f"there are {', '.join(found)}"
            raise WrongUse(Problem(f"nothing is called {name!r}", "--weights", why, "leave it out"))
        wanted = np.shape(found[name])
        if array.dtype != np.asarray(found[name]).dtype or array.shape != wanted:
            why = f"it is {array.dtype}{list(array.shape)}, not {np.asarray(found[name]).dtype}{list(wanted)}"
            raise WrongUse(Problem(f"{name!r} does not fit", "--weights", why, "convert it with numpy"))
        found[name] = array
    return {name: np.asarray(array) for name, array in found.items()}


def model_of(layer: Layer, arrays: Mapping[str, np.ndarray], name: str) -> ModelProto:
    """The network, in ONNX's order of axes."""
    arrays = dict(arrays)
    x, y = layer.x, layer.result
    if layer.kind == "conv":
        arrays["w"] = np.ascontiguousarray(arrays["w"].transpose(0, 3, 1, 2))
        x, y = (x[0], x[3], *x[1:3]), (y[0], y[3], *y[1:3])
    dtype = TensorProto.INT8 if layer.int8 else TensorProto.FLOAT
    nodes, inner = [], {"x": "x", "w": "w", "b": "b"}
    if layer.int8:
        arrays["b_scale"] = (arrays["x_scale"] * arrays["w_scale"]).astype(np.float32)
        for value, axis in (("x", None), ("w", 0), ("b", 0)):
            inner[value] = f"{value}_float"
            zero = ["x_zero"] if value == "x" else []
            more: dict[str, Any] = {} if axis is None else {"axis": axis}
            nodes.append(helper.make_node("DequantizeLinear", [value, f"{value}_scale", *zero], [inner[value]], **more))
    made = "y_float" if layer.int8 else "y"
    sum_ = "sum" if layer.relu else made
    if layer.kind == "conv":
        how: dict[str, Any] = {"pads": [*layer.pads, *layer.pads], "strides": list(layer.strides)}
        how["group"] = x[1] // layer.w[-1]
        nodes.append(helper.make_node("Conv", [*inner.values()], [sum_], "conv", **how))
    else:
        nodes.append(helper.make_node("Gemm", [*inner.values()], [sum_], "gemm", transB=1))
    if layer.relu:
        nodes.append(helper.make_node("Relu", [sum_], [made]))
    if layer.int8:
        nodes.append(helper.make_node("QuantizeLinear", [made, "y_scale", "y_zero"], ["y"]))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", dtype, x)],
        [helper.make_tensor_value_info("y", dtype, y)],
        [numpy_helper.from_array(array, each) for each, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


def expected(layer: Layer, arrays: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The result in numpy: integers rounded once, half to even."""
    wide = x.astype(np.float64) - (arrays["x_zero"].astype(np.float64) if layer.int8 else 0.0)
    w, sums = arrays["w"].astype(np.float64), np.zeros(layer.result)
    if layer.kind == "gemm":
        sums += wide @ w.T
    else:
        (top, left), (down, across), count = layer.pads, layer.strides, layer.w[-1]
        padded = np.pad(wide, ((0, 0), (top, top), (left, left), (0, 0)))
        each = layer.w[0] * count // layer.x[-1]  # channels of the result that read the same
        for i in range(layer.w[1]):
            for j in range(layer.w[2]):
                part = padded[:, i::down, j::across][:, : layer.result[1], : layer.result[2]]
                for c in range(layer.w[0]):
                    first = c // each * count
                    sums[..., c] += part[..., first : first + count] @ w[c, i, j]
    sums += arrays["b"]
    if layer.int8:
        sums *= arrays["x_scale"].astype(np.float64) * arrays["w_scale"] / arrays["y_scale"]
    sums = np.maximum(sums, 0) if layer.relu else sums
    if not layer.int8:
        return sums.astype(np.float32)
    return np.asarray(np.clip(np.rint(sums) + int(arrays["y_zero"]), -128, 127), np.int8)
