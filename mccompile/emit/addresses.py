"""Addresses of a plan as C: macros that take a type and an offset."""

from __future__ import annotations

from ..base.dims import Dim, static
from ..base.tensor import TensorType
from ..expr.dims_c import dim_c
from ..plan.ir import (
    BLOB,
    STREAMS,
    Address,
    Argument,
    Place,
    Plan,
    Step,
    arena_base,
    is_arena,
    is_outside,
    outside,
)
from ..plan.places import addresses

IN_STRUCT = "m->"


def pointer(address: Address, c: str, const: bool, sizes: str = "") -> str:
    """C of an address; `sizes` stands in front of the names of sizes."""
    offset = dim_c(address.offset, sizes)
    if is_arena(address.base):
        return f"A{suffix_of(address.base)}({'const ' if const else ''}{c}, {_named(address, sizes)})"
    if address.base == BLOB:
        return f"W({c}, {offset})"
    if address.base == STREAMS:
        return f"&m->streams[{static(address.offset) // 8}]"
    if address.base.startswith(outside("input", "")):
        return f"X({c}, m->{address.base}, {offset})"
    if is_outside(address):
        return f"P({'const ' if const else ''}{c}, m->{address.base}, {offset})"
    return f"P({'const ' if const else ''}{c}, {address.base}, {offset})"


def _named(address: Address, sizes: str) -> str:
    """An offset in an arena, from where its buffer begins."""
    if address.place is None:
        return dim_c(address.offset, sizes)
    rest = address.offset - address.place.begin
    if isinstance(rest, int):
        return address.place.symbol + (f" {'-' if rest < 0 else '+'} {abs(rest)}" if rest else "")
    return f"{address.place.symbol} + {dim_c(rest, sizes)}"


def places(plan: Plan) -> list[Place]:
    """Buffers that the C names, by where they lie."""
    found = {address.place.symbol: address.place for address in addresses(plan) if address.place is not None}
    return sorted(found.values(), key=lambda place: (place.begin, place.symbol))


def suffix_of(base: str) -> str:
    return base.removeprefix(arena_base("")).upper()


def in_struct(dim: Dim) -> str:
    """A dimension where sizes are fields of the model's struct."""
    return dim_c(dim, IN_STRUCT)


def passed(step: Step) -> list[tuple[Argument, TensorType]]:
    """What a step passes, as its function reads it: of a bias for each channel, one element along all other axes. Where
    the function was written for a call of another rank, which it computes alike, as the step has it."""
    function = step.function
    outs, ins = function.kernel.parameter_names(function.call)
    views = dict(zip((*outs, *ins), (*function.call.outs, *function.call.ins), strict=True))
    found = []
    for a in step.arguments:
        strides = views[a.role].strides if a.role in views else ()
        strides = strides if len(strides) == len(a.type.shape) else a.type.shape
        shape = (1 if stride == 0 else dim for dim, stride in zip(a.type.shape, strides, strict=True))
        if a.role not in function.unpassed:
            found.append((a, TensorType(a.type.dtype, tuple(shape))))
    return found
