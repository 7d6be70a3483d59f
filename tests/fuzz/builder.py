"""Grows a random graph node by node. Each value has the arrays that it is at every size the graph will be run at, found
by evaluating the node alone; a node that cannot be evaluated, or makes what is no use to others, is not taken.

Invariant: what a value is, is never taken from mccompile.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from .evaluate import Failed, evaluate

LARGEST = 1500  # elements of a value
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 12, 13, 16, 17, 20, 33)
SMALL = (1, 2, 3, 4, 5)
EIGHTHS = 8  # exact floats are multiples of an eighth: sums and products of a few have no rounding
EXACT_BITS = {"float32": 19, "float64": 40, "float16": 8, "bfloat16": 5}
FLOATS = ("float32", "float32", "float32", "float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "int32", "int64", "int64", "uint32", "uint64")
Dim = int | str


@dataclass(frozen=True)
class Input:
    """An input of the graph, and what it may be given. `kind`: exact, normal, positive, unit, integer, bool, text or
    given (one array, always the same)."""

    name: str
    dtype: np.dtype[Any]
    dims: tuple[Dim, ...]
    kind: str
    low: int = 0
    high: int = -1
    arrays: tuple[np.ndarray, ...] = field(default=(), compare=False)

    def draw(self, chance: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
        return np.asarray(self._drawn(chance, sizes))

    def _drawn(self, chance: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
        shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.dims)
        if self.kind == "given":
            return self.arrays[0]
        if self.kind == "text":
            words = np.array(["", "a", "mcc", "Hello", "the", "1.5", "a b", "Größe"], dtype=object)
            return words[chance.integers(0, len(words), shape)].reshape(shape)
        if self.kind == "bool":
            return chance.integers(0, 2, shape).astype(bool)
        if self.kind == "integer":
            return chance.integers(self.low, self.high + 1, shape).astype(self.dtype)
        if self.kind == "exact":
            return (chance.integers(-4 * EIGHTHS, 4 * EIGHTHS + 1, shape) / EIGHTHS).astype(self.dtype)
        if self.kind == "positive":
            return chance.uniform(0.1, 3, shape).astype(self.dtype)
        if self.kind == "unit":
            return chance.uniform(-0.95, 0.95, shape).astype(self.dtype)
        return chance.standard_normal(shape).astype(self.dtype)

    def info(self) -> ValueInfoProto:
        return helper.make_tensor_value_info(self.name, helper.np_dtype_to_tensor_dtype(self.dtype), self.dims)


@dataclass(eq=False)
class Value:
    name: str
    arrays: tuple[np.ndarray, ...]  # one per size
    exact: bool  # no rounding on the way: any right implementation gives these very bits
    constant: bool = False
    last: bool = False  # for outputs only: its shape follows from data

    @property
    def dtype(self) -> str:
        return str(self.arrays[0].dtype.name)

    @property
    def rank(self) -> int:
        return int(self.arrays[0].ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """At the largest size."""
        return tuple(self.arrays[-1].shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def is_fixed(self, axis: int) -> bool:
        return len({array.shape[axis] for array in self.arrays}) == 1

    @property
    def is_static(self) -> bool:
        return all(self.is_fixed(axis) for axis in range(self.rank))

    @property
    def is_float(self) -> bool:
        return self.dtype in EXACT_BITS

    @property
    def is_integer(self) -> bool:
        return self.arrays[0].dtype.kind in "iu"


class Nothing(Exception):
    """There is nothing to choose from: the maker gives up."""


class Builder:
    def __init__(
        self, chance: np.random.Generator, opset: int, free: Mapping[str, Sequence[int]], tall: bool = False
    ) -> None:
        self.chance, self.opset, self.free, self.tall = chance, opset, dict(free), tall
        self.from_one = [name for name, sizes in free.items() if sizes[0]]  # those that are never 0
        self.sets = max((len(sizes) for sizes in free.values()), default=1)
        self.values: list[Value] = []
        self.inputs: list[Input] = []
        self.constants: dict[str, np.ndarray] = {}
        self.nodes: list[NodeProto] = []
        self.bounds: dict[str, tuple[int, ...]] = {}
        self.bounds_of_bodies: dict[str, Mapping[str, tuple[int, ...]]] = {}  # by the name of a graph in a node to be
        self.state: dict[str, str] = {}
        self.numbers = itertools.count()
        self.inexact = bool(chance.random() < 0.35)  # floats as they come instead of multiples of an eighth

    # -- chance

    def maybe(self, share: float = 0.5) -> bool:
        return bool(self.chance.random() < share)

    def integer(self, low: int, high: int) -> int:
        return int(self.chance.integers(low, high + 1))

    def pick(self, items: Sequence[Any]) -> Any:
        if len(items) == 0:
            raise Nothing
        return items[int(self.chance.integers(0, len(items)))]

    def some(self, items: Sequence[Any], fewest: int = 1) -> list[Any]:
        count = self.integer(fewest, len(items)) if len(items) >= fewest else len(items)
        return [items[n] for n in sorted(self.chance.permutation(len(items))[:count].tolist())]

    def name(self, stem: str = "v") -> str:
        return f"{stem}{next(self.numbers)}"

    # -- leaves

    def dims(self, rank: int, largest: int = LARGEST, sizes: Sequence[int] = SIZES) -> tuple[Dim, ...]:
        """Sizes of a new tensor; some are free, rarely one is 0."""
        found: list[Dim] = []
        for axis in range(rank):
            room = largest // max(prod(self.sizes_of(dim)[-1] for dim in found), 1)
            if self.from_one and self.maybe(0.45 if axis == 0 else 0.2):
                found.append(self.pick(self.from_one))
            else:
                found.append(self.pick([n for n in sizes if n <= max(room, 1)] or [1]))
        if rank and self.maybe(0.012):
            found[self.integer(0, rank - 1)] = 0
        return tuple(found)

    def sizes_of(self, dim: Dim) -> tuple[int, ...]:
        return tuple(self.free[dim]) if isinstance(dim, str) else (dim,) * self.sets

    def shapes(self, dims: Sequence[Dim]) -> list[tuple[int, ...]]:
        return [tuple(self.sizes_of(dim)[number] for dim in dims) for number in range(self.sets)]

    def input(self, dtype: str, dims: Sequence[Dim], kind: str = "", low: int = 0, high: int = -1) -> Value:
        kind = kind or self.kind_of(dtype)
        if kind == "integer" and high < low:
            low, high = self.range_of(dtype)
        made = Input(self.name("x"), _numpy(dtype), tuple(dims), kind, low, high)
        chance = np.random.default_rng(self.integer(0, 1 << 30))
        arrays = [
            made.draw(chance, {name: sizes[number] for name, sizes in self.free.items()}) for number in range(self.sets)
        ]
        self.inputs.append(made)
        return self.add(Value(made.name, tuple(arrays), kind not in ("normal", "positive", "unit")))

    def kind_of(self, dtype: str) -> str:
        if dtype in EXACT_BITS:
            return "normal" if self.inexact else "exact"
        return {"bool": "bool", "object": "text"}.get(dtype, "integer")

    def range_of(self, dtype: str) -> tuple[int, int]:
        if dtype in ("int8", "uint8"):
            info = np.iinfo(dtype)
            return int(info.min), int(info.max)
        return (0 if dtype.startswith("u") else -20), 20

    def constant(self, array: Any, dtype: str = "int64") -> Value:
        known = isinstance(array, np.ndarray | np.generic)
        found = np.asarray(array) if known else np.array(array, _numpy(dtype))
        name = self.name("c")
        self.constants[name] = found
        return Value(name, (found,) * self.sets, not self.inexact or found.dtype.kind in "iub", True)

    def drawn(self, dtype: str, shape: Sequence[int], kind: str = "", low: int = 0, high: int = -1) -> Value:
        """A constant of random elements."""
        kind = kind or self.kind_of(dtype)
        if kind == "integer" and high < low:
            low, high = self.range_of(dtype)
        leaf = Input("", _numpy(dtype), tuple(shape), kind, low, high)
        made = self.constant(leaf.draw(np.random.default_rng(self.integer(0, 1 << 30)), {}))
        made.exact = kind not in ("normal", "positive", "unit")
        return made

    def weights(self, dtype: str, shape: Sequence[int], zero: int = 0) -> Value:
        """A constant; some take few values; in some, all that belongs to a channel that is made, or that is read,
        stands for 0."""
        made = self.drawn(dtype, shape)
        array = self.constants[made.name]
        if array.size and self.maybe(0.2):
            array[...] = self.chance.choice(array.reshape(-1)[: self.pick([2, 15, 16])], array.shape)
        for axis in (0, 1):
            if self.maybe(0.2):
                array.swapaxes(0, axis)[self.chance.random(shape[axis]) < 0.5] = zero
        return made

    def leaf(self, dtype: str, dims: Sequence[Dim], kind: str = "", low: int = 0, high: int = -1) -> Value:
        """An input, or a constant where all sizes are fixed."""
        if all(isinstance(dim, int) for dim in dims) and self.maybe(0.4):
            return self.drawn(dtype, [int(dim) for dim in dims], kind, low, high)
        return self.input(dtype, dims, kind, low, high)

    def index(self, low: int, high: int, dims: Sequence[Dim] = (), dtype: str = "int64") -> Value:
        return self.leaf(dtype, dims, "integer", low, high)

    # -- values that there are

    def any(
        self, dtypes: Sequence[str], ranks: tuple[int, int] = (0, 4), exact: bool = False, new: float = 0.2
    ) -> Value:
        """A value of one of these types, most likely a late one; or a new one."""
        low, high = ranks
        if not self.maybe(new):
            fits = [v for v in self.values if v.dtype in dtypes and low <= v.rank <= high and not v.last]
            fits = [v for v in fits if v.exact or not exact]
            if fits:
                late = fits[-5:] if self.maybe(0.8) else fits
                return self.pick(late)
        dtype = self.pick(dtypes)
        return self.input(dtype, self.dims(self.integer(low, high)), "exact" if exact and dtype in EXACT_BITS else "")

    def float(self, ranks: tuple[int, int] = (0, 4), exact: bool = False) -> Value:
        return self.any(FLOATS, ranks, exact)

    def dim_of(self, value: Value, axis: int) -> Dim | None:
        """How an input would declare this size; None where no dimension has these sizes."""
        sizes = tuple(array.shape[axis] for array in value.arrays)
        if len(set(sizes)) == 1:
            return sizes[0]
        return next((name for name, found in self.free.items() if tuple(found) == sizes), None)

    def dims_of(self, value: Value) -> tuple[Dim, ...] | None:
        found = [self.dim_of(value, axis) for axis in range(value.rank)]
        return None if any(dim is None for dim in found) else tuple(dim for dim in found if dim is not None)

    def like(self, x: Value, kind: str = "", low: int = 0, high: int = -1, dtype: str = "") -> Value:
        """A value that broadcasts with x."""
        dtype = dtype or x.dtype
        shapes = [array.shape for array in x.arrays]
        same = [v for v in self.values if v.dtype == dtype and [a.shape for a in v.arrays] == shapes and not v.last]
        if same and not kind and self.maybe():
            return self.pick(same)
        dims: list[Dim] = []
        for axis in range(x.rank):
            dim = self.dim_of(x, axis)
            dims.append(1 if dim is None or self.maybe(0.3) else dim)
        return self.leaf(dtype, dims[self.integer(0, x.rank) if self.maybe(0.3) else 0 :], kind, low, high)

    # -- nodes

    def add(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def node(self, op: str, ins: Sequence[Value | None], results: int = 1, **more: Any) -> Value | None:
        """The first result; None where the node cannot be evaluated, or what it makes is no use."""
        made = self.nodes_(op, ins, results, **more)
        return made[0] if made else None

    def nodes_(
        self,
        op: str,
        ins: Sequence[Value | None],
        results: int = 1,
        domain: str = "",
        exact: bool = False,
        last: bool = False,
        captured: Sequence[Value] = (),
        **attributes: Any,
    ) -> list[Value] | None:
        names = [self.name() for _ in range(results)]
        given = {name: value for name, value in attributes.items() if value is not None}
        node = helper.make_node(op, [v.name if v else "" for v in ins], names, domain=domain, **given)
        used = [v for v in (*ins, *captured) if v is not None]
        try:
            per_set = [
                evaluate(node, {v.name: v.arrays[number] for v in used}, self.opset) for number in range(self.sets)
            ]
        except Failed:
            return None
        made = []
        all_exact = exact and all(v.exact for v in used)
        for position, name in enumerate(names):
            arrays = tuple(found[position] for found in per_set)
            if not all(map(_is_useful, arrays)):
                return None
            dtype = arrays[0].dtype.name
            is_exact = all_exact and (dtype not in EXACT_BITS or all(map(_is_exact, arrays)))
            if dtype not in EXACT_BITS:
                is_exact = all(v.exact for v in used)
            made.append(Value(name, arrays, is_exact, last=last))
        self.nodes.append(node)
        self.values += made
        for attribute in node.attribute:
            inner = self.bounds_of_bodies.pop(attribute.g.name, {})
            self.bounds |= {f"{names[0]}/{attribute.name}/{name}": bound for name, bound in inner.items()}
        return made

    def constants_of(self, *values: Any) -> list[Value]:
        return [self.constant(value) for value in values]


def _numpy(dtype: str) -> np.dtype[Any]:
    if dtype in ("bfloat16",) or dtype.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, dtype))
    return np.dtype(dtype)


def _is_useful(array: np.ndarray) -> bool:
    if array.size > LARGEST or array.ndim > 6:
        return False
    if array.dtype.kind in "OSU" or array.dtype.kind in "iub":
        return True
    if array.dtype.kind == "c":
        return bool(np.isfinite(array).all())
    wide = array.astype(np.float64)
    return bool(np.isfinite(wide).all()) and bool(np.max(np.abs(wide), initial=0.0) < 1e6)


def _is_exact(array: np.ndarray) -> bool:
    """With room for the sums on the way."""
    bits = EXACT_BITS[array.dtype.name]
    raised = array.astype(np.float64) * 2.0 ** min(bits // 2, 16)
    return bool((raised == np.round(raised)).all()) and bool(np.max(np.abs(raised), initial=0.0) < 2.0**bits)


def initializers(constants: Mapping[str, np.ndarray]) -> list[Any]:
    return [numpy_helper.from_array(array, name) for name, array in constants.items()]
