"""A .tflite file as plain values.

Invariant: every number that refers to something (tensors of operators, operators' codes, subgraphs) is within bounds,
and the data of a constant has as many elements as its shape says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.records import dataclass
from ...graph.ir import Unsupported
from .flat import Damaged, Reader
from .sparse import dense

_MOST_ELEMENTS = 1 << 31
_MOST_SPARSE = 1 << 26  # that a file may become without having them


@dataclass(frozen=True, eq=False)
class Quantization:
    scales: np.ndarray  # f32
    zeros: np.ndarray  # i64, as many
    axis: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantization) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[bytes, bytes, int]:
        return self.scales.tobytes(), self.zeros.tobytes(), 0 if self.is_one else self.axis

    @property
    def is_one(self) -> bool:
        """One for all elements?"""
        return self.scales.size == 1


class SizeOpen(Unsupported):
    """A size has a range where a number is needed."""


@dataclass(frozen=True)
class Tensor:
    name: str
    type: str  # as the schema calls it: "INT8"
    dims: tuple[int | None, ...]  # None where a size has a range
    quantization: Quantization | None
    data: np.ndarray | None  # of constants
    is_variable: bool
    open: tuple[int, ...] = ()  # axes whose sizes the file leaves open

    @property
    def shape(self) -> tuple[int, ...]:
        known = tuple(dim for dim in self.dims if dim is not None)
        if len(known) < len(self.dims):
            text = ", ".join("?" if dim is None else str(dim) for dim in self.dims)
            raise SizeOpen(f"{self.name!r} has the shape [{text}], and it needs all of these sizes")
        return known


@dataclass(frozen=True)
class Options:
    """Attributes of an operator, with defaults where the file has none."""

    reader: Reader
    table: Any

    def __getitem__(self, name: str) -> int:
        return int(self.reader.field(self.table, name))

    def real(self, name: str) -> float:
        return float(self.reader.field(self.table, name))

    def reals(self, name: str) -> tuple[float, ...]:
        return tuple(float(number) for number in self.reader.numbers(self.table, name))

    def text(self, name: str) -> str:
        return self.reader.text(self.table, name)

    def ints(self, name: str) -> tuple[int, ...]:
        return self.reader.ints(self.table, name)


@dataclass(frozen=True)
class Operator:
    name: str  # such as CONV_2D; of custom operators their own
    is_custom: bool
    version: int
    inputs: tuple[int, ...]  # -1 where one is absent
    outputs: tuple[int, ...]
    options: Callable[[str], Options]  # by the name of their table
    custom: bytes

    @property
    def key(self) -> str:
        """In the registry; a custom operator may have any name."""
        return f"custom {self.name}" if self.is_custom else self.name


@dataclass(frozen=True)
class Subgraph:
    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Signature:
    key: str
    subgraph: int
    inputs: Mapping[int, str]  # names by tensor
    outputs: Mapping[int, str]


@dataclass(frozen=True)
class Model:
    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...]
    description: str


def read(data: bytes) -> Model:
    """Raises Damaged."""
    return _File(data).model()


class _File:
    def __init__(self, data: bytes) -> None:
        self.reader = reader = Reader(data)
        self.root = reader.root()
        self.buffers = reader.tables(self.root, "Buffers")
        self.codes = [self._code(table) for table in reader.tables(self.root, "OperatorCodes")]
        self.types = {n: name for name, n in vars(reader.schema.TensorType).items() if isinstance(n, int)}

    def model(self) -> Model:
        reader = self.reader
        subgraphs = tuple(self._subgraph(table) for table in reader.tables(self.root, "Subgraphs"))
        if not subgraphs:
            raise Damaged("it has no subgraph")
        signatures = tuple(self._signature(table, subgraphs) for table in reader.tables(self.root, "SignatureDefs"))
        return Model(subgraphs, signatures, reader.text(self.root, "Description"))

    def _code(self, table: Any) -> tuple[str, bool, int]:
        """Name, whether it is a custom operator, version."""
        reader = self.reader
        number = max(reader.field(table, "BuiltinCode"), reader.field(table, "DeprecatedBuiltinCode"))
        operators = reader.schema.BuiltinOperator
        names = {n: name for name, n in vars(operators).items() if isinstance(n, int)}
        version = int(reader.field(table, "Version"))
        if number == operators.CUSTOM:
            return reader.text(table, "CustomCode"), True, version
        return names.get(number, f"builtin operator {number}"), False, version

    def _subgraph(self, table: Any) -> Subgraph:
        reader = self.reader
        tensors = tuple(self._tensor(each) for each in reader.tables(table, "Tensors"))
        operators = tuple(self._operator(each, len(tensors)) for each in reader.tables(table, "Operators"))
        inputs, outputs = (_within(reader.ints(table, name), 0, len(tensors)) for name in ("Inputs", "Outputs"))
        made = {*inputs, *(number for operator in operators for number in operator.outputs)}
        tensors = tuple(each if number in made else _with_nothing(each) for number, each in enumerate(tensors))
        return Subgraph(reader.text(table, "Name"), tensors, inputs, outputs, operators)

    def _operator(self, table: Any, tensors: int) -> Operator:
        reader = self.reader
        code = reader.field(table, "OpcodeIndex")
        if not 0 <= code < len(self.codes):
            raise Damaged(f"an operator has the code {code}, and there are {len(self.codes)}")
        inputs = _within(reader.ints(table, "Inputs"), -1, tensors)
        outputs = _within(reader.ints(table, "Outputs"), 0, tensors)
        given = reader.options("BuiltinOptions", *(reader.field(table, f"BuiltinOptions{n}") for n in ("Type", "")))
        if not given[0]:
            kind, union = (reader.field(table, f"BuiltinOptions2{n}") for n in ("Type", ""))
            given = reader.options("BuiltinOptions2", kind, union)

        def options(name: str) -> Options:
            if given[0] not in ("", name):
                raise Damaged(f"an operator {self.codes[code][0]} has attributes {given[0]}")
            return Options(reader, given[1] if given[0] else reader.defaults(name))

        custom = reader.numbers(table, "CustomOptions").astype(np.uint8).tobytes()
        name, is_custom, version = self.codes[code]
        return Operator(name, is_custom, version, inputs, outputs, options, custom)

    def _signature(self, table: Any, subgraphs: Sequence[Subgraph]) -> Signature:
        reader = self.reader
        number = reader.field(table, "SubgraphIndex")
        if not 0 <= number < len(subgraphs):
            raise Damaged(f"a signature is of subgraph {number}, and there are {len(subgraphs)}")
        count = len(subgraphs[number].tensors)

        def names(field: str) -> dict[int, str]:
            entries = reader.tables(table, field)
            places = _within([reader.field(entry, "TensorIndex") for entry in entries], 0, count)
            return {place: reader.text(entry, "Name") for place, entry in zip(places, entries, strict=True)}

        return Signature(reader.text(table, "SignatureKey"), number, names("Inputs"), names("Outputs"))

    def _tensor(self, table: Any) -> Tensor:
        reader = self.reader
        name, shape = reader.text(table, "Name"), reader.ints(table, "Shape")
        if any(dim < 0 for dim in shape) or math.prod(shape) > _MOST_ELEMENTS:
            raise Damaged(f"tensor {name!r} has the shape {list(shape)}")
        number = reader.field(table, "Type")
        if number not in self.types:
            raise Damaged(f"tensor {name!r} has the type {number}, which is not known")
        type = self.types[number]
        data = self._data(table, name, type, shape)
        signature = reader.ints(table, "ShapeSignature")
        is_open = len(signature) == len(shape) and data is None
        axes = tuple(axis for axis, size in enumerate(signature) if size < 0) if is_open else ()
        is_variable = bool(reader.field(table, "IsVariable"))
        return Tensor(name, type, shape, self._quantization(table, shape), data, is_variable, axes)

    def _quantization(self, table: Any, shape: tuple[int, ...]) -> Quantization | None:
        reader = self.reader
        found = reader.field(table, "Quantization")
        if found is None:
            return None
        scales = reader.numbers(found, "Scale").astype(np.float32)
        zeros = reader.numbers(found, "ZeroPoint").astype(np.int64)
        if not scales.size:
            return None
        axis = int(reader.field(found, "QuantizedDimension"))
        if not zeros.size:
            zeros = np.zeros(scales.size, np.int64)
        elif zeros.size == 1:
            zeros = np.repeat(zeros, scales.size)
        if zeros.size != scales.size or not (np.isfinite(scales).all() and (scales > 0).all()):
            raise Damaged(f"scales and zero points do not fit together: {scales.size} and {zeros.size}")
        if scales.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scales.size):
            raise Damaged(f"{scales.size} scales do not fit axis {axis} of the shape {list(shape)}")
        return Quantization(scales, zeros, axis)

    def _data(self, table: Any, name: str, type: str, shape: tuple[int, ...]) -> np.ndarray | None:
        number = self.reader.field(table, "Buffer")
        if not 0 <= number < len(self.buffers):
            raise Damaged(f"tensor {name!r} has the buffer {number}, and there are {len(self.buffers)}")
        raw = self._bytes(self.buffers[number])
        if not raw.size or type not in NUMPY_TYPES:
            return None
        sparsity = self.reader.field(table, "Sparsity")
        if sparsity is not None:
            dtype = np.dtype(NUMPY_TYPES[type])
            if type in ("INT4", "BOOL") or raw.nbytes % dtype.itemsize or math.prod(shape) > _MOST_SPARSE:
                raise Damaged(f"tensor {name!r} is sparse, and {type}{list(shape)}")
            return dense(self.reader, sparsity, np.frombuffer(raw.tobytes(), dtype), shape)
        return typed(raw, type, shape, name)

    def _bytes(self, buffer: Any) -> np.ndarray:
        """The contents of a buffer, which may lie behind the flatbuffer."""
        offset, size = (int(self.reader.field(buffer, name)) for name in ("Offset", "Size"))
        if offset > 1:
            if offset + size > len(self.reader.data):
                raise Damaged(f"a buffer lies at {offset}, outside of the file")
            return np.frombuffer(self.reader.data, np.uint8, size, offset)
        return self.reader.numbers(buffer, "Data").astype(np.uint8, copy=False)


NUMPY_TYPES = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "FLOAT64": np.float64,
    "INT4": np.int8,  # one per element
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
}


def _with_nothing(tensor: Tensor) -> Tensor:
    """A constant without elements has no bytes in the file, like what operators make."""
    if tensor.data is not None or 0 not in tensor.dims or tensor.is_variable or tensor.type not in NUMPY_TYPES:
        return tensor
    return replace(tensor, data=np.zeros(tensor.shape, NUMPY_TYPES[tensor.type]))


def typed(raw: np.ndarray, type: str, shape: tuple[int, ...], name: str) -> np.ndarray:
    count = math.prod(shape)
    dtype = np.dtype(NUMPY_TYPES[type])
    if raw.nbytes != ((count + 1) // 2 if type == "INT4" else count * dtype.itemsize):
        raise Damaged(f"tensor {name!r} is {type}{list(shape)}, and has {raw.nbytes} bytes")
    if type == "INT4":
        halves = np.stack([raw << 4, raw & 0xF0], axis=-1).reshape(-1).view(np.int8) >> 4
        return np.asarray(halves)[:count].reshape(shape)
    if type == "BOOL":
        return np.asarray(raw != 0).reshape(shape)
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def _within(numbers: Sequence[int], low: int, high: int) -> tuple[int, ...]:
    if any(not low <= number < high for number in numbers):
        raise Damaged(f"it refers to the tensors {list(numbers)[:8]}, and there are {high}")
    return tuple(numbers)
