"""What the user says of sizes that follow from data: `--bound NAME=COUNT`.

NAME is a tensor, or a dimension that the file names in the shape it declares for a tensor; of a sequence the number of
elements is bounded, of the trip count of a loop its value. `*` is for all sizes that nothing else bounds. Invariant: a
bound that changes nothing is an error, so that a misspelt one is never taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import ValueInfoProto

from ..base.dims import symbols, upper
from ..base.errors import Problem, WrongUse, raise_all
from ..graph.ir import Graph, Limit, Value
from .signature import similar

EVERYTHING = "*"  # what is said of it counts where nothing else bounds a size
Bounds = Mapping[str, Sequence[int]]  # name -> the most for each axis, or one number for all
STRINGS = "strings"  # not a tensor: bytes for all strings that a run makes


class Limits:
    def __init__(self, given: Bounds, shapes: bool = False) -> None:
        self.shapes = shapes  # does what is said of everything count for shapes that a run computes?
        self.given = {name: tuple(sizes) for name, sizes in given.items()}
        self.used: set[str] = set()
        self.free: dict[str, str] = {}  # sizes that follow from data -> the tensor they are bounded by
        self._declared: dict[str, tuple[str, ...]] = {}  # names of dimensions by tensor; empty where there is none

    def declare(self, entries: Iterable[ValueInfoProto]) -> None:
        """Takes note of dimensions that the file names."""
        for entry in entries:
            dims = entry.type.tensor_type.shape.dim
            if any(dim.dim_param in self.given for dim in dims):
                self._declared[entry.name] = tuple(dim.dim_param for dim in dims)

    def of(self, *names: str) -> Limit:
        """What is said of a tensor that the user can call so."""
        otherwise = self.given[EVERYTHING][0] if EVERYTHING in self.given else None
        for name in names:
            if name in self.given:
                return Limit(self.given[name], name, otherwise, self.shapes)
        dims = next((self._declared[name] for name in names if name in self._declared), ())
        known = tuple(self.given[dim][0] if dim in self.given else None for dim in dims)
        return Limit(known if len(known) != 1 else (*known, None), names[0], otherwise, self.shapes)

    def of_value(self, names: Sequence[str]) -> Limit:
        """What is said of the value of an operand."""
        self.used.update(names)
        given = next((self.given[name] for name in names if name in self.given), ())
        return Limit(given, names[0], self.of(*names).otherwise)

    @property
    def strings(self) -> int | None:
        """Bytes for strings."""
        if STRINGS in self.given:
            self.used.add(STRINGS)
        return self.given[STRINGS][0] if STRINGS in self.given else None

    def made(self, values: Iterable[tuple[Value, Sequence[str]]], own: str) -> None:
        """Takes note of results and what the user can call them; sizes of the node's own are named after `own`."""
        for value, names in values:
            found = {s.name for dim in value.type.shape for s in symbols(dim) if s.name.startswith(f"n_{own}")}
            self.free |= {size: names[0] for size in found}
            if found:
                self.used.update(names)
                self.used |= {dim for name in names for dim in self._declared.get(name, ())}

    def check(self) -> None:
        """Refuses what no tensor goes by."""
        known = list(dict.fromkeys(self.free.values()))
        why = f"sizes that follow from data are those of {', '.join(known)}" if known else "no size follows from data"
        raise_all(
            WrongUse,
            [
                Problem(
                    f"nothing is bounded by {name!r}",
                    f"--bound {name}={'x'.join(map(str, sizes))}",
                    why,
                    similar(name, known) or "leave out --bound, or name one of these",
                )
                for name, sizes in self.given.items()
                if name not in self.used and name != EVERYTHING
            ],
        )


def bounds_of_tensors(graph: Graph) -> dict[str, tuple[int, ...]]:
    """What bounds the tensors of a graph whose sizes follow from data, by names that a file of it has."""
    known = {symbol for value in graph.inputs for dim in value.type.shape for symbol in symbols(dim)}
    found: dict[str, tuple[int, ...]] = {}
    for value in (value for node in graph.nodes for value in node.present_outputs):
        there = {symbol for dim in value.type.shape for symbol in symbols(dim)}
        if there - known:
            found[value.name] = tuple(upper(dim) for dim in value.type.shape)
            known |= there
    return found
