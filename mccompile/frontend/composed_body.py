"""A function in the making: what operators without a class of their own are decomposed into; see composed.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, defs, helper, numpy_helper

from ..base.dtypes import f32, f64
from ..base.tensor import TensorType
from ..graph.ir import Invalid, Unsupported, Value

CONTRIB = "com.microsoft"
OPSET = 21  # that the bodies are written in
# Activations that fused operators end with: those without parameters, those that ONNX has with some, and those that
# scale their operand by beta and their result by alpha.
_PLAIN = ("HardSwish", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")
_SCALED = {"ParametricSoftplus": "Softplus", "ScaledTanh": "Tanh"}
_PARAMETERS = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "ThresholdedRelu": ("alpha",),
    **dict.fromkeys(_SCALED, ("alpha", "beta")),
}
Size = int | str  # of an axis: a number, or the name of a vector of one element that holds it in a run


class Body:
    """A function in the making: operands `in0` ..., results `out0` ...

    Narrow floats are seen as f32, and results are rounded to them at the end.
    """

    def __init__(
        self, node: NodeProto, attributes: Mapping[str, Any], operands: Sequence[Value | None], prefix: str = ""
    ) -> None:
        self.node, self.attributes, self.operands = node, attributes, operands
        self.prefix = prefix  # before the names made here
        self.declared: Sequence[tuple[int, ...] | None] = ()  # what the file says of the shapes of results
        self.nodes: list[NodeProto] = []
        self.opset = OPSET
        narrow = (v.type.dtype for v in operands if v is not None and v.type.dtype.is_narrow_float)
        self.narrow = next(narrow, None)
        wide = any(v.type.dtype is f64 for v in operands if v is not None)
        self._real = np.float64 if wide else np.float32  # of numbers that stand beside the operands
        self._wide: dict[int, str] = {}  # operands that were narrow
        self._known: set[str] = set()  # names of operands that the decomposition knows of, and others

    @property
    def opset(self) -> int:
        """Of ONNX's operators that it is made of."""
        return self._opset

    @opset.setter
    def opset(self, opset: int) -> None:
        if opset > defs.onnx_opset_version():
            why = f"its decomposition needs operators of opset {opset}, which onnx {onnx.__version__} does not have"
            raise Unsupported(why, "pip install --upgrade onnx")
        self._opset = opset

    def value(self, index: int) -> Value | None:
        """An operand; None where it is absent."""
        self._known.add(f"in{index}")
        return self.operands[index] if index < len(self.operands) else None

    def has(self, index: int) -> bool:
        return self.value(index) is not None

    def ignore(self, *indices: int) -> None:
        """Operands that say nothing here; others that the decomposition does not know of are refused."""
        self._known.update(f"in{index}" for index in indices)

    def operand(self, index: int) -> str:
        """The name of an operand; empty where it is absent."""
        value = self.value(index)
        if value is None:
            return ""
        if value.type.dtype.is_narrow_float and index not in self._wide:
            self._wide[index] = self.as_float(f"in{index}")
        return self._wide.get(index, f"in{index}")

    def type(self, index: int) -> TensorType:
        value = self.value(index)
        if value is None:
            raise Invalid(f"operand {index} is missing")
        return replace(value.type, dtype=f32) if value.type.dtype.is_narrow_float else value.type

    def attribute(self, name: str, default: Any) -> Any:
        return self.attributes.get(name, default)

    def only(self, *names: str, off: Sequence[str] = ()) -> None:
        """Raises where the node has an attribute besides these; `off` are those that may be there as 0."""
        unknown = sorted(n for n, v in self.attributes.items() if n not in names and (n not in off or v))
        if unknown:
            raise Unsupported(f"attribute {', '.join(unknown)} of {self.node.op_type} is not known")

    def picked(self, *names: str) -> dict[str, Any]:
        return {name: self.attributes[name] for name in names if name in self.attributes}

    def op(self, name: str, *inputs: str, outs: int = 1, **attributes: Any) -> str:
        """Adds a node; the name of its first result."""
        made = f"{self.prefix}t{len(self.nodes)}"
        results = [made, *(f"{made}_{number}" for number in range(1, outs))]
        self._known.update(inputs)
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        self.nodes.append(helper.make_node(name, inputs, results, f"{self.node.op_type}_{made}", **attributes))
        return made

    def constant(self, array: np.ndarray) -> str:
        return self.op("Constant", value=numpy_helper.from_array(array))

    def number(self, value: float) -> str:
        return self.constant(np.array(value, self._real))

    def index(self, value: int) -> str:
        """A scalar that says a place."""
        return self.constant(np.array(value, np.int64))

    def wants(self, index: int) -> bool:
        """Is this result of the node asked for?"""
        return index < len(self.node.output) and bool(self.node.output[index])

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    # -- sizes that may be known only at run time

    def size(self, index: int, axis: int) -> Size:
        """Of an operand along an axis."""
        shape = self.type(index).shape
        if not -len(shape) <= axis < len(shape):
            raise Invalid(f"operand {index} is {self.type(index)}, which has no axis {axis}")
        axis %= len(shape)
        dim = shape[axis]
        return dim if isinstance(dim, int) else self.op("Shape", f"in{index}", start=axis, end=axis + 1)

    def sizes(self, *sizes: Size) -> str:
        """A vector of them."""
        numbers = [size for size in sizes if isinstance(size, int)]
        if len(numbers) == len(sizes):
            return self.ints(*numbers)
        return self.op("Concat", *(self.ints(s) if isinstance(s, int) else s for s in sizes), axis=0)

    def sum(self, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return self.op("Add", self.sizes(a), self.sizes(b)) if a != 0 and b != 0 else a or b

    def places(self, count: Size, first: Size = 0) -> str:
        """A vector of so many numbers that count from the first on."""
        if isinstance(count, int) and isinstance(first, int):
            return self.ints(*range(first, first + count))
        if isinstance(count, int):
            return self.op("Add", self.ints(*range(count)), self.sizes(first))
        many = self.op("Range", self.index(0), self.op("Squeeze", count), self.index(1))
        return many if first == 0 else self.op("Add", many, self.sizes(first))

    def give(self, index: int, name: str, is_float: bool = True) -> None:
        self._known.add(name)
        if self.narrow is not None and is_float:
            self.nodes.append(helper.make_node("Cast", [name], [f"out{index}"], to=self.narrow.onnx))
        else:
            self.nodes.append(helper.make_node("Identity", [name], [f"out{index}"]))

    def continued(self, index: int, new: str, axis: int) -> tuple[str, str]:
        """An operand with what is new behind it: stored as the operand is, and as it is computed with."""
        wide, value = self.operand(index), self.value(index)
        if value is None or not value.type.dtype.is_narrow_float:
            whole = self.op("Concat", wide, new, axis=axis)
            return whole, whole
        stored = self.op("Concat", f"in{index}", self.op("Cast", new, to=value.type.dtype.onnx), axis=axis)
        return stored, self.as_float(stored)

    def inner(self) -> Body:
        """What is to be the body of a loop: it sees the names that are made before it."""
        body = Body(self.node, self.attributes, self.operands, f"{self.prefix}t{len(self.nodes)}/")
        body._known = self._known
        return body

    def graph(self, inputs: Sequence[str], outputs: Sequence[str]) -> GraphProto:
        takes, gives = ([ValueInfoProto(name=name) for name in names] for names in (inputs, outputs))
        return helper.make_graph(self.nodes, f"{self.node.op_type}_{self.prefix}body", takes, gives)

    def function(self) -> FunctionProto:
        inputs = [f"in{index}" for index in range(len(self.node.input))]
        outputs = [f"out{index}" for index in range(len(self.node.output))]
        made = {name for node in self.nodes for name in node.output}
        missing = [name for name, wanted in zip(outputs, self.node.output, strict=True) if wanted and name not in made]
        if missing:
            raise Unsupported(f"result {missing[0].removeprefix('out')} of {self.node.op_type} is not supported")
        for index, operand in enumerate(self.operands):
            if operand is not None and f"in{index}" not in self._known:
                raise Unsupported(f"operand {index} of {self.node.op_type} is not known")
        own = sorted({node.domain for node in self.nodes} - {"", CONTRIB})
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(name, 1) for name in (CONTRIB, *own))]
        return helper.make_function(CONTRIB, self.node.op_type, inputs, outputs, self.nodes, opsets)

    # -- pieces that several operators share

    def dequantized(self, x: int, scale: int, zero: int, **axis: int) -> str:
        return self.op("DequantizeLinear", self.operand(x), self.operand(scale), self.operand(zero), **axis)

    def are_constant(self, *indices: int) -> bool:
        return all((value := self.value(i)) is not None and value.constant is not None for i in indices)

    def quantize(self, x: str, scale: int, zero: int) -> None:
        """Quantizes into result 0, which is of the type of the operands where it has no zero point."""
        point = self.operand(zero)
        if not point:
            dtype = next(v.type.dtype for v in self.operands if v is not None and v.type.dtype.is_integer)
            point = self.constant(np.array(0, dtype.numpy))
        self.give(0, self.op("QuantizeLinear", x, self.operand(scale), point), False)

    def rescaled(self, total: str, factor: str, zero: int) -> None:
        """A sum of integers times a factor, rounded to nearest, plus the zero point, into result 0."""
        scaled = self.op("Mul", self.op("Cast", total, to=TensorProto.FLOAT), factor)
        self.give(0, self.op("QuantizeLinear", scaled, self.number(1.0), self.operand(zero)), False)

    def as_float(self, name: str) -> str:
        return self.op("Cast", name, to=TensorProto.FLOAT)

    def channels_last(self, x: str, rank: int, back: bool = False) -> str:
        order = [0, *range(2, rank), 1] if back else [0, rank - 1, *range(1, rank - 1)]
        return self.op("Transpose", x, perm=order)

    def activated(self, x: str) -> str:
        """What FusedConv and FusedGemm do at the end: parameters are one list there, attributes here."""
        name, params = self.attribute("activation", ""), self.attribute("activation_params", ())
        if name in _PLAIN:
            return self.op(name, x)
        if name == "Clip" and len(params) == 2:
            return self.op(name, x, self.number(params[0]), self.number(params[1]))
        keys = _PARAMETERS.get(name, ())
        given: dict[str, Any] = {key: self.attribute(f"activation_{key}", None) for key in keys}
        given = {key: value for key, value in given.items() if value is not None}
        given |= zip(keys, params, strict=False)
        if name in _SCALED and len(given) == 2:
            scaled = self.op("Mul", x, self.number(given["beta"]))
            return self.op("Mul", self.op(_SCALED[name], scaled), self.number(given["alpha"]))
        if name in _PARAMETERS and name not in _SCALED and (given or name == "LeakyRelu"):
            return self.op(name, x, **given)
        if not name:
            return x
        raise Unsupported(f"activation {name!r} with parameters {params}")
