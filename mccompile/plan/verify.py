"""Checks a plan on its own terms: addresses inside their memory, aligned for their types, no step that writes what
it must not, and no size that is named where nobody knows it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from ..base.dims import static
from ..base.errors import InternalError
from .copies import Awaited, Copied
from .ir import BLOB, STREAMS, Argument, Plan, Step, is_outside, swaps, walk
from .sizes import unknown


def verify(plan: Plan) -> None:
    problems = unknown(plan)
    arenas = {arena.base: arena.bytes for arena in plan.arenas}
    room, given = _room(plan), {tensor.address.base for tensor in plan.inputs}
    for step in plan.steps():
        problems += [f"{step.op} {step.provenance}: {p}" for a in step.arguments for p in _argument(a, room, given)]
        problems += _overlaps(step)
    for swap in swaps(plan.items):
        for place in (swap.first, swap.second, swap.last):
            if place.base in arenas and not 0 <= static(place.offset) <= arenas[place.base] - swap.bytes:
                problems.append(f"{swap.now} with {swap.bytes} bytes at {place.offset} leaves the arena")
        apart = abs(static(swap.first.offset) - static(swap.second.offset))
        if swap.now and swap.first.base == swap.second.base and apart < swap.bytes:
            problems.append(f"{swap.now} overlaps {swap.next}")
    sizes = {swap_name: swap.bytes for swap in swaps(plan.items) for swap_name in (swap.now, swap.next) if swap_name}
    problems += _copies(plan, room) + _worked_in(plan)
    for step in plan.steps():
        for argument in step.arguments:
            size = sizes.get(argument.address.base)
            if size is not None and not 0 <= argument.low <= argument.high <= size:
                problems.append(f"{step.op} {step.provenance}: {argument.role} leaves {argument.address.base}")
    for tensor in (*plan.inputs, *plan.outputs, *(state.tensor for state in plan.states)):
        limit = arenas.get(tensor.address.base, plan.data_bytes)
        limit = tensor.room if tensor.is_outside else limit
        if isinstance(tensor.address.offset, int) and tensor.address.offset + tensor.type.max_bytes > limit:
            problems.append(f"{tensor.name} leaves its memory")
    for arena in plan.arenas:
        if arena.bytes < arena.bound:
            problems.append(f"an {arena.base} of {arena.bytes} bytes is below the largest live set of {arena.bound}")
        if arena.limit is not None and arena.bytes > arena.limit:
            problems.append(f"{arena.base} has {arena.bytes} bytes, and may have {arena.limit}")
    if problems:
        raise InternalError(f"plan {plan.name!r} is broken:\n  " + "\n  ".join(problems[:20]))


def _copies(plan: Plan, room: Mapping[str, int]) -> list[str]:
    """Copies stay inside of both memories and of the window, and nobody meets one before it has been awaited. Where
    weights come in copies, no step reads the blob."""
    problems, coming = [], list[Copied]()
    for item in plan.items:
        match item:
            case Copied():
                if not 0 <= item.offset <= room[item.base] - item.bytes:
                    problems.append(f"a copy of {item.bytes} bytes to {item.offset} leaves {item.base}")
                if not 0 <= item.source <= plan.data_bytes - item.bytes or item.bytes > plan.window:
                    problems.append(f"a copy of {item.bytes} bytes from {item.source} leaves the blob or the window")
                problems += [f"{item.provenance} is copied while another copy is under way" for _ in coming]
                coming.append(item)
            case Awaited():
                problems += [] if item.copy in coming else [f"{item.provenance} is awaited, but not under way"]
                coming = [copy for copy in coming if copy != item.copy]
            case _:
                met = [(a, c) for step in walk([item]) for a in step.arguments for c in coming if _meets(a, c)]
                problems += [f"{item.provenance}: {a.role} meets what is copied to {c.offset}" for a, c in met]
    problems += [f"nobody awaits what is copied for {copy.provenance}" for copy in coming]
    read = [a.role for step in plan.steps() for a in step.arguments if a.address.base == BLOB and a.high > a.low]
    return problems + ([f"steps read {', '.join(read)} in the blob"] if plan.window and read else [])


def _worked_in(plan: Plan) -> list[str]:
    """In a memory that is `copied` nothing works but what copies between it and the other one, and nothing is kept."""
    bases, problems = {arena.base for arena in plan.arenas if arena.copied}, list[str]()
    for step in plan.steps() if bases else ():
        far = [argument for argument in step.arguments if argument.address.base in bases]
        if far and (not step.function.kernel.copies or len(far) > 1 or len(step.arguments) != 2):
            problems.append(f"{step.op} {step.provenance} works in a memory that is copied")
    kept = [place for swap in swaps(plan.items) for place in (swap.first, swap.second, swap.last)]
    kept += [place for state in plan.states for place in (state.tensor.address, state.made)]
    return problems + [f"{place} is kept in a memory that is copied" for place in kept if place.base in bases]


def _meets(argument: Argument, copy: Copied) -> bool:
    same = argument.address.base == copy.base
    return same and argument.low < copy.offset + copy.bytes and copy.offset < argument.high


def _room(plan: Plan) -> dict[str, int]:
    """Bytes behind each base."""
    room = {BLOB: plan.data_bytes, STREAMS: 8 * plan.streams}
    room |= {arena.base: arena.bytes for arena in plan.arenas}
    return room | {tensor.address.base: tensor.room for tensor in (*plan.inputs, *plan.outputs) if tensor.is_outside}


def _argument(argument: Argument, room: Mapping[str, int], given: Set[str]) -> list[str]:
    """`given`: the bases of inputs."""
    size = room.get(argument.address.base)
    problems = []
    if size is not None and not 0 <= argument.low <= argument.high <= size:
        problems.append(f"{argument.role} touches bytes {argument.low} to {argument.high} of {size}")
    unit = max(1, argument.type.dtype.bits // 8)
    if isinstance(argument.address.offset, int) and argument.address.offset % unit:
        problems.append(f"{argument.role} lies at {argument.address.offset}, not at a multiple of {unit}")
    if argument.written and argument.address.base == BLOB:
        problems.append(f"{argument.role} is written but lies in the blob")
    if argument.written and is_outside(argument.address) and argument.address.base in given:
        problems.append(f"{argument.role} is written but lies in an input outside the arena")
    return problems


def _overlaps(step: Step) -> list[str]:
    """A written argument may meet another one only where the function was made for that, or row by row, where what is
    written begins first: its rows stay behind those that are read."""
    problems = []
    for argument in (argument for argument in step.arguments if argument.written):
        for other in step.arguments:
            if argument is other or argument.address.base != other.address.base:
                continue
            meets = argument.low < other.high and other.low < argument.high
            if step.function.call.rows is not None and argument.low < other.low:
                continue
            if meets and not {argument.role, other.role} <= step.function.aliased:
                problems.append(f"{step.op} {step.provenance}: {argument.role} overlaps {other.role}")
    return problems
