"""Sizes of inputs that are not those of the file.

A file has one size for everything, and marks what was open when it was converted: axis 0 is `batch`, axis 2 of the
input `x` is `x_2`. LiteRT's interpreter runs the sizes of the file, and others after `resize_tensor_input`; so do we.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...base.errors import Problem, WrongUse
from ...base.names import c_identifier
from ...base.near import meant
from ..api import Reading
from .file import Tensor

BATCH = "batch"
Size = int | str  # a number, or the name of a dimension
Sizes = dict[str, tuple[Size, ...]]  # of inputs by name


def open_sizes(inputs: Mapping[str, Tensor]) -> Sizes:
    """What the file leaves open, by name."""
    return {
        name: tuple(_named(name, axis) if axis in tensor.open else size for axis, size in enumerate(tensor.shape))
        for name, tensor in inputs.items()
        if tensor.open
    }


def _named(name: str, axis: int) -> str:
    return f"{c_identifier(name)}_{axis}" if axis else BATCH


def asked(inputs: Mapping[str, Tensor], reading: Reading, file: str) -> Sizes:
    """Sizes of all inputs; empty where they are those of the file. Names stand for what `--dim` gives."""
    names = open_sizes(inputs)
    given = {name: shape for name, shape in reading.shapes.items() if name in inputs}
    shapes = {name: tuple(size for size in shape if not isinstance(size, tuple)) for name, shape in given.items()}
    _check(inputs, names, shapes, reading, file)
    if not shapes and not any(size in reading.dims for sizes in names.values() for size in sizes):
        return {}
    known: dict[str, Size] = {name: name for name in reading.dims}
    for name, shape in shapes.items():  # a size given for one input holds for the others too
        for had, size in zip(names.get(name, ()), shape, strict=False):
            if isinstance(had, str):
                known.setdefault(had, size)
    found: Sizes = {}
    for name, tensor in inputs.items():
        sizes = zip(names.get(name, tensor.shape), tensor.shape, strict=True)
        own = tuple(known.get(had, size) if isinstance(had, str) else had for had, size in sizes)
        found[name] = shapes.get(name, own)
    return {} if all(sizes == inputs[name].shape for name, sizes in found.items()) else found


def _check(
    inputs: Mapping[str, Tensor], names: Sizes, shapes: Mapping[str, tuple[Size, ...]], reading: Reading, file: str
) -> None:
    problems = []
    known = {size: None for sizes in names.values() for size in sizes if isinstance(size, str)}
    for name, shape in shapes.items():
        had, where = inputs[name].shape, f"--shape {name}={','.join(map(str, shape))}"
        if len(shape) != len(had) or any(isinstance(size, int) and size < 1 for size in shape):
            why = f"{file} says that {name!r} is {','.join(map(str, had))}"
            fix = f"give {len(had)} sizes, such as --shape {name}={','.join(map(str, had))}"
            problems.append(Problem("a shape does not fit the model", where, why, fix))
        known |= dict.fromkeys(size for size in shape if isinstance(size, str))
    for dim, (low, high) in reading.dims.items() if not reading.prepend else ():
        if dim not in known:
            size = f"{low}" if low == high else f"{low}..{high}"
            why = f"those of {file} are {', '.join(known)}" if known else f"{file} has none"
            fix = meant(dim, known, "--dim") or f"leave out --dim {dim}={size}"
            problems.append(Problem(f"there is no free dimension {dim!r}", f"--dim {dim}={size}", why, fix))
    if problems:
        raise WrongUse(*problems)
