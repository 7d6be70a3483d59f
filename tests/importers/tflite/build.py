"""Small .tflite files, written with flatbuffers: tensors and operators by number, as the schema has them.

net = Net()
x = net.input((1, 4, 4, 3), "INT8", 0.1, -3)
y = net.tensor((1, 4, 4, 3), "INT8", 0.2, 5)
net.op("RELU6", [x], [y])
data = net.file([y])
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import flatbuffers
import numpy as np
import tflite

_NUMPY_TYPES = {name: getattr(tflite.TensorType, name) for name in dir(tflite.TensorType) if name.isupper()}
_UNSET = -1


class Graph:
    """A subgraph."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.tensors: list[dict[str, Any]] = []
        self.operators: list[tuple[str, Sequence[int], Sequence[int], str, dict[str, Any], bytes]] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def tensor(
        self,
        shape: Sequence[int],
        type: str = "FLOAT32",
        scale: Any = None,
        zero: Any = 0,
        axis: int = 0,
        data: np.ndarray | None = None,
        name: str = "",
        variable: bool = False,
        sparsity: Sequence[Any] = (),
        open: Sequence[int] = (),
    ) -> int:
        known = {"shape": shape, "type": type, "scale": scale, "zero": zero, "axis": axis, "data": data}
        named = {"name": name or f"t{len(self.tensors)}", "variable": variable, "sparsity": sparsity, "open": open}
        self.tensors.append(known | named)
        return len(self.tensors) - 1

    def input(self, *known: Any, **named: Any) -> int:
        self.inputs.append(self.tensor(*known, **named))
        return self.inputs[-1]

    def constant(self, array: Any, scale: Any = None, zero: Any = 0, axis: int = 0, type: str = "") -> int:
        array = np.asarray(array)
        type = type or {"bool": "BOOL"}.get(array.dtype.name, array.dtype.name.upper())
        return self.tensor(array.shape, type, scale, zero, axis, array)

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: str = "",
        custom: bytes = b"",
        **fields: Any,
    ) -> None:
        self.operators.append((name, inputs, outputs, options, fields, custom))


