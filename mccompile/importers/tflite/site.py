"""What an operator of TFLite is decomposed with, and the registry of decompositions.

Tensors keep the types and layouts of the file. Where they are quantized, `real` is the float that an element stands
for, and `give` quantizes a result: the ONNX graph says DequantizeLinear, operator, QuantizeLinear, and the compiler
makes one operator over integers of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...base.discovery import import_package_modules
from ...graph.ir import Invalid, Unsupported
from .file import NUMPY_TYPES, Operator, Options, SizeOpen, Tensor
from .onnx_nodes import ONNX_TYPES, Writer, first_order, last_order
from .scope import Scope, Variable

Convert = Callable[["Site"], None]
_MOST_MADE = 1 << 22
_CONVERTERS: dict[str, Convert] = {}


def converts(*names: str) -> Callable[[Convert], Convert]:
    """Registers a function as the decomposition of these operators."""

    def register(convert: Convert) -> Convert:
        for name in names:
            _CONVERTERS[name] = convert
        return convert

    return register


@cache
def registry() -> dict[str, Convert]:
    """Every operator that has a decomposition, by name."""
    import_package_modules(f"{__package__}.ops")
    return dict(sorted(_CONVERTERS.items()))


class Site(Writer):
    """One operator, and where it stands."""

    def __init__(self, operator: Operator, scope: Scope) -> None:
        self.shared, self.nodes = scope.writer.shared, scope.writer.nodes
        self.operator, self.scope = operator, scope
        self.subgraph, self.values = scope.subgraph, scope.values
        self.title = (self.subgraph.tensors[operator.outputs[0]].name if operator.outputs else "") or operator.name

    @property
    def name(self) -> str:
        return self.operator.name

    def options(self, name: str) -> Options:
        return self.operator.options(name)

    # -- operands

    @property
    def count(self) -> int:
        return len(self.operator.inputs)

    def has(self, index: int) -> bool:
        return index < self.count and self.operator.inputs[index] >= 0

    def tensor(self, index: int) -> Tensor:
        if not self.has(index):
            raise Invalid(f"operand {index} is missing")
        return self.scope.tensor(self.operator.inputs[index])

    def dims(self, index: int) -> tuple[int | None, ...]:
        """Sizes; None where they have a range."""
        return self.tensor(index).dims

    @property
    def is_resized(self) -> bool:
        """Are sizes others than those of the file?"""
        return self.scope.whole.types is not None

    def shape(self, index: int) -> tuple[int, ...]:
        return self.tensor(index).shape

    def size(self, index: int, axis: int) -> int:
        found = self.dims(index)[axis]
        if found is None:
            raise SizeOpen(f"the size of axis {axis} of operand {index} has a range")
        return found

    def rank(self, index: int) -> int:
        return len(self.tensor(index).dims)

    def dtype(self, index: int) -> Any:
        return NUMPY_TYPES.get(self.tensor(index).type, np.float32)

    def is_float(self, index: int) -> bool:
        """Does an element stand for a float?"""
        tensor = self.tensor(index)
        return tensor.quantization is not None or not is_integer(tensor)

    def stored(self, index: int) -> str:
        """The value as it is stored."""
        tensor, number = self.tensor(index), self.operator.inputs[index]
        if number not in self.values:
            if tensor.data is None:
                raise Invalid(f"nothing makes {tensor.name!r}, which it reads")
            self.values[number] = self.constant(tensor.data, tensor.name)
        return self.values[number]

    def real(self, index: int, order: tuple[int, ...] = ()) -> str:
        """The floats that it stands for, with axes in another order if that is asked for."""
        return self.dequantized(self.moved(index, order), self.tensor(index), order)

    def moved(self, index: int, order: tuple[int, ...]) -> str:
        """As it is stored, with axes in another order; of constants that is done here."""
        tensor = self.tensor(index)
        if not order or order == tuple(range(len(order))):
            return self.stored(index)
        if len(order) != len(tensor.dims):
            raise Unsupported(f"operand {index} has the shape {list(tensor.dims)}")
        if tensor.data is not None:
            return self.constant(np.transpose(tensor.data, order), tensor.name)
        return self.transposed(self.stored(index), order)

    def first(self, index: int) -> str:
        """The floats with channels first."""
        return self.real(index, first_order(self.rank(index)))

    def is_known(self, index: int) -> bool:
        return self.tensor(index).data is not None or self.values.get(self.operator.inputs[index]) in self.shared.arrays

    def array(self, index: int) -> np.ndarray:
        """What is known when compiling."""
        found = self.tensor(index).data
        if found is None:
            found = self.shared.arrays.get(self.values.get(self.operator.inputs[index], ""))
        if found is None:
            raise Unsupported(
                f"operand {index} ({self.tensor(index).name!r}) is computed at run time",
                "convert the model with fixed sizes, so that it is a constant",
            )
        return found

    def numbers(self, index: int) -> tuple[int, ...]:
        """Sizes, axes and the like."""
        return tuple(int(number) for number in self.array(index).reshape(-1))

    def sizes(self, index: int) -> str:
        """The same as ONNX wants them, also where they are computed."""
        return self.ints(*self.numbers(index)) if self.is_known(index) else self.cast(self.stored(index), "INT64")

    # -- variables

    def handle(self, index: int) -> str:
        """Of the variable that an operand names."""
        number = self.operator.inputs[index] if self.has(index) else -1
        if number not in self.scope.handles:
            raise Invalid(f"operand {index} names no variable")
        return self.scope.handles[number]

    def variable(self, index: int) -> Variable:
        """An operand that lasts from run to run."""
        tensor, whole = self.tensor(index), self.scope.whole
        key = f"tensor {self.operator.inputs[index]} of {self.scope.number}"
        zeros = tensor.quantization.zeros if tensor.quantization is not None else np.zeros(1)
        if tensor.type == "INT8" and zeros[0]:  # TFLite begins with what stands for 0
            whole.firsts.setdefault(key, np.full(tensor.shape, zeros[0], np.int8))
        return whole.variable(key, tensor, tensor.name)

    def assign(self, variable: Variable, value: str) -> None:
        if self.scope.is_region:
            raise Unsupported(f"it sets the variable {variable.name!r} within a loop or a branch")
        variable.now, variable.is_set = value, True

    def reshaped(self, value: str, dims: Sequence[int | None]) -> str:
        """A value in another shape; one size may have a range."""
        if list(dims).count(None) > 1:
            raise SizeOpen("several sizes of its result have a range")
        return self.reshape(value, *(-1 if dim is None else dim for dim in dims))

    # -- results

    def out(self, index: int = 0) -> Tensor:
        if index >= len(self.operator.outputs):
            raise Invalid(f"result {index} is missing")
        return self.subgraph.tensors[self.operator.outputs[index]]

    def out_dtype(self, index: int = 0) -> Any:
        return NUMPY_TYPES.get(self.out(index).type, np.float32)

    def wants(self, index: int) -> bool:
        return index < len(self.operator.outputs)

    def store(self, value: str, index: int = 0) -> None:
        """A result as it is stored."""
        tensor, number = self.out(index), self.operator.outputs[index]
        if number in self.values:
            raise Invalid(f"{tensor.name!r} is made twice")
        self.values[number] = self.named(value, tensor.name)

    def give(self, value: str, index: int = 0, channels_first: bool = False) -> None:
        """A result as floats."""
        value = self.quantized(value, self.out(index))
        if channels_first:
            rank = len(self.out(index).dims) or max(
                map(self.rank, filter(self.has, range(self.count)))
            )  # file has none
            value = self.transposed(value, last_order(rank))
        self.store(value, index)

    # -- quantization

    def dequantized(self, value: str, tensor: Tensor, order: tuple[int, ...] = ()) -> str:
        found = tensor.quantization
        if found is None or not is_integer(tensor):
            return value
        dtype = np.dtype(np.int8) if tensor.type == "INT4" else np.dtype(tensor.type.lower())
        if dtype.itemsize == 8:  # biases of 16-bit networks
            return self._wide(value, tensor)
        zeros = found.zeros.astype(dtype)
        if (zeros != found.zeros).any():
            raise Invalid(f"{tensor.name!r} has zero points that do not fit its type {tensor.type}")
        axis = order.index(found.axis) if order and not found.is_one else found.axis
        scale, zero = (found.scales[0], zeros[0]) if found.is_one else (found.scales, zeros)
        where = {} if found.is_one else {"axis": axis}
        name = "" if dtype == np.int32 and not zeros.any() else self.constant(np.asarray(zero))
        return self.op("DequantizeLinear", value, self.constant(np.asarray(scale)), name, **where)

    def _wide(self, value: str, tensor: Tensor) -> str:
        found, data = tensor.quantization, tensor.data
        if found is None or data is None:
            raise Unsupported(f"{tensor.name!r} is computed, and quantized to 64 bits")
        shape = [1] * data.ndim
        if not found.is_one:
            shape[found.axis] = -1
        return self.constant((data * found.scales.astype(np.float64).reshape(shape)).astype(np.float32), tensor.name)

    def quantized(self, value: str, tensor: Tensor) -> str:
        found = tensor.quantization
        if found is None or not is_integer(tensor):
            return value
        if tensor.type == "INT32" and found.is_one:
            return self._whole(self.cast(value, "FLOAT64"), 1 / np.float64(found.scales[0]), found.zeros[0])
        if not found.is_one or tensor.type not in ("INT8", "UINT8", "INT16"):
            raise Unsupported(f"its result {tensor.name!r} is {tensor.type} with {found.scales.size} scales")
        zero = np.array(found.zeros[0], tensor.type.lower())
        return self.op("QuantizeLinear", value, self.constant(np.asarray(found.scales[0])), self.constant(zero))

    def requantized(self, value: str, index: int = 0, result: int = 0) -> str:
        """Elements of an operand as a result has them; nothing where both are quantized alike."""
        source, target = self.tensor(index), self.out(result)
        if source.type == target.type and source.quantization == target.quantization:
            return value
        before, after = source.quantization, target.quantization
        if target.type == "INT32" and is_integer(source) and before and after and before.is_one and after.is_one:
            wide = self.op("Sub", self.cast(value, "FLOAT64"), self.number(float(before.zeros[0]), np.float64))
            return self._whole(wide, np.float64(before.scales[0]) / np.float64(after.scales[0]), after.zeros[0])
        return self.quantized(self.dequantized(value, source), target)

    def _whole(self, value: str, factor: np.float64, zero: int) -> str:
        """A double times a factor as an integer of 32 bits, which QuantizeLinear does not make."""
        scaled = self.op("Round", self.op("Mul", value, self.number(float(factor), np.float64)))
        moved = self.op("Add", scaled, self.number(float(zero), np.float64)) if zero else scaled
        low, high = (self.number(float(end), np.float64) for end in (-(2**31), 2**31 - 1))
        return self.cast(self.op("Clip", moved, low, high), "INT32")

    @property
    def parts(self) -> tuple[int, ...]:
        """Sizes of the axes behind those of the file: the two parts of complex numbers lie along one."""
        return (2,) if self.tensor(0).type == "COMPLEX64" else ()

    # -- what many operators share

    def activated(self, value: str, code: int) -> str:
        """Behind the activation that is part of an operator."""
        if code not in _ACTIVATIONS:
            raise Unsupported(f"its activation {code} is not known")
        out = self.out()
        if code in _BOUNDS and out.quantization is None and is_integer(out):
            low, high = (None if bound is None else self.number(bound, self.out_dtype()) for bound in _BOUNDS[code])
            value = self.op("Max", value, low) if low else value
            return self.op("Min", value, high) if high else value
        return _ACTIVATIONS[code](self, value)

    def limited(self, count: int) -> int:
        """A number of elements that are written into the model, besides those of the file."""
        if count > _MOST_MADE:
            raise Unsupported(f"its decomposition has a constant of {count} elements")
        return count

    def scalar(self, value: int) -> str:
        return self.constant(np.array(value, np.int64))

    def cast(self, value: str, type: str) -> str:
        return self.op("Cast", value, to=onnx_type(type))

    def clip(self, value: str, low: float, high: float) -> str:
        return self.op("Clip", value, self.number(low), self.number(high))


_BOUNDS: dict[int, tuple[int | None, int | None]] = {1: (0, None), 2: (-1, 1), 3: (0, 6)}  # of integers
_ACTIVATIONS: dict[int, Callable[[Site, str], str]] = {
    0: lambda site, value: value,
    1: lambda site, value: site.op("Relu", value),
    2: lambda site, value: site.clip(value, -1.0, 1.0),
    3: lambda site, value: site.clip(value, 0.0, 6.0),
    4: lambda site, value: site.op("Tanh", value),
    5: lambda site, value: site.op("Sign", value),
}


def is_integer(tensor: Tensor) -> bool:
    return tensor.type.startswith(("INT", "UINT"))


def onnx_type(type: str) -> Any:
    if type not in ONNX_TYPES:
        raise Unsupported(f"elements of the type {type} are not supported")
    return ONNX_TYPES[type]
