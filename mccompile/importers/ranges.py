"""Ranges of free sizes that a file of another format implies, in the metadata of its model: they hold where nobody
gives others with `--dim`."""

from __future__ import annotations

from collections.abc import Container, Mapping

from onnx import ModelProto

_KEY = "mccompile.ranges"


def declare(model: ModelProto, ranges: Mapping[str, tuple[int, int]]) -> None:
    """`ranges`: least and most by name of the size."""
    lines = (f"{name}={low}..{high}" for name, (low, high) in ranges.items())
    model.metadata_props.add(key=_KEY, value="\n".join(lines))


def declared(model: ModelProto) -> dict[str, tuple[int, int]]:
    """A line that says nothing is not a range."""
    found = dict[str, tuple[int, int]]()
    for entry in model.metadata_props:
        for line in entry.value.splitlines() if entry.key == _KEY else ():
            name, _, ends = line.rpartition("=")
            low, _, high = ends.partition("..")
            if name and low.isdecimal() and high.isdecimal():
                found[name] = (int(low), int(high))
    return found


def free(model: ModelProto, given: Container[str]) -> set[str]:
    """Names of sizes of inputs that have no range, except of those inputs whose shapes are given."""
    inside = {constant.name for constant in model.graph.initializer}
    entries = (entry for entry in model.graph.input if entry.name not in inside and entry.name not in given)
    named = {size.dim_param for entry in entries for size in entry.type.tensor_type.shape.dim if size.dim_param}
    return named - declared(model).keys()
