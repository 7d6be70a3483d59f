"""Sequences and optional values as structs of ordinary tensors, so that nothing below the frontend has to know them.

The same structs hold values of a graph (while a model is read) and names of tensors (in reports, and where programs
pass lists in and out). A sequence whose length and shapes are known has a tensor for each element; any other lies in
slots: a buffer with room for so many elements of the largest size. Invariant: element i of `Slots` begins at slot i and
is dense there, whatever its true shape is; what lies behind it, and behind the last element, means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from math import prod
from typing import Any, Generic, TypeVar

from .dtypes import DTYPES, DType
from .records import dataclass

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Items(Generic[T]):
    """A sequence of known length, its elements of known shapes: a tensor for each."""

    dtype: DType
    parts: tuple[T, ...]

    def leaves(self) -> Iterator[T]:
        yield from self.parts

    def map(self, function: Callable[[T], U]) -> Items[U]:
        return Items(self.dtype, tuple(function(part) for part in self.parts))


@dataclass(frozen=True)
class SlotCapacity:
    """What slots have room for: so many elements, none larger than `shape`."""

    count: int
    shape: tuple[int, ...]
    ragged: bool = False  # elements differ in their sizes
    mixed: bool = False  # and in rank: the shape of one with fewer axes ends in -1

    @property
    def size(self) -> int:
        """Elements of a slot."""
        return prod(self.shape)

    def joined(self, other: SlotCapacity) -> SlotCapacity:
        """SlotCapacity for the elements of either."""
        mixed = self.mixed or other.mixed or len(self.shape) != len(other.shape)
        rank = max(len(self.shape), len(other.shape))
        a, b = (tuple(room.shape) + (1,) * (rank - len(room.shape)) for room in (self, other))
        shape = tuple(map(max, a, b))
        ragged = mixed or self.ragged or other.ragged or self.shape != other.shape
        return SlotCapacity(max(self.count, other.count), shape, ragged, mixed)


@dataclass(frozen=True)
class Slots(Generic[T]):
    """A bounded sequence: slots, how many are in use, and where sizes differ the true shape of each element."""

    dtype: DType
    room: SlotCapacity
    data: T
    length: T
    shapes: T | None = None

    def leaves(self) -> Iterator[T]:
        yield self.data
        yield self.length
        if self.shapes is not None:
            yield self.shapes

    def map(self, function: Callable[[T], U]) -> Slots[U]:
        data, length = function(self.data), function(self.length)  # in the order of `leaves`
        return Slots(self.dtype, self.room, data, length, None if self.shapes is None else function(self.shapes))


@dataclass(frozen=True)
class Maybe(Generic[T]):
    """An optional value: a flag, and what means something where it is true."""

    present: T
    value: T | Items[T] | Slots[T]

    def leaves(self) -> Iterator[T]:
        yield self.present
        yield from leaves(self.value)

    def map(self, function: Callable[[T], U]) -> Maybe[U]:
        return Maybe(function(self.present), mapped(self.value, function))


STRUCTURES = (Items, Slots, Maybe)
Structure = Items[T] | Slots[T] | Maybe[T]


def leaves(value: T | Items[T] | Slots[T] | Maybe[T]) -> Iterator[T]:
    """The tensors that something is made of."""
    if isinstance(value, Items | Slots | Maybe):
        yield from value.leaves()
    else:
        yield value


def mapped(value: T | Items[T] | Slots[T], function: Callable[[T], U]) -> U | Items[U] | Slots[U]:
    return value.map(function) if isinstance(value, Items | Slots) else function(value)


def named(value: Any, name: str) -> str | Structure[str]:
    """The names of the tensors that stand for something called `name`."""
    if isinstance(value, Items):
        return Items(value.dtype, tuple(f"{name}_{number}" for number in range(len(value.parts))))
    if isinstance(value, Slots):
        return Slots(value.dtype, value.room, name, f"{name}_length", f"{name}_shapes" if value.room.ragged else None)
    if isinstance(value, Maybe):
        inner = named(value.value, name)
        assert not isinstance(inner, Maybe)
        return Maybe(f"{name}_present", inner)
    return name


@dataclass(frozen=True)
class Interface:
    """Inputs and outputs of a model as its file has them: a tensor or a struct of tensors for each, by name."""

    inputs: tuple[tuple[str, str | Structure[str]], ...]
    outputs: tuple[tuple[str, str | Structure[str]], ...]

    def to_json(self) -> dict[str, Any]:
        def entries(named: tuple[tuple[str, str | Structure[str]], ...]) -> list[dict[str, Any]]:
            return [{"name": name, **to_json(value)} for name, value in named]

        return {"inputs": entries(self.inputs), "outputs": entries(self.outputs)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Interface:
        def named(entries: list[dict[str, Any]]) -> tuple[tuple[str, str | Structure[str]], ...]:
            return tuple((str(e["name"]), from_json(e)) for e in entries)

        return Interface(named(entry["inputs"]), named(entry["outputs"]))

    def within(self, tensors: Collection[str]) -> Interface:
        """What is left of it where only these tensors are passed in and out."""

        def left(named: tuple[tuple[str, str | Structure[str]], ...]) -> tuple[tuple[str, str | Structure[str]], ...]:
            return tuple((name, value) for name, value in named if all(leaf in tensors for leaf in leaves(value)))

        return Interface(left(self.inputs), left(self.outputs))

    def lines(self) -> list[str]:
        """What has to be said of inputs and outputs that are not tensors."""
        both = (("input", self.inputs), ("output", self.outputs))
        return [line for way, entries in both for name, value in entries for line in _lines(way, name, value)]


def _lines(way: str, name: str, value: str | Structure[str]) -> list[str]:
    match value:
        case Items():
            parts = ", ".join(value.parts) or "none"
            return [f"{way} {name}: a sequence of {len(value.parts)} tensors, each for itself: {parts}"]
        case Slots():
            room = value.room
            largest = "x".join(map(str, room.shape)) or "scalar"
            size = f"{'at most' if room.ragged else 'each'} {largest}"
            lines = [
                f"{way} {name}: a sequence of up to {room.count} tensors, {size}",
                f"  {value.data}: element i lies dense from {room.size} * i on; what lies behind it has no meaning",
                f"  {value.length}: how many elements there are",
            ]
            if value.shapes is not None:
                ranks = ", -1 behind the last of them" if room.mixed else ""
                lines.append(f"  {value.shapes}: the sizes of element i from {len(room.shape)} * i on{ranks}")
            return lines
        case Maybe():
            flag = f"{way} {name}: an optional value; {value.present} says whether it is there"
            return [flag, *_lines(way, name, value.value)]
    return []


def to_json(value: str | Structure[str]) -> dict[str, Any]:
    """How report.json has it."""
    match value:
        case Items():
            return {"kind": "items", "dtype": value.dtype.name, "parts": list(value.parts)}
        case Slots():
            room = {"count": value.room.count, "shape": list(value.room.shape), "mixed": value.room.mixed}
            tensors = {"data": value.data, "length": value.length, "shapes": value.shapes}
            return {"kind": "slots", "dtype": value.dtype.name, **room, **tensors}
        case Maybe():
            return {"kind": "optional", "present": value.present, "value": to_json(value.value)}
    return {"kind": "tensor", "tensor": value}


def from_json(entry: dict[str, Any]) -> str | Structure[str]:
    """The opposite; KeyError or ValueError where it is something else."""
    match entry["kind"]:
        case "tensor":
            return str(entry["tensor"])
        case "items":
            return Items(DTYPES[entry["dtype"]], tuple(str(part) for part in entry["parts"]))
        case "slots":
            shapes = None if entry["shapes"] is None else str(entry["shapes"])
            shape = tuple(int(size) for size in entry["shape"])
            room = SlotCapacity(int(entry["count"]), shape, shapes is not None, bool(entry["mixed"]))
            return Slots(DTYPES[entry["dtype"]], room, str(entry["data"]), str(entry["length"]), shapes)
        case "optional":
            value = from_json(entry["value"])
            if not isinstance(value, Maybe):
                return Maybe(str(entry["present"]), value)
    raise ValueError(f"{entry['kind']!r} is not a kind of value")


def in_order(value: T | Structure[T], tensors: Iterator[U]) -> U | Structure[U]:
    """The same struct of other tensors, which come in the order of `leaves`."""
    return value.map(lambda _: next(tensors)) if isinstance(value, Items | Slots | Maybe) else next(tensors)


__all__ = [
    "STRUCTURES", "Interface", "Items", "Maybe", "SlotCapacity", "Slots", "Structure", "from_json", "in_order",
    "leaves", "mapped", "named", "to_json",
]  # fmt: skip
