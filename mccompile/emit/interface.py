"""What programs see of a model, as its report has it: inputs and outputs, states, streams, sizes and slices.

Invariant: what `lasting` keeps of it is part of the identity, so no blob of another interface runs with the code, also
where both have the same C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..base.structures import Interface
from ..plan.ir import Phase, Plan, Tensor
from ..plan.row_calls import slices_of

_SEEN = ("inputs", "outputs", "interface", "states", "stream", "sizes", "advances", "slices")
_REMARKS = ("whole", "carried")  # what a stream's operators do, for people


def seen(plan: Plan, interface: Interface | None) -> dict[str, Any]:
    return {
        "inputs": [_tensor(t) for t in plan.inputs],
        "outputs": [_tensor(t) for t in plan.outputs],
        **({"interface": interface.to_json()} if interface else {}),
        "states": [_tensor(state.tensor) for state in plan.states],
        **({"stream": asdict(plan.streamed)} if plan.streamed else {}),
        "sizes": [
            {"name": s.name, "low": s.low, "high": s.high, "given": s in plan.given}
            for s in (*plan.given, *plan.measured)
        ],
        **({"advances": True} if plan.advances else {}),
        **({"slices": slices_of(plan)} if plan.sliced else {}),
        **({"initial": initial} if (initial := [s.tensor.name for s in plan.states if s.initial]) else {}),
        **({"stored": stored} if (stored := [s.tensor.name for s in plan.states if s.stored]) else {}),
        **({"phases": [_phase(phase) for phase in plan.phases]} if plan.phases else {}),
    }


def _phase(phase: Phase) -> dict[str, Any]:
    arguments = [tensor.name for tensor in phase.arguments]
    return {"name": phase.name, "inputs": [*phase.inputs], "arguments": arguments}


def lasting(report: Mapping[str, Any]) -> dict[str, Any]:
    """What training does not change: of scales and zero points only how many there are, and along which axis."""
    found = {key: report.get(key) for key in _SEEN}
    for way in ("inputs", "outputs", "states"):
        found[way] = [_without_numbers(tensor) for tensor in report[way]]
    if found["stream"]:
        found["stream"] = {key: value for key, value in found["stream"].items() if key not in _REMARKS}
    return found


def _without_numbers(tensor: Mapping[str, Any]) -> dict[str, Any]:
    scheme = tensor.get("quantized")
    form = {"axis": scheme["axis"], "scales": len(scheme["scales"])} if scheme else None
    return {**tensor, "quantized": form}


def _tensor(tensor: Tensor) -> dict[str, Any]:
    external = {"align": tensor.align, "bytes": tensor.room, "c": tensor.type.dtype.storage_c}
    return {
        "name": tensor.name,
        "symbol": tensor.symbol,
        "dtype": tensor.type.dtype.name,
        "shape": [dim if isinstance(dim, int) else str(dim) for dim in tensor.type.shape],
        "bytes": tensor.type.max_bytes,
        **({"external": external} if tensor.is_outside and tensor.rows is None else {}),
        **({"rows": asdict(tensor.rows)} if tensor.rows else {}),
        **({"quantized": asdict(tensor.quantized)} if tensor.quantized else {}),
    }
