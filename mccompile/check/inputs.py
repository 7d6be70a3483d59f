"""Inputs to check a model with: random ones from a seed, or those of ONNX `test_data_set_*` folders.

Random elements suit their types: floats are standard normal, integers small; what is used as an index or a number of a
class stays in the range that the graph shows: 0 or 1 where indices are made from it by arithmetic. Integers that no
output depends on are 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dims import upper
from ..base.errors import BadFile, Problem
from ..base.structures import Items, Maybe, Slots, Structure
from ..frontend.original import read_values
from ..graph.ir import Graph, Node, Value
from ..graph.pattern import graphs
from ..toolchain.lists import packed

_LOOKS_THROUGH = {
    "Cast",
    "Identity",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Slice",
    "Expand",
    "Clip",
}
# Between an input and an index: numbers of rows with negative ones from the end, or places counted along a mask.
_COUNTS_WITH = {"Add", "CumSum", "Max", "Min", "Mul", "ReduceSum", "Sub", "Where"}
_SMALL = 100


@dataclass(frozen=True)
class DataSet:
    name: str
    inputs: dict[str, np.ndarray]
    outputs: list[Any] | None = None  # where the folder has them, in order


def random_sets(graph: Graph, seed: int, runs: int) -> Iterator[DataSet]:
    """The same sets for the same graph and seed, on every machine."""
    ends = {value for part in graphs(graph) for value in part.outputs}
    unread = [v for v in graph.inputs if v.type.dtype.is_integer and not _is_read(v, ends)]
    for run in range(runs):
        chance = np.random.default_rng([seed, run])
        arrays = {value.name: random_input(value, chance) for value in graph.inputs}
        arrays |= {value.name: np.ones_like(arrays[value.name]) for value in unread}
        for name, form in graph.interface.inputs if graph.interface else ():
            if not isinstance(form, str):
                value = random_structure(form, arrays, chance)
                arrays |= packed(form, value, arrays.__getitem__, name)
        yield DataSet(f"random {seed}.{run}", arrays)


def _is_read(value: Value, ends: Set[Value]) -> bool:
    """Does any of these outputs depend on its elements? What does not may still be checked by a reference: lengths that
    follow from shapes once these are known, and masks that they are counted from."""
    seen, left = {value}, [value]
    while left:
        value = left.pop()
        readers = [node for node, _ in value.uses if node.op.name not in ("Shape", "Size")]
        if value in ends or any(node.regions for node in readers):
            return True
        new = [made for node in readers for made in node.present_outputs if made not in seen]
        seen.update(new)
        left += new
    return False


def random_input(value: Value, chance: np.random.Generator) -> np.ndarray:
    """One tensor of the value's type, of its largest size."""
    dtype, shape = value.type.dtype, tuple(upper(dim) for dim in value.type.shape)
    rows = _rows(value, set())
    if rows is not None and dtype.kind in ("int", "uint", "float"):
        return chance.integers(0, max(min(rows, int(min(dtype.high, 2**31))), 1), shape).astype(dtype.numpy)
    if dtype.kind == "bool":
        return chance.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        low, high = max(int(dtype.low), -_SMALL), min(int(dtype.high), _SMALL)
        if dtype.bits == 8:  # most likely quantised: every value is as good as any other
            low, high = int(dtype.low), int(dtype.high)
        return chance.integers(low, high + 1, shape).astype(dtype.numpy)
    if dtype.kind == "complex":
        return (chance.standard_normal(shape) + 1j * chance.standard_normal(shape)).astype(dtype.numpy)
    if dtype.kind == "string":
        words = np.array(["", "a", "mcc", "hello", "World", "1.5"], dtype=object)
        return words[chance.integers(0, len(words), shape)]
    return chance.standard_normal(shape).astype(dtype.numpy)


