"""The type of a tensor: an element type and a shape; written `f32[1,3,8*time,16]`."""

from __future__ import annotations

from collections.abc import Mapping

from . import dims
from .dims import Dim
from .dtypes import DTYPES, DType
from .records import cached_property, dataclass

Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class TensorType:
    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(str(dim) for dim in self.shape)}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def is_static(self) -> bool:
        return all(isinstance(dim, int) for dim in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        return tuple(dims.static(dim) for dim in self.shape)

    @cached_property
    def count(self) -> Dim:
        """Number of elements."""
        return dims.product(self.shape)

    @property
    def max_bytes(self) -> int:
        """Bytes at the upper bounds of all symbols."""
        return self.dtype.nbytes(dims.upper(self.count))

    @staticmethod
    def parse(text: str, table: Mapping[str, Dim]) -> TensorType:
        name, rest = text.strip().split("[", 1)
        inside = rest.rstrip().removesuffix("]")
        return TensorType(DTYPES[name], tuple(dims.parse(part, table) for part in _split(inside)))


def _split(text: str) -> list[str]:
    """Splits at the commas outside parentheses."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [*parts, current] if current.strip() else parts


def dense_strides(shape: Shape) -> Shape:
    """Row-major strides in elements."""
    strides: list[Dim] = []
    step: Dim = 1
    for dim in reversed(shape):
        strides.append(step)
        step = step * dim
    return tuple(reversed(strides))


def broadcast(*shapes: Shape, assume: bool = False) -> Shape:
    """The shape all of these broadcast to, as numpy and ONNX define it; raises ValueError where there is none.

    With `assume` two sizes that are known only at run time count as equal where they may be: what is computed with that
    shape has to check it (`Lowering.aligned`)."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        dim: Dim = 1
        for shape in shapes:
            position = axis - rank + len(shape)
            other = shape[position] if position >= 0 else 1
            if other == 1 or other == dim:
                continue
            if dim != 1:
                if not assume or isinstance(dim, int) or isinstance(other, int) or not may_be_equal(dim, other):
                    raise ValueError(f"shapes {', '.join(map(show_shape, shapes))} do not broadcast")
                other = min(dim, other, key=dims.upper)
            dim = other
        result.append(dim)
    return tuple(result)


def may_be_equal(a: Dim, b: Dim) -> bool:
    low, high = dims.bounds(a - b)
    return low <= 0 <= high


def agree(a: Shape, b: Shape) -> bool:
    """Are the shapes equal, or may they be at run time? Whoever goes by that checks it (`Lowering.seen_as`)."""
    return len(a) == len(b) and all(
        x == y or (not (isinstance(x, int) or isinstance(y, int)) and may_be_equal(x, y))
        for x, y in zip(a, b, strict=True)
    )


def show_shape(shape: Shape) -> str:
    return "x".join(str(dim) for dim in shape) or "scalar"
