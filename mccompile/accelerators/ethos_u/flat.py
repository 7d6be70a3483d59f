"""TFLite files, written with flatbuffers and the schema that comes with Vela."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

_TYPES = {"int8": 9, "uint8": 3, "int32": 2}
_SCHEMA = "ethosu.vela.tflite"


class Network:
    """One subgraph: tensors and operators by number."""

    def __init__(self) -> None:
        import flatbuffers

        self.b = flatbuffers.Builder(1024)
        self.buffers = [self._table("Buffer")]
        self.tensors: list[int] = []
        self.operators: list[int] = []
        self.codes: list[int] = []

    def tensor(self, shape: Sequence[int], scale: Any, zero: Any, data: np.ndarray | None = None, axis: int = 0) -> int:
        """Without `data` its zero point has its type. `axis`: along which each element has a scale of its own."""
        dtype, number = (zero if data is None else data).dtype.name, 0
        if data is not None:
            number = len(self.buffers)
            contents = self.b.CreateByteVector(np.ascontiguousarray(data).tobytes())
            self.buffers.append(self._table("Buffer", Data=contents))
        scales = np.atleast_1d(np.asarray(scale, np.float32)).ravel()
        zeros = np.ascontiguousarray(np.broadcast_to(np.asarray(zero, np.int64), scales.shape))
        vectors = self.b.CreateNumpyVector(scales), self.b.CreateNumpyVector(zeros)
        quantized = self._table(
            "QuantizationParameters", Scale=vectors[0], ZeroPoint=vectors[1], QuantizedDimension=axis
        )
        name, sizes = self.b.CreateString(f"t{len(self.tensors)}"), self._ints(shape)
        self.tensors.append(
            self._table("Tensor", Shape=sizes, Type=_TYPES[dtype], Buffer=number, Name=name, Quantization=quantized)
        )
        return len(self.tensors) - 1

    def ints(self, values: Any) -> int:
        """A constant of sizes, axes and the like."""
        data = np.array(values, np.int32)
        return self.tensor(data.shape, 1, 0, data)

    def operator(
        self, name: str, inputs: Sequence[int], made: int | Sequence[int], options: str = "", **fields: Any
    ) -> None:
        code = getattr(import_module(f"{_SCHEMA}.BuiltinOperator").BuiltinOperator, name)
        if code not in self.codes:
            self.codes.append(code)
        outputs = [made] if isinstance(made, int) else made
        known = {"Inputs": self._ints(inputs), "Outputs": self._ints(outputs)}
        if options:
            kind = getattr(import_module(f"{_SCHEMA}.BuiltinOptions").BuiltinOptions, options)
            known |= {"BuiltinOptionsType": kind, "BuiltinOptions": self._table(options, **fields)}
        self.operators.append(self._table("Operator", OpcodeIndex=self.codes.index(code), **known))

    def file(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        vectors = [self._vector(self.tensors), self._ints(inputs), self._ints(outputs), self._vector(self.operators)]
        name = self.b.CreateString("region")
        parts = dict(zip(("Tensors", "Inputs", "Outputs", "Operators"), vectors, strict=True))
        graph = self._vector([self._table("SubGraph", Name=name, **parts)])
        codes = [
            self._table("OperatorCode", DeprecatedBuiltinCode=min(code, 127), BuiltinCode=code, Version=1)
            for code in self.codes
        ]
        known = {"OperatorCodes": self._vector(codes), "Subgraphs": graph, "Buffers": self._vector(self.buffers)}
        self.b.Finish(self._table("Model", Version=3, **known), b"TFL3")
        return bytes(self.b.Output())

    def _table(self, kind: str, **fields: Any) -> int:
        module = import_module(f"{_SCHEMA}.{kind}")
        getattr(module, f"{kind}Start")(self.b)
        for name, value in fields.items():
            getattr(module, f"{kind}Add{name}")(self.b, value)
        return int(getattr(module, f"{kind}End")(self.b))

    def _ints(self, values: Sequence[int]) -> int:
        return int(self.b.CreateNumpyVector(np.asarray(values, np.int32)))

    def _vector(self, offsets: Sequence[int]) -> int:
        self.b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.b.PrependUOffsetTRelative(offset)
        return int(self.b.EndVector())