def random_structure(form: Structure[str], arrays: Mapping[str, np.ndarray], chance: np.random.Generator) -> Any:
    """A list, or something that may be missing, made of random tensors."""
    match form:
        case Items():
            return [arrays[part] for part in form.parts]
        case Maybe():
            if chance.integers(0, 2) == 0:
                return None
            value = form.value
            return random_structure(value, arrays, chance) if isinstance(value, Items | Slots) else arrays[value]
    room = form.room
    rows = arrays[form.data][: chance.integers(min(room.count, 1), room.count + 1)]
    shapes = [[chance.integers(0, size + 1) for size in room.shape] if room.ragged else room.shape for _ in rows]
    return [row[: math.prod(shape)].reshape(shape) for row, shape in zip(rows, shapes, strict=True)]


def _rows(value: Value, seen: set[Value]) -> int | None:
    """How many rows a value chooses among, where it is an index; None where it is not."""
    found = []
    seen.add(value)
    for node, position in value.uses:
        number = _indexed(node, position)
        if number is None and node.op.name in _LOOKS_THROUGH and position == 0 and node.output not in seen:
            number = _rows(node.output, seen)
        elif node.op.name in _COUNTS_WITH and node.output.type.dtype.is_integer and node.output not in seen:
            number = None if _rows(node.output, seen) is None else 2
        if number is not None:
            found.append(number)
    return min(found, default=None)


def _indexed(node: Node, position: int) -> int | None:
    table = node.inputs[0]
    if (
        node.op.name in ("Gather", "GatherElements", "ScatterElements")
        and position == 1
        and table is not None
        and table.type.rank
    ):
        return upper(table.type.shape[getattr(node.op, "axis", 0)])
    if node.op.name in ("GatherND", "ScatterND") and position == 1 and table is not None:
        return min((upper(dim) for dim in table.type.shape), default=None)
    if node.op.name == "TensorScatter" and position == 2 and table is not None:
        return upper(table.type.shape[getattr(node.op, "axis", 0)])
    if node.op.name == "SlotPosition" and position == 0:
        return 1  # the first element is there in every sequence that is not empty
    if node.op.name == "Loop" and position == 0:
        trip = node.regions[0].inputs[0].fact.value
        return None if trip is None else upper(trip.item()) + 2
    if node.op.name == "OneHot" and position == 0:
        depth = node.site().value(1)
        return int(depth.reshape(-1)[0]) if depth is not None and isinstance(depth.reshape(-1)[0], int) else None
    return None


def stored_sets(folder: Path, names: Sequence[str], graph: Graph | None = None) -> list[DataSet]:
    """The `test_data_set_*` folders in `folder`, or `folder` itself if it is one. A graph says which inputs and outputs
    are not tensors."""
    folders = sorted(path for path in folder.glob("test_data_set_*") if path.is_dir())
    folders = folders or ([folder] if (folder / "input_0.pb").is_file() else [])
    if not folders:
        why = "it has no test_data_set_* folders, and no input_0.pb"
        raise BadFile(Problem("no test data", str(folder), why, "give the folder that holds test_data_set_0"))
    return [_stored_set(path, names, graph) for path in folders]


def _stored_set(folder: Path, names: Sequence[str], graph: Graph | None) -> DataSet:
    interface = graph.interface if graph else None
    forms = interface.inputs if interface else tuple((name, name) for name in names)
    inputs = read_values(folder, "input", [form for _, form in forms])
    if len(inputs) != len(forms):
        wanted = ", ".join(name for name, _ in forms)
        why = f"it has {len(inputs)} inputs, the model takes {len(forms)}: {wanted}"
        raise BadFile(
            Problem("test data does not fit the model", str(folder), why, "give the data made for this model")
        )
    types = {value.name: value.type for value in graph.inputs} if graph else {}

    def zeros(name: str) -> np.ndarray:
        return np.zeros([upper(dim) for dim in types[name].shape], types[name].dtype.numpy)

    arrays: dict[str, np.ndarray] = {}
    for (name, form), value in zip(forms, inputs, strict=True):
        arrays |= packed(form, value, zeros, name)
    outputs = read_values(folder, "output", [form for _, form in interface.outputs] if interface else [])
    return DataSet(folder.name, arrays, outputs or None)
