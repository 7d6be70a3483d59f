"""Names of sizes that a file of another format leaves open and has numbers for, in the metadata of its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, ValueInfoProto

_KEY = "mccompile.open"


def declare(model: ModelProto, shapes: Mapping[str, Sequence[int | str]]) -> None:
    """`shapes`: of inputs, with names for what is open."""
    if shapes:
        lines = (f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items())
        model.metadata_props.add(key=_KEY, value="\n".join(lines))


def declared(model: ModelProto) -> dict[str, tuple[int | str, ...]]:
    lines = (line for entry in model.metadata_props if entry.key == _KEY for line in entry.value.splitlines())
    found = (line.rpartition("=") for line in lines)
    return {
        name: tuple(int(size) if size.isdecimal() else size for size in sizes.split(","))
        for name, _, sizes in found
        if name
    }


def numbered(entry: ValueInfoProto, dims: Mapping[str, tuple[int, int]]) -> ValueInfoProto:
    """An input with numbers in place of names for which there is one."""
    made = ValueInfoProto()
    made.CopyFrom(entry)
    for dim in made.type.tensor_type.shape.dim:
        low, high = dims.get(dim.dim_param, (0, 1))
        if low == high:
            dim.dim_value = low
    return made


def settle(model: ModelProto, dims: Mapping[str, tuple[int, int]]) -> ModelProto:
    """The model as a file of its own: numbers for free dimensions that have one, and no names for what is fixed."""
    kept = [entry for entry in model.metadata_props if entry.key != _KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    inputs = [numbered(entry, dims) for entry in model.graph.input]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model
