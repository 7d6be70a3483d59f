"""Operators of ai.onnx.ml that prepare features: Scaler, Normalizer, Binarizer, Imputer, FeatureVectorizer,
ArrayFeatureExtractor, OneHotEncoder, LabelEncoder, CategoryMapper; and ZipMap, which only gives names to columns.

What was learnt (scales, offsets, categories) becomes constant operands when a node is read.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..base.dtypes import DTYPES, DType, f32, i32, i64, string
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import apply, cast, literal, operand
from ..kinds.arg_reduce import ArgReduce
from ..kinds.concat import Concat
from ..kinds.gather import Gather
from .activation import where
from .api import Constant, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, same_type
from .reduce import reduce_call

ML = "ai.onnx.ml"


class Prepared(Operator, abstract=True):
    """An operator whose attributes became operands; it cannot be written back."""

    no_gradient = "preparing data and classical models are not learned through"
    domain = ML
    writable: ClassVar[bool] = False


def _last(node: OnnxNode) -> Any:
    x = node.inputs[0].type if node.inputs and node.inputs[0] else None
    if x is None or not x.rank:
        raise Invalid(f"x is {x}, without features")
    return x.shape[-1]


@dataclass(frozen=True)
class Scaler(Prepared):
    """(x - offset) * scale."""

    versions = (1,)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        offset, scale = (np.array(node.attributes.pop(name, ()), np.float32) for name in ("offset", "scale"))
        if offset.size not in (1, _last(node)) or scale.size not in (1, _last(node)):
            raise Invalid(f"{offset.size} offsets and {scale.size} scales do not fit {_last(node)} features")
        node.set_input(1, node.constant(offset))
        node.set_input(2, node.constant(scale))
        return cls()

    def infer(self, site: Site) -> list[Fact]:
        return same_type(site, f32)

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        shifted = apply("sub", cast(operand(0, x.buffer.dtype), f32), operand(1, f32))
        to.set(0, to.map(apply("mul", shifted, operand(2, f32)), to.inputs(), x.shape))


@dataclass(frozen=True)
class Normalizer(Prepared):
    """Every row over its largest element, its sum or its length; rows whose divisor is 0 stay."""

    versions = (1,)
    norm: str = "MAX"

    def infer(self, site: Site) -> list[Fact]:
        if self.norm not in ("MAX", "L1", "L2") or site.type(0).rank not in (1, 2):
            raise Invalid(f"norm {self.norm!r} of x {site.type(0)}")
        return same_type(site, f32)

    def lower(self, to: Lowering) -> None:
        x = to.cast(to.input(0), f32)
        element = total = operand(0, f32)
        match self.norm:
            case "MAX":
                combine, of = "max", element
            case "L1":
                combine, of = "add", apply("abs", element)
            case _:
                combine, of, total = "add", apply("mul", element, element), apply("sqrt", total)
        # 1 in place of 0 without a branch, one way of which no input takes behind a Softmax. C compilers branch where a
        # comparison itself becomes a float.
        differs = cast(apply("not", apply("equal", total, literal(0, f32))), i32)
        divisor = apply("add", total, cast(apply("sub", literal(1, i32), differs), f32))
        size = reduce_call(to, (len(x.shape) - 1,), combine, of, [x], divisor)
        to.set(0, to.map(apply("div", element, operand(1, f32)), [x, size], x.shape))


@dataclass(frozen=True)
class Binarizer(Prepared):
    versions = (1,)
    threshold: float = 0.0

    def infer(self, site: Site) -> list[Fact]:
        return same_type(site)

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        dtype = x.buffer.dtype
        wide = dtype if dtype.is_float else DTYPES["f64"]
        above = apply("greater", cast(operand(0, dtype), wide), literal(self.threshold, wide))
        to.set(0, to.map(cast(above, dtype), [x]))


@dataclass(frozen=True)
class Imputer(Prepared):
    """Elements that equal one value (or are NaN, if it is) are replaced. Operands: x, the replacements."""

    versions = (1,)
    replaced: int | float = 0

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        x = node.inputs[0].type if node.inputs and node.inputs[0] else None
        suffix = "float" if x is not None and x.dtype.is_float else "int64"
        replaced = node.attributes.get(f"replaced_value_{suffix}", 0.0 if suffix == "float" else 0)
        values = np.array(node.attributes.get(f"imputed_value_{suffix}s", ()))
        if x is None or values.size not in (1, _last(node)):
            raise Invalid(f"there are {values.size} values to put into {_last(node)} features")
        node.set_input(1, node.constant(values.astype(x.dtype.numpy)))
        return cls(replaced)

    def infer(self, site: Site) -> list[Fact]:
        return same_type(site)

    def lower(self, to: Lowering) -> None:
        x = operand(0, to.input(0).buffer.dtype)
        if isinstance(self.replaced, float) and math.isnan(self.replaced):
            missing = apply("is_nan", x)
        else:
            missing = apply("equal", x, literal(self.replaced, x.dtype))
        to.set(0, to.map(where(missing, operand(1, x.dtype), x), to.inputs(), to.input(0).shape))


@dataclass(frozen=True)
class FeatureVectorizer(Prepared):
    """Rows of several tensors one after the other; each is cut, or filled up with zeros, to as many features as are
    asked for."""

    versions = (1,)
    inputdimensions: tuple[int, ...] = ()

    def widths(self, site: Site) -> list[Any]:
        shapes = [site.shape(number) for number in range(len(site.facts))]
        if any(len(shape) not in (1, 2) for shape in shapes) or len(self.inputdimensions) not in (0, len(shapes)):
            raise Invalid(f"inputdimensions {self.inputdimensions} for {len(shapes)} operands")
        return list(self.inputdimensions) or [shape[-1] for shape in shapes]

    def infer(self, site: Site) -> list[Fact]:
        rows = {self.rows(site.shape(number)) for number in range(len(site.facts))}
        if len(rows) != 1:
            raise Invalid("the operands differ in their number of rows")
        total: Any = 0
        for width in self.widths(site):
            total = total + width
        return [Fact(TensorType(f32, (rows.pop(), total)))]

    def rows(self, shape: tuple[Any, ...]) -> Any:
        return shape[0] if len(shape) == 2 else 1

    def lower(self, to: Lowering) -> None:
        parts = []
        for view, width in zip(to.inputs(), self.widths(to.site), strict=True):
            rows, have = self.rows(view.shape), view.shape[-1]
            part = to.cast(to.reshape(view, (rows, have)), f32)
            if isinstance(have, int) and have > width:
                part = part.sliced(1, 0, width)
            parts.append(part)
            if isinstance(have, int) and have < width:
                parts.append(to.map(literal(0, f32), [], (rows, width - have)))
        to.set(0, parts[0] if len(parts) == 1 else to.call(Concat(1), parts, to.type())[0])


@dataclass(frozen=True)
class ArrayFeatureExtractor(Prepared):
    """Elements of the last axis by position; a vector counts as one row."""

    versions = (1,)

    def infer(self, site: Site) -> list[Fact]:
        x, places = site.type(0), site.type(1)
        if not x.rank or places.dtype is not i64:
            raise Invalid(f"x is {x}, its places are {places}")
        return [Fact(TensorType(x.dtype, (*(x.shape[:-1] or (1,)), places.count)))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        if len(x.shape) == 1:
            x = to.reshape(x, (1, *x.shape))
        places = to.reshape(to.input(1), (to.input(1).type.count,)).broadcast_to(type.shape)
        axes = (*range(len(x.shape) - 1), -1)
        to.set(0, to.call(Gather(axes), [x, places], type)[0])


@dataclass(frozen=True)
class OneHotEncoder(Prepared):
    """A column for every category; a value that is not one of them gives zeros, or could not be compiled."""

    versions = (1,)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if not node.attributes.get("zeros", 1):
            raise Unsupported("a value of no category shall be an error (zeros is 0)", "set zeros to 1")
        x = node.inputs[0].type.dtype if node.inputs and node.inputs[0] else None
        texts, numbers = node.attributes.get("cats_strings", ()), node.attributes.get("cats_int64s", ())
        if x is None or bool(texts) is not (x is string) or bool(numbers) is bool(texts):
            raise Invalid(f"{len(texts)} categories that are strings and {len(numbers)} that are numbers for {x}")
        node.set_input(1, node.constant(np.array(texts, object) if texts else np.array(numbers, np.int64)))
        return cls()

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(f32, (*site.shape(0), *site.shape(1))))]

    def lower(self, to: Lowering) -> None:
        x = to.reshape(to.input(0), (*to.input(0).shape, 1))
        dtype = to.input(1).buffer.dtype
        same = apply("equal", cast(operand(0, x.buffer.dtype), dtype), operand(1, dtype))
        to.set(0, to.map(cast(same, f32), [x, to.input(1)], to.type().shape))


@dataclass(frozen=True)
class LabelEncoder(Prepared):
    """A value for every key, and another one for all else. Operands: x, keys, values (the last one for all else)."""

    versions = (1, 2, 4)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        attributes = node.attributes
        if node.version == 1:
            classes = attributes.pop("classes_strings", ())
            return both_ways(node, tuple(range(len(classes))), classes)
        x = node.inputs[0].type if node.inputs and node.inputs[0] else None
        keys, values = (_table(attributes, name) for name in ("keys", "values"))
        if x is None or keys.dtype != x.dtype.numpy or keys.shape != values.shape:
            raise Invalid(f"x is {x}, there are {keys.size} keys of {keys.dtype} and {values.size} values")
        default = attributes.get("default_tensor")
        if isinstance(default, Constant):
            last = default.array.reshape(-1)[:1]
        elif values.dtype == np.float32:
            last = np.array([attributes.get("default_float", -0.0)], np.float32)
        elif values.dtype == object:
            last = np.array([attributes.get("default_string", "_Unused")], object)
        else:
            last = np.array([attributes.get("default_int64", -1)], values.dtype)
        return cls.of(node, keys, values, last)

    @classmethod
    def of(cls, node: OnnxNode, keys: np.ndarray, values: np.ndarray, last: np.ndarray) -> LabelEncoder:
        node.set_input(1, node.constant(keys))
        node.set_input(2, node.constant(np.concatenate([values, last.astype(values.dtype)])))
        return cls()

    def infer(self, site: Site) -> list[Fact]:
        return same_type(site, site.type(2).dtype)

    def lower(self, to: Lowering) -> None:
        x, keys, values, type = to.input(0), to.input(1), to.input(2), to.type()
        count = keys.shape[0]
        column = to.reshape(x, (x.type.count, 1))
        same = _same(x.buffer.dtype)
        # a column for each key and one that always fits: the first that does is the answer
        hits = to.map(cast(same, i32), [column, keys], (x.type.count, count))
        always = to.map(literal(1, i32), [], (x.type.count, 1))
        all_hits = to.call(Concat(1), [hits, always], TensorType(i32, (x.type.count, count + 1)))[0]
        place = to.call(ArgReduce(1, True), [all_hits], TensorType(i64, (x.type.count, 1)))[0]
        found = to.call(Gather((-1,), in_range=True), [values, place], TensorType(type.dtype, place.shape))[0]
        to.set(0, to.reshape(found, type.shape))


@dataclass(frozen=True)
class CategoryMapper(Prepared):
    """A number for every string, or the other way round; it becomes a LabelEncoder."""

    versions = (1,)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return both_ways(node, node.attributes.get("cats_int64s", ()), node.attributes.get("cats_strings", ()))


def both_ways(node: OnnxNode, numbers: tuple[int, ...], texts: tuple[str, ...]) -> LabelEncoder:
    """From strings to numbers or back, as the operand has it."""
    x = node.inputs[0].type.dtype if node.inputs and node.inputs[0] else None
    if len(numbers) != len(texts) or x not in (string, i64):
        raise Invalid(f"{len(numbers)} numbers and {len(texts)} strings for elements of {x}")
    sides = np.array(texts, object), np.array(numbers, np.int64)
    if x is string:
        return LabelEncoder.of(node, *sides, np.array([node.attributes.get("default_int64", -1)]))
    return LabelEncoder.of(node, *sides[::-1], np.array([node.attributes.get("default_string", "_Unused")], object))


def _same(dtype: DType) -> Any:
    a, b = operand(0, dtype), operand(1, dtype)
    if not dtype.is_float:
        return apply("equal", a, b)
    return apply("or", apply("equal", a, b), apply("and", apply("is_nan", a), apply("is_nan", b)))


def _table(attributes: dict[str, Any], name: str) -> np.ndarray:
    """The keys or the values."""
    tensor = attributes.get(f"{name}_tensor")
    if isinstance(tensor, Constant):
        return tensor.array.reshape(-1).astype(tensor.type.dtype.numpy)
    if attributes.get(f"{name}_strings"):
        return np.array(attributes[f"{name}_strings"], object)
    if attributes.get(f"{name}_floats"):
        return np.array(attributes[f"{name}_floats"], np.float32)
    return np.array(attributes.get(f"{name}_int64s", ()), np.int64)


@dataclass(frozen=True)
class ZipMap(Prepared):
    """Gives names to the columns of scores. A compiled model gives the scores themselves, in the order of the
    labels."""

    versions = (1,)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return cls()

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(site.type(0))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0))
