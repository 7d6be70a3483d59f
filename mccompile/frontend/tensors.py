"""Tensors of an ONNX file as constants: lazy, memory-mapped where they lie in a file of their own.

Invariant: what is not a whole tensor is refused here, before anybody reads it: sizes are compared with shapes, and
external data is never taken from outside the model's folder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from onnx import AttributeProto, SparseTensorProto, TensorProto, TypeProto, numpy_helper

from ..base.budgets import budgets
from ..base.constant import Constant
from ..base.dtypes import DType, of_onnx
from ..base.tensor import TensorType
from ..graph.ir import Invalid, Unsupported

MOST_AXES = 32  # of a constant; numpy's first versions have no more
LARGE = 1 << 16  # bytes of a tensor

# which repeated field holds the elements of a type, where they are not raw bytes; all others are in int32_data
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.COMPLEX64: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.COMPLEX128: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.STRING: "string_data",
}


def tensor_constant(tensor: TensorProto, folder: Path | None) -> Constant:
    """A tensor of the file; `folder` is where the model lies. Raises Invalid."""
    dtype = element_type(tensor.data_type)
    type = TensorType(dtype, _shape(tensor.dims))
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, type, folder)
    _check_size(tensor, type)
    if len(tensor.raw_data) >= LARGE and not dtype.is_packed:
        array = numpy_helper.to_array(tensor)  # now, so that the file's message does not stay in memory beside it
        return Constant(type, lambda: array)
    return Constant(type, lambda: numpy_helper.to_array(tensor))


def dense_constant_of(sparse: SparseTensorProto, folder: Path | None) -> Constant:
    """A sparse tensor, made dense."""
    values, indices = tensor_constant(sparse.values, folder), tensor_constant(sparse.indices, folder)
    type = TensorType(values.type.dtype, _shape(sparse.dims))
    if not indices.type.dtype.is_integer:
        raise Invalid(f"its indices are {indices.type}, not integers")
    if type.max_bytes > budgets().dense:
        why = f"as a dense {type} it takes {type.max_bytes} bytes, {budgets().dense} are the most"
        raise Unsupported(why, "make it smaller, or an input of the model")
    index = indices.array
    if index.ndim == 1:
        count = math.prod(type.static_shape)
        if not type.rank:
            raise Invalid("it is sparse, but has no axes")
        if index.size and (index.min() < 0 or index.max() >= count):
            raise Invalid(f"an index lies outside of {type}")
        index = np.stack(np.unravel_index(index, type.static_shape), axis=1) if index.size else index.reshape(0, 1)
    if values.array.ndim != 1 or index.shape != (len(values.array), type.rank):
        if len(values.array):
            raise Invalid(f"its {len(values.array)} values and indices {indices.type} do not fit a shape of {type}")
        index = index.reshape(0, type.rank)
    if index.size and ((index < 0) | (index >= np.asarray(type.static_shape))).any():
        raise Invalid(f"an index lies outside of {type}")
    dense = np.zeros(type.static_shape, type.dtype.numpy)
    dense[tuple(index.T)] = values.array
    return Constant.of(dense)


def _shape(dims: Iterable[int]) -> tuple[int, ...]:
    shape = tuple(dims)
    if any(dim < 0 for dim in shape):
        raise Invalid(f"its shape {shape} has a negative dimension")
    if len(shape) > MOST_AXES:
        raise Unsupported(f"it has {len(shape)} axes, {MOST_AXES} are the most", "reshape it")
    return shape


def attribute_value(attribute: AttributeProto, folder: Path | None) -> Any:
    """What an attribute of a node is, unless it is a graph."""
    match attribute.type:
        case AttributeProto.TENSOR:
            return tensor_constant(attribute.t, folder)
        case AttributeProto.TENSORS:
            return tuple(tensor_constant(t, folder) for t in attribute.tensors)
        case AttributeProto.SPARSE_TENSOR:
            return dense_constant_of(attribute.sparse_tensor, folder)
        case AttributeProto.STRING:
            return attribute.s.decode("utf-8", "surrogateescape")
        case AttributeProto.STRINGS:
            return tuple(s.decode("utf-8", "surrogateescape") for s in attribute.strings)
        case AttributeProto.INT:
            return attribute.i
        case AttributeProto.INTS:
            return tuple(attribute.ints)
        case AttributeProto.FLOAT:
            return attribute.f
        case AttributeProto.FLOATS:
            return tuple(attribute.floats)
        case AttributeProto.TYPE_PROTO:
            return attribute.tp
    kind = AttributeProto.AttributeType.Name(attribute.type)
    raise Unsupported(f"attribute {attribute.name!r} is of type {kind}")


def element_type(number: int) -> DType:
    dtype = of_onnx(number)
    if dtype is None:
        raise Invalid(f"element type {number} is not one that ONNX has")
    return dtype


def declared(type: TypeProto) -> tuple[DType, tuple[int | str | None, ...] | None]:
    """Element type and shape (None: not given) of a declared value; a dimension is a number, a name, or None."""
    dtype = element_type(type.tensor_type.elem_type)
    if not type.tensor_type.HasField("shape"):
        return dtype, None
    shape: list[int | str | None] = []
    for dim in type.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            shape.append(dim.dim_value)
        else:
            shape.append(dim.dim_param or None)
    return dtype, tuple(shape)


def _check_size(tensor: TensorProto, type: TensorType) -> None:
    count = math.prod(type.static_shape)
    if tensor.HasField("raw_data"):
        if type.dtype.kind == "string":
            raise Invalid("strings cannot be given as raw data")
        if len(tensor.raw_data) != type.dtype.nbytes(count):
            have, want = len(tensor.raw_data), type.dtype.nbytes(count)
            raise Invalid(f"it holds {have} bytes, but {type} takes {want}")
        return
    field = _FIELDS.get(tensor.data_type, "int32_data")
    want = (count * type.dtype.bits + 7) // 8 if type.dtype.is_packed else count
    if type.dtype.kind == "complex":
        want *= 2
    have = len(getattr(tensor, field))
    if have != want:
        raise Invalid(f"it holds {have} elements in {field}, but {type} takes {want}")


def _external(tensor: TensorProto, type: TensorType, folder: Path | None) -> Constant:
    if folder is None:
        raise Invalid("its data lies in another file, but the model was not loaded from a folder")
    if type.dtype.kind == "string":
        raise Invalid("strings cannot lie in another file")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(entries.get("location", ""), folder)
    offset = _number(entries, "offset", 0)
    size = type.dtype.nbytes(math.prod(type.static_shape))
    if _number(entries, "length", size) != size:
        raise Invalid(f"it says its data is {entries['length']} bytes long, but {type} takes {size}")
    held = path.stat().st_size
    if offset + size > held:
        raise Invalid(
            f"{entries['location']} has {held} bytes, the tensor takes those from {offset} to {offset + size}",
            "copy the file again; it is probably truncated",
        )
    if not type.dtype.is_packed:
        return Constant.mapped(type, path, offset)

    def load() -> np.ndarray:
        with path.open("rb") as file:
            file.seek(offset)
            packed = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=file.read(size))
        return numpy_helper.to_array(packed)

    return Constant(type, load)


def _inside(location: str, folder: Path) -> Path:
    """The file, if it lies in the model's folder; links are followed before that is decided."""
    if not location:
        raise Invalid("its data lies in another file whose name is missing")
    why = f"its data lies in {location!r}, which points outside the model's folder"
    fix = "keep the data beside the model and name it by a relative path"
    pure, windows = PurePosixPath(location), PureWindowsPath(location)
    if pure.is_absolute() or windows.drive or windows.root or ".." in windows.parts:
        raise Invalid(why, fix)
    try:
        path = (folder / location).resolve()
        is_file = path.is_file()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Invalid(f"its data lies in a file that cannot be: {why}", "name the file by a relative path") from None
    if not path.is_relative_to(folder.resolve()):
        raise Invalid(why, fix)
    if not is_file:
        raise Invalid(f"its data lies in {location!r}, which does not exist", "copy that file beside the model")
    return path


def _number(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if text and not re.fullmatch("[0-9]{1,19}", text):
        raise Invalid(f"its external {key} {text[:40]!r} is not a number")
    return int(text) if text else default
