"""Small models at random for `make race`: an operator with its attributes, a shape, an element type, and what stands
before and behind it. The same draws give the same cases.

The element types of an operator are those of its schema with which onnxruntime runs it, and quantized bytes: there the
operator stands between DequantizeLinear and QuantizeLinear.
"""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

LEAST = 1 << 12  # elements that a smaller case still has: below, calls are what is timed
OPSET = 20
# fmt: off
UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
    "ThresholdedRelu", "Celu",
)
# fmt: on
BINARY = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Mod", "PRelu")
BITS = ("BitwiseAnd", "BitwiseXor", "BitwiseOr")
REDUCED = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd", "ReduceLogSumExp")
NORMALIZED = ("Softmax", "LogSoftmax", "LayerNormalization", "InstanceNormalization", "LRN")
POOLED = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
PRODUCTS = ("Conv", "ConvTranspose", "MatMul")
MOVED = ("Transpose", "TopK", "Concat", "CumSum", "Unique")
FAMILIES = (UNARY, UNARY, BINARY, BINARY, BITS, REDUCED, NORMALIZED, POOLED, PRODUCTS, PRODUCTS, MOVED)
MOVING, RESHAPING = ("Transpose", "Conv"), (*REDUCED, *POOLED, *PRODUCTS, *MOVED)  # the latter change shapes
NEIGHBOURS = ("", "Relu", "Sigmoid", "Transpose", "Conv")
FLOAT, STEP = "float", 0.05  # of quantized numbers
QUANTIZED = ("int8", "uint8")
NAMES = frozenset(TensorProto.DataType.keys())
KINDS = "biuf"  # of element types that numpy has: no texts, no complex numbers


@dataclass(frozen=True)
class Case:
    op: str
    shape: tuple[int, ...]
    dtype: str = FLOAT  # as ONNX names it
    quantized: bool = False
    number: float = 2.0  # what a binary operator takes, and where it comes from
    constant: bool = True
    axes: tuple[int, ...] = ()
    window: int = 3
    stride: int = 1
    dilation: int = 1
    group: int = 1
    columns: int = 8  # channels or columns that a product makes
    before: str = ""
    behind: str = ""

    @property
    def is_float(self) -> bool:
        return np_type(self.dtype).kind == "f"


def np_type(dtype: str) -> np.dtype:
    return np.dtype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(dtype.upper())))


def shown(case: Case) -> str:
    """The fields that are not what they are by default."""
    usual = Case(case.op, case.shape)
    always = ("op", "shape")
    said = [key for key, value in vars(case).items() if key in always or value != getattr(usual, key)]
    return ", ".join(f"{key}={getattr(case, key)}" for key in said)


@cache
def types_of(op: str) -> tuple[str, ...]:
    """The element types with which onnxruntime runs it, of those that its schema permits."""
    permitted = onnx.defs.get_schema(op, OPSET).inputs[0].types
    names = (name.removeprefix("tensor(").removesuffix(")") for name in permitted if name.startswith("tensor("))
    found = sorted(name for name in names if name.upper() in NAMES)
    return tuple(name for name in found if np_type(name).kind in KINDS and runs(op, name))


@cache
def runs(op: str, dtype: str) -> bool:
    """Does onnxruntime run it with these elements? Where it is not installed, that is not known."""
    if importlib.util.find_spec("onnxruntime") is None:
        return True
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as refusals

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        proto = model(Case(op, (1, 8, 8, 8), dtype, axes=(1,)))
        onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except (refusals.Fail, refusals.InvalidGraph, refusals.NotImplemented):
        return False
    return True


def drawn(draws: random.Random) -> Case:
    op = draws.choice(draws.choice(FAMILIES))
    rank = draws.choice((2, 3, 4))
    if op in (*POOLED, "Conv", "ConvTranspose"):
        rank = draws.choice((3, 4, 4, 5))
    if op in ("InstanceNormalization", "LRN"):
        rank = 4
    most = {2: 4096, 3: 512, 4: 96, 5: 24}[rank]
    shape = tuple(round(math.exp(draws.uniform(math.log(6), math.log(most)))) for _ in range(rank))
    shape = (draws.choice((1, 1, 8, shape[0])), *shape[1:])
    while math.prod(shape) < 2 * LEAST:
        shape = (*shape[:-1], 2 * shape[-1])
    found = types_of(op)
    typed = [(dtype, False) for dtype in found] + [(dtype, True) for dtype in QUANTIZED if FLOAT in found]
    dtype, quantized = draws.choice(typed) if draws.random() < 0.6 or FLOAT not in found else (FLOAT, False)
    case = Case(op, shape, dtype, quantized, constant=draws.random() < 0.5)
    around = [draws.choice(NEIGHBOURS) for _ in range(2)]
    around = [name if name and not quantized and dtype in types_of(name) else "" for name in around]
    count = draws.randint(1, rank) if op in REDUCED else 1
    number = draws.choice((2.0, 0.5, 3.0, -1.0, 1.5, 2.5))
    return replace(
        case,
        number=number if case.is_float else 3.0,
        axes=tuple(sorted(draws.sample(range(rank), count))),
        window=draws.choice((1, 2, 3, 5)) if op in PRODUCTS else draws.choice((2, 3, 5)),
        stride=draws.choice((1, 2)),
        dilation=draws.choice((1, 1, 2)),
        group=draws.choice((1, 1, draws.choice([n for n in range(1, shape[1] + 1) if shape[1] % n == 0]))),
        columns=draws.choice((1, 3, 8, 17, 32)),
        before=around[0],
        behind=around[1],
    )


