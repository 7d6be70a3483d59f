"""Inputs to check a model with: random ones from a seed, or those of ONNX `test_data_set_*` folders.

Random elements suit their types: floats are standard normal, integers small; what is used as an index or a number of a
class stays in the range that the graph shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..base.dims import upper
from ..base.errors import BadFile, Problem
from ..frontend.original import read_tensors
from ..graph.ir import Graph, Node, Value

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
_SMALL = 100


@dataclass(frozen=True)
class DataSet:
    name: str
    inputs: dict[str, np.ndarray]
    outputs: list[np.ndarray] | None = None  # where the folder has them, in order


def random_sets(graph: Graph, seed: int, runs: int) -> Iterator[DataSet]:
    """The same sets for the same graph and seed, on every machine."""
    for run in range(runs):
        chance = np.random.default_rng([seed, run])
        yield DataSet(f"random {seed}.{run}", {value.name: random_input(value, chance) for value in graph.inputs})


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


def _rows(value: Value, seen: set[Value]) -> int | None:
    """How many rows a value chooses among, where it is an index; None where it is not."""
    found = []
    seen.add(value)
    for node, position in value.uses:
        number = _indexed(node, position)
        if number is None and node.op.name in _LOOKS_THROUGH and position == 0 and node.output not in seen:
            number = _rows(node.output, seen)
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
    if node.op.name == "OneHot" and position == 0:
        depth = node.site().value(1)
        return int(depth.reshape(-1)[0]) if depth is not None and isinstance(depth.reshape(-1)[0], int) else None
    return None


def stored_sets(folder: Path, names: Sequence[str]) -> list[DataSet]:
    """The `test_data_set_*` folders in `folder`, or `folder` itself if it is one."""
    folders = sorted(path for path in folder.glob("test_data_set_*") if path.is_dir())
    folders = folders or ([folder] if (folder / "input_0.pb").is_file() else [])
    if not folders:
        why = "it has no test_data_set_* folders, and no input_0.pb"
        raise BadFile(Problem("no test data", str(folder), why, "give the folder that holds test_data_set_0"))
    return [_stored_set(path, names) for path in folders]


def _stored_set(folder: Path, names: Sequence[str]) -> DataSet:
    inputs = read_tensors(folder, "input")
    if len(inputs) != len(names):
        why = f"it has {len(inputs)} inputs, the model takes {len(names)}: {', '.join(names)}"
        raise BadFile(
            Problem("test data does not fit the model", str(folder), why, "give the data made for this model")
        )
    return DataSet(folder.name, dict(zip(names, inputs, strict=True)), read_tensors(folder, "output") or None)
