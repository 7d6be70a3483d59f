"""The program that Frama-C/Eva looks at, for `run_eva.py`: one that knows nothing of its inputs and states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.dtypes import string
from ..emit.blob import Carrier, blob_bytes, data_bytes
from ..emit.model import model_context
from ..emit.package import Package
from ..emit.render import render_c
from ..targets.api import Target
from .eva_steps import alone, contracts

_DRIVER = Path(__file__).parent / "eva.c.j2"


def eva(package: Package, target: Target) -> tuple[str, Mapping[str, Any]] | str:
    """Its C and what `run_eva.py` has to know, or why there is none."""
    plan = package.plan
    if target.vector_bytes:
        return f"Frama-C knows nothing of the vectors of {target.name}"
    if f"{plan.prefix}_weights.c" not in package.files:
        return "the weights are not part of the C"
    if any(tensor.type.dtype is string for tensor in (*plan.inputs, *(state.tensor for state in plan.states))):
        return "strings are addresses, which cannot be unknown"
    context = model_context(plan, package.identity, package.weights_align, package.weights_bytes, Carrier.ARRAY)
    machine = "gcc_x86_32" if target.pointer_bytes == 4 else "gcc_x86_64"  # sizes of types are what C knows of it
    calls, functions = alone(plan)
    context |= {"alone": calls, "contracts": [*contracts(plan, functions)], "data": blob_bytes(plan) - data_bytes(plan)}
    steps = [number for number, _ in calls]
    reads = [number for number, each in calls if any(room.copied is not None for room in each.rooms)]
    rows = [number for number, each in calls if each.height]
    about = {"prefix": plan.prefix, "machine": machine, "alone": sorted(functions), "steps": steps}
    about |= {"reads": reads, "rows": rows}
    return render_c(_DRIVER, context).text, about
