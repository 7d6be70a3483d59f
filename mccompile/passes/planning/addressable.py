"""Checks that a plan fits into the memory that its target can address.

Invariant: no code is written whose arena, weights or tensors outside lie beyond what an address of the target reaches.
"""

from __future__ import annotations

from ...base.errors import Problem, UnsupportedModel, raise_all
from ...plan.ir import Plan
from ...targets.api import Target

_SHOWN = 4  # of the largest tensors


def check_addressable(plan: Plan, target: Target) -> None:
    """Raises UnsupportedModel."""
    most = target.largest_object
    sizes = [("the arena" if not arena.pool else f"the arena in {arena.pool}", arena.bytes) for arena in plan.arenas]
    sizes += [("the weights", plan.data_bytes)]
    sizes += [(f"tensor {tensor.name!r}", tensor.type.max_bytes) for tensor in (*plan.inputs, *plan.outputs)]
    total = sum(nbytes for what, nbytes in sizes if what.startswith("the "))
    sizes += [("arena and weights together", total)] if total > 2 * most else []
    held = sorted((life for life in plan.lives if life.at_peak), key=lambda life: life.low - life.high)
    largest = ", ".join(f"{life.name} {life.high - life.low}" for life in held[:_SHOWN])
    entry = max(plan.entries, key=lambda entry: entry.contents.type.max_bytes, default=None)

    def where(what: str) -> str:
        if what == "the weights" and entry is not None:
            return f"{plan.name}: the largest are {entry.name}, {entry.contents.type.max_bytes} bytes"
        return f"{plan.name}: the largest tensors are {largest} bytes" if "arena" in what and largest else plan.name

    raise_all(
        UnsupportedModel,
        (
            Problem(
                f"{what} of {nbytes} bytes cannot be addressed" if what.startswith("the ") else f"{what} is too large",
                where(what),
                f"target {target.name} has addresses of {target.address_bits} bits, an array has up to {most} bytes",
                "make these tensors smaller (--dim, --shape), or choose a target with more memory",
            )
            for what, nbytes in sizes
            if nbytes > (2 * most if what.startswith("arena") else most)
        ),
    )