class Net(Graph):
    """The first subgraph, and the file."""

    def __init__(self) -> None:
        super().__init__()
        self.outside = False  # do data lie behind the flatbuffer?
        self.others: list[Graph] = []
        self.signatures: list[tuple[str, int, dict[str, int], dict[str, int]]] = []

    def subgraph(self, name: str) -> tuple[int, Graph]:
        self.others.append(Graph(name))
        return len(self.others), self.others[-1]

    def file(self, outputs: Sequence[int]) -> bytes:
        self.outputs = list(outputs)
        graphs = [self, *self.others]
        if not self.outside:
            return _Writer().file(graphs, self.signatures)
        first = _Writer(1 << 20).file(graphs, self.signatures)  # as long as the one with the right places
        writer = _Writer((len(first) + 15) // 16 * 16)
        made = writer.file(graphs, self.signatures)
        return made + bytes(-len(made) % 16) + b"".join(writer.behind)


class _Writer:
    def __init__(self, place: int = 0) -> None:
        self.place, self.behind = place, list[bytes]()
        self.b = flatbuffers.Builder(1024)
        self.codes: list[str] = []
        self.buffers: list[int] = []

    def file(self, graphs: Sequence[Graph], signatures: Sequence[Any]) -> bytes:
        self.buffers.append(self.buffer(None))
        made = [self.graph(graph) for graph in graphs]
        keys = self.vector([self.signature(*signature) for signature in signatures])
        codes = self.vector([self.code(name) for name in self.codes])
        subgraphs, buffers = self.vector(made), self.vector(self.buffers)
        text = self.b.CreateString("made for tests")
        fields = {"Version": 3, "OperatorCodes": codes, "Subgraphs": subgraphs, "Description": text, "Buffers": buffers}
        root = self.table("Model", **fields, SignatureDefs=keys)
        self.b.Finish(root, b"TFL3")
        return bytes(self.b.Output())

    def graph(self, graph: Graph) -> int:
        tensors = self.vector([self.tensor(**known) for known in graph.tensors])
        operators = self.vector([self.operator(*known) for known in graph.operators])
        inputs, outputs = self.ints(graph.inputs), self.ints(graph.outputs)
        name = self.b.CreateString(graph.name)
        return self.table("SubGraph", Tensors=tensors, Inputs=inputs, Outputs=outputs, Operators=operators, Name=name)

    def tensor(
        self,
        shape: Sequence[int],
        type: str,
        scale: Any,
        zero: Any,
        axis: int,
        data: np.ndarray | None,
        name: str,
        variable: bool,
        sparsity: Sequence[Any],
        open: Sequence[int],
    ) -> int:
        number = 0
        if data is not None:
            number = len(self.buffers)
            self.buffers.append(self.buffer(_packed(data, type)))
        quantized = _UNSET
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            zeros = np.broadcast_to(np.atleast_1d(np.asarray(zero, np.int64)), scales.shape)
            vectors = self.b.CreateNumpyVector(scales), self.b.CreateNumpyVector(np.ascontiguousarray(zeros))
            quantized = self.table(
                "QuantizationParameters", Scale=vectors[0], ZeroPoint=vectors[1], QuantizedDimension=axis
            )
        where = {} if quantized == _UNSET else {"Quantization": quantized}
        if sparsity:
            where["Sparsity"] = self.sparsity(*sparsity)
        if open:
            where["ShapeSignature"] = self.ints([-1 if axis in open else size for axis, size in enumerate(shape)])
        title, sizes = self.b.CreateString(name), self.ints(shape)
        return self.table(
            "Tensor", Shape=sizes, Type=_NUMPY_TYPES[type], Buffer=number, Name=title, IsVariable=variable, **where
        )

    def sparsity(self, order: Sequence[int], blocks: Sequence[int], levels: Sequence[Any]) -> int:
        """Levels: the size of a dense one, or segments and positions."""
        made = []
        for level in levels:
            if isinstance(level, int):
                made.append(self.table("DimensionMetadata", Format=0, DenseSize=level))
                continue
            vectors = [self.table("Int32Vector", Values=self.ints(numbers)) for numbers in level]
            kind = tflite.SparseIndexVector.Int32Vector
            fields = {"ArraySegmentsType": kind, "ArraySegments": vectors[0], "ArrayIndices": vectors[1]}
            made.append(self.table("DimensionMetadata", Format=1, ArrayIndicesType=kind, **fields))
        vectors = [self.ints(order), self.ints(blocks), self.vector(made)]
        return self.table("SparsityParameters", TraversalOrder=vectors[0], BlockMap=vectors[1], DimMetadata=vectors[2])

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: str,
        fields: dict[str, Any],
        custom: bytes,
    ) -> int:
        if name not in self.codes:
            self.codes.append(name)
        known: dict[str, Any] = {"Inputs": self.ints(inputs), "Outputs": self.ints(outputs)}
        if "intermediates" in fields:
            known["Intermediates"] = self.ints(fields["intermediates"])
            fields = {key: value for key, value in fields.items() if key != "intermediates"}
        if custom:
            known["CustomOptions"] = self.b.CreateByteVector(custom)
        if options:
            vectors = {key: self.ints(value) for key, value in fields.items() if isinstance(value, list | tuple)}
            arrays = {key: value for key, value in fields.items() if isinstance(value, np.ndarray)}
            vectors |= {key: self.b.CreateNumpyVector(value) for key, value in arrays.items()}
            vectors |= {key: self.b.CreateString(value) for key, value in fields.items() if isinstance(value, str)}
            table = self.table(options, **{**fields, **vectors})
            second = hasattr(tflite.BuiltinOptions2, options)
            union = "BuiltinOptions2" if second else "BuiltinOptions"
            known |= {f"{union}Type": getattr(getattr(tflite, union), options), union: table}
        return self.table("Operator", OpcodeIndex=self.codes.index(name), **known)

    def code(self, name: str) -> int:
        number = getattr(tflite.BuiltinOperator, name, tflite.BuiltinOperator.CUSTOM)
        custom = {} if hasattr(tflite.BuiltinOperator, name) else {"CustomCode": self.b.CreateString(name)}
        version = {"BROADCAST_TO": 2}.get(name, 1)
        return self.table(
            "OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=version, **custom
        )

    def signature(self, key: str, subgraph: int, inputs: dict[str, int], outputs: dict[str, int]) -> int:
        def names(known: dict[str, int]) -> int:
            texts = [(self.b.CreateString(name), number) for name, number in known.items()]
            return self.vector([self.table("TensorMap", Name=text, TensorIndex=n) for text, n in texts])

        ins, outs, text = names(inputs), names(outputs), self.b.CreateString(key)
        return self.table("SignatureDef", Inputs=ins, Outputs=outs, SignatureKey=text, SubgraphIndex=subgraph)

    def buffer(self, data: bytes | None) -> int:
        if not data:
            return self.table("Buffer")
        if self.place:
            place, size = self.place, len(data)
            self.behind.append(data + bytes(-size % 16))
            self.place += len(self.behind[-1])
            return self.table("Buffer", Offset=place, Size=size)
        self.b.StartVector(1, len(data), 16)
        self.b.head = self.b.Head() - len(data)
        self.b.Bytes[self.b.Head() : self.b.Head() + len(data)] = data
        return self.table("Buffer", Data=self.b.EndVector())

    def table(self, kind: str, **fields: Any) -> int:
        module = import_module(f"tflite.{kind}")
        module.Start(self.b)
        for name, value in fields.items():
            getattr(module, f"Add{name}")(self.b, value)
        return int(module.End(self.b))

    def ints(self, numbers: Sequence[int]) -> int:
        return int(self.b.CreateNumpyVector(np.asarray(numbers, np.int32)))

    def vector(self, tables: Sequence[int]) -> int:
        self.b.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            self.b.PrependUOffsetTRelative(table)
        return int(self.b.EndVector())


def _packed(data: np.ndarray, type: str) -> bytes:
    if type != "INT4":
        return np.ascontiguousarray(data).tobytes()
    nibbles = np.append(data.reshape(-1), 0).astype(np.uint8) & 15
    count = (data.size + 1) // 2 * 2
    return bytes((nibbles[:count:2] | (nibbles[1 : count + 1 : 2] << 4)).astype(np.uint8))
