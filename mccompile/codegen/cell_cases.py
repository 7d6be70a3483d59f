"""Calls of recurrent networks that kernels of them are tested with."""

from __future__ import annotations

from ..base.dtypes import DType, f32, i8, i32
from ..base.tensor import TensorType
from ..kernels.api import Case
from ..kinds.recurrent import GATES, Recurrent


def cell_case(
    name: str, kind: Recurrent, time: int, batch: int, hidden: int, dtype: DType = f32, inputs: int = 0
) -> Case:
    directions, rows = len(kind.backwards), GATES[kind.cell] * hidden
    state = TensorType(dtype, (directions, batch, hidden))
    types = {
        "bias": TensorType(dtype, (directions, rows)),
        "h0": state,
        "c0": state,
        "peepholes": TensorType(dtype, (directions, 3 * hidden)),
        "lengths": TensorType(i32, (batch,)),
        "w": TensorType(dtype, (directions, rows, inputs)),
        **dict.fromkeys(("w_bias", "r_scale", "w_scale"), TensorType(dtype, (directions, rows))),
        "y": TensorType(dtype, (time, directions, batch, hidden)),
        "h": state,
        "c": state,
    }
    x = TensorType(dtype if inputs else kind.accumulator, (time, batch, directions, inputs or rows))
    r = TensorType(dtype, (directions, rows, hidden))
    ranges = {2 + kind.uses.index("lengths"): (0.0, float(time))} if "lengths" in kind.uses else {}
    types["r"] = r
    for weights in ("r", "w"):
        if f"{weights}_scale" in kind.uses:
            types[weights] = TensorType(i8, types[weights].shape)
            ranges |= {kind.names.index(weights): (-127.0, 127.0), kind.names.index(f"{weights}_scale"): (0.0, 0.02)}
    ins = (x, types["r"], *(types[use] for use in kind.uses))
    return Case(name, kind, ins, tuple(types[result] for result in kind.gives), ranges=ranges)