def smaller(case: Case) -> Iterator[Case]:
    if case.before:
        yield replace(case, before="")
    if case.behind:
        yield replace(case, behind="")
    for axis, size in enumerate(case.shape):
        half = (*case.shape[:axis], size // 2, *case.shape[axis + 1 :])
        if size >= 16 and math.prod(half) >= LEAST:
            yield replace(case, shape=half)


def model(case: Case) -> ModelProto:
    """x goes through what stands before, the operator, and what stands behind."""
    made, given = _Graph(case), case.shape
    if case.before == "Transpose":
        case = replace(case, shape=(*case.shape[:-2], case.shape[-1], case.shape[-2]))
    last = made.real("x")
    last = made.neighbour(last, case.before, given)
    last = made.operator(case, last)
    last = made.neighbour(last, "" if case.behind in MOVING and case.op in RESHAPING else case.behind, case.shape)
    if case.quantized:
        made.nodes.append(helper.make_node("QuantizeLinear", [last, *made.scale()], ["y"]))
    else:
        made.nodes.append(helper.make_node("Identity", [last], ["y"]))
    dtype = TensorProto.DataType.Value(case.dtype.upper())
    ends = [helper.make_tensor_value_info("x", dtype, given)]
    if made.second:
        ends.append(helper.make_tensor_value_info("second", dtype, made.second))
    y = helper.make_tensor_value_info("y", dtype, None)
    graph = helper.make_graph(made.nodes, "case", ends, [y], made.constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return onnx.shape_inference.infer_shapes(proto)


class _Graph:
    def __init__(self, case: Case) -> None:
        self.rank, self.quantized, self.dtype = len(case.shape), case.quantized, np_type(case.dtype)
        self.second: tuple[int, ...] = ()
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def node(self, op: str, *ins: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, list(ins), names, **attributes))
        return names[0]

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def scale(self) -> list[str]:
        return [self.constant(np.array(STEP, np.float32)), self.constant(np.array(3, self.dtype))]

    def real(self, name: str) -> str:
        """What stands for a tensor of the case's type: where it is quantized, its floats."""
        return self.node("DequantizeLinear", name, *self.scale()) if self.quantized else name

    def numbers(self, array: np.ndarray) -> str:
        """A constant of the case's type."""
        if self.quantized:
            return self.real(self.constant(np.clip(np.rint(array / STEP) + 3, 0, 127).astype(self.dtype)))
        return self.constant(np.asarray(array).astype(self.dtype))

    def neighbour(self, x: str, op: str, shape: tuple[int, ...]) -> str:
        if op == "Transpose":
            return self.node(op, x, perm=[*range(self.rank - 2), self.rank - 1, self.rank - 2])
        if op == "Conv":
            return self.node(op, x, self.weights(shape[1], shape[1], 1, 1)) if self.rank == 4 else x
        return self.node(op, x) if op else x

    def weights(self, *shape: int) -> str:
        return self.numbers(np.random.default_rng(0).normal(0, 0.1 if self.dtype.kind == "f" else 2, shape))

    def operator(self, case: Case, x: str) -> str:
        channels, axis = case.shape[1], case.axes[0] if case.axes else -1
        window = self.window(case)
        match case.op:
            case op if op in (*BINARY, *BITS):
                more = {"fmod": 1} if op == "Mod" and self.dtype.kind == "f" else {}
                return self.node(op, x, self.other(case), **more)
            case op if op in REDUCED:
                return self.node(op, x, self.constant(np.array(case.axes, np.int64)), keepdims=1)
            case "Conv" | "ConvTranspose" | "MatMul":
                return self.product(case, x)
            case "Softmax" | "LogSoftmax":
                return self.node(case.op, x, axis=axis)
            case "LayerNormalization":
                return self.node(case.op, x, self.numbers(np.ones(case.shape[-1:])), axis=-1)
            case "InstanceNormalization":
                return self.node(case.op, x, *(self.numbers(np.full(channels, value)) for value in (1, 0)))
            case "LRN":
                return self.node(case.op, x, size=case.window)
            case "MaxPool" | "AveragePool":
                return self.node(case.op, x, **window)
            case "Transpose":
                return self.node(case.op, x, perm=[*reversed(range(self.rank))])
            case "TopK":
                count = self.constant(np.array([min(8, case.shape[axis])], np.int64))
                return self.node(case.op, x, count, outputs=2, axis=axis)
            case "Concat":
                return self.node(case.op, x, x, axis=axis)
            case "CumSum":
                return self.node(case.op, x, self.constant(np.array(axis, np.int64)))
        return self.node(case.op, x)

    def window(self, case: Case) -> dict[str, Any]:
        axes = self.rank - 2
        return {"kernel_shape": [case.window] * axes, "strides": [case.stride] * axes, "auto_pad": "SAME_UPPER"}

    def product(self, case: Case, x: str) -> str:
        if case.op == "MatMul":
            if case.constant:
                return self.node(case.op, x, self.weights(case.shape[-1], case.columns))
            self.second = (*case.shape[:-2], case.shape[-1], case.columns)
            return self.node(case.op, x, self.real("second"))
        channels = case.shape[1]
        group = math.gcd(case.group, channels)  # what stands before, and smaller cases, have other channels
        made = -(-case.columns // group)
        steps = {"group": group, "dilations": [case.dilation] * (self.rank - 2), **self.window(case)}
        shape = (group * made, channels // group) if case.op == "Conv" else (channels, made)
        return self.node(case.op, x, self.weights(*shape, *steps["kernel_shape"]), **steps)

    def other(self, case: Case) -> str:
        """The second operand: a number that is constant, or a tensor that is given."""
        if case.constant:
            return self.numbers(np.array(case.number))
        self.second = case.shape
        return self.real("second")
