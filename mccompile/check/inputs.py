"""Inputs to check a model with: random ones from a seed, or those of ONNX `test_data_set_*` folders.

Random elements suit their types: floats are standard normal, integers small; and what the graph shows of them
(contracts.py): indices stay in range, masks are 0 and 1. Integers that no output depends on are 1. Free dimensions have
the sizes of sizes.py, in turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dims import upper
from ..base.errors import BadFile, Problem
from ..base.near import near_file
from ..base.records import dataclass
from ..base.structures import Items, Maybe, Slots, Structure
from ..frontend.original import read_values
from ..graph.ir import Graph, Value, graphs
from ..toolchain.lists import packed
from . import contracts
from .sizes import Sizes, trials

EMPTY: Sizes = {}
_SMALL = 100
_COMPARED = 0.25  # of elements that are compared with a number are that number


@dataclass(frozen=True)
class DataSet:
    name: str
    inputs: dict[str, np.ndarray]
    outputs: list[Any] | None = None  # where the folder has them, in order


def random_sets(
    graph: Graph, seed: int, runs: int, steps: int = 1, lengths: Mapping[str, int] = EMPTY
) -> Iterator[DataSet]:
    """The same sets for the same graph and seed, on every machine; at least one of each size. `steps` of the same sizes
    follow each other. Integers that no output depends on are what `lengths` says of them."""
    ends = {value for part in graphs(graph) for value in part.outputs}
    unread = [v for v in graph.inputs if v.type.dtype.is_integer and not _is_read(v, ends)]
    sizes = trials(graph)
    if len(sizes) == 1:
        steps = 1
    for run in range(max(runs, len(sizes) * steps)):
        now = sizes[run // steps % len(sizes)]
        chance = np.random.default_rng([seed, run])
        arrays = {value.name: random_input(value, chance, now) for value in graph.inputs}
        arrays |= {v.name: np.full_like(arrays[v.name], lengths.get(v.name, 1)) for v in unread}
        for name, form in graph.interface.inputs if graph.interface else ():
            if not isinstance(form, str):
                value = random_structure(form, arrays, chance)
                arrays |= packed(form, value, arrays.__getitem__, name)
        shown = ", ".join(f"{name.removeprefix('n_')}={size}" for name, size in now.items())
        yield DataSet(f"random {seed}.{run}" + (f" ({shown})" if shown else ""), arrays)


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


def random_input(value: Value, chance: np.random.Generator, sizes: Sizes = EMPTY) -> np.ndarray:
    """One tensor of the value's type, at these sizes of free dimensions, or the largest."""
    dtype, shape = value.type.dtype, contracts.shape_at(value, sizes)
    if dtype.kind in ("int", "uint", "float"):
        array = _by_contract(value, chance, sizes, shape)
        if array is not None:
            return array.astype(dtype.numpy)
    if dtype.kind == "bool":
        rows, mask = contracts.index_range(value, sizes), chance.integers(0, 2, shape)
        return (mask if rows is None or rows.total is None else _within(mask, rows.total)).astype(bool)
    if dtype.is_integer:
        low, high = max(int(dtype.low), -_SMALL), min(int(dtype.high), _SMALL)
        if dtype.bits == 8:  # most likely quantised: every value is as good as any other
            low, high = int(dtype.low), int(dtype.high)
        return _with_compared(value, chance, chance.integers(low, high + 1, shape)).astype(dtype.numpy)
    if dtype.kind == "complex":
        return (chance.standard_normal(shape) + 1j * chance.standard_normal(shape)).astype(dtype.numpy)
    if dtype.kind == "string":
        words = np.array(["", "a", "mcc", "hello", "World", "1.5"], dtype=object)
        return words[chance.integers(0, len(words), shape)]
    return chance.standard_normal(shape).astype(dtype.numpy)


def _by_contract(value: Value, chance: np.random.Generator, sizes: Sizes, shape: tuple[int, ...]) -> np.ndarray | None:
    """Elements that the graph asks for; None where it asks for nothing."""
    dtype = value.type.dtype
    rows = contracts.index_range(value, sizes)
    if rows is not None:
        most = int(min(dtype.high, 2**31))
        low, high = max(rows.low, int(max(dtype.low, -most))), min(rows.high, most)
        chosen: np.ndarray = chance.integers(low, max(high, low + 1), shape)
        if rows.total is not None and low == 0:
            return _within(chosen, rows.total)
        return _with_compared(value, chance, chosen, low, high)
    if not contracts.is_mask(value):
        return None
    mask: np.ndarray = chance.integers(0, 2, shape)
    if shape:
        mask[..., :1] = 1  # what hides everything leaves nothing to compare
    return mask


def _within(array: np.ndarray, total: int) -> np.ndarray:
    """Without what makes all elements together more than this, from the first on."""
    flat = array.reshape(-1)
    return np.where(np.cumsum(flat) <= total, flat, 0).reshape(array.shape)


def _with_compared(
    value: Value, chance: np.random.Generator, array: np.ndarray, low: int | None = None, high: int | None = None
) -> np.ndarray:
    """Some elements are what the graph compares them with; a single one is, for it chooses a branch."""
    known = [n for n in contracts.compared_with(value) if (low is None or low <= n) and (high is None or n < high)]
    if not known:
        return array
    chosen = chance.choice(np.array(known), array.shape)
    share = 1.0 if array.size == 1 else _COMPARED
    return np.where(chance.random(array.shape) < share, chosen, array)


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


def stored_sets(folder: Path, names: Sequence[str], graph: Graph | None = None) -> list[DataSet]:
    """The `test_data_set_*` folders in `folder`, or `folder` itself if it is one. A graph says which inputs and outputs
    are not tensors."""
    folders = sorted(path for path in folder.glob("test_data_set_*") if path.is_dir())
    folders = folders or ([folder] if (folder / "input_0.pb").is_file() else [])
    if not folders:
        why = "it has no test_data_set_* folders, and no input_0.pb"
        if not folder.exists():
            why = "No such file or directory"
        fix = near_file(folder, "*.npz", "*.npy", "test_data*") if not folder.exists() else ""
        usual = "give an .npz file of arrays named like the inputs, or the folder that holds test_data_set_0"
        raise BadFile(Problem("no test data", str(folder), why, fix or usual))
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
