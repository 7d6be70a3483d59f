"""Which outputs of an ONNX model become inputs of the next run, as its metadata says: formats that have variables are
decomposed like that, and compiled as with `--state`."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, helper

_KEY = "mccompile.states"


def declare(model: ModelProto, states: Mapping[str, str]) -> None:
    """`states`: inputs by output."""
    if states:
        helper.set_model_props(model, {_KEY: "\n".join(f"{after}={before}" for after, before in states.items())})


def declared(model: ModelProto) -> dict[str, str]:
    """Inputs by output; a line that says nothing is not a state."""
    lines = (line for entry in model.metadata_props if entry.key == _KEY for line in entry.value.splitlines())
    return {after: before for after, found, before in (line.rpartition("=") for line in lines) if found}
