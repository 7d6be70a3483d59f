"""Ranges of free sizes that a file of another format implies, in the metadata of its model: they hold where nobody
gives others with `--dim`."""

from __future__ import annotations

from collections.abc import Mapping

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
