"""The calls of kernels, one at a time, as Frama-C/Eva analyzes them: every operand is an object of its own, as large
as what its call may touch, with unknown contents. So Eva sees every access out of bounds, and no result depends on
other steps.

Constants are unknown too, except those that init checks (indices, shifts, divisors): these have the values of the blob.
Computed indices without clamps are not unknown: Eva follows the steps that compute them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.dtypes import string
from ..base.marked import called
from ..base.records import dataclass
from ..emit.kernels import signature
from ..kinds.gather import Gather
from ..plan.ir import BLOB, Argument, Plan, Repeat, Step, is_arena, walk
from ..plan.row_calls import made_rows, regions
from .memory import touched


@dataclass(frozen=True)
class MemoryObject:
    """An object: one operand, or those of a call that lie over each other."""

    name: str
    bytes: int
    copied: int | None  # from so many bytes behind the begin of the blob's data; None: unknown


@dataclass(frozen=True)
class CheckedCall:
    """A call of a kernel, or all that make the rows of a stage."""

    rooms: tuple[MemoryObject, ...]
    call: str
    height: int  # rows, and how many one call makes; 0: the call makes all there is
    step: int

    @property
    def calls(self) -> int:
        return -(-self.height // max(self.step, 1))


def contracts(plan: Plan, functions: frozenset[str]) -> Iterator[tuple[list[str], str]]:
    """Of functions: what they need and write, as ACSL, and their declarations."""
    for function in plan.functions:
        if function.name in functions:
            clauses = _clauses([step for step in plan.steps() if step.function.name == function.name], plan)
            returns = ["\\result"] if function.kernel.failure(function.call) else []
            clauses += [f"assigns {each} \\from Frama_C_entropy_source;" for each in returns]
            if not any(clause.startswith("assigns") for clause in clauses):
                clauses += ["assigns \\nothing;"]
            yield sorted(clauses, reverse=True), signature(function)


def _clauses(steps: list[Step], plan: Plan) -> list[str]:
    """Of all calls of a function: those that make fewer rows hand over less."""
    touches, written = dict[str, list[tuple[int, int]]](), set[str]()
    for a in (a for step in steps for a in step.arguments if a.role not in step.function.unpassed):
        low, high = _reached(a, plan)
        if high > low:
            assert isinstance(a.address.offset, int)
            touches.setdefault(a.role, []).append((low - a.address.offset, high - 1 - a.address.offset))
            written |= {a.role} if a.written else set()
    return [clause for role, spans in touches.items() for clause in clauses_of(role, spans, role in written)]


def clauses_of(role: str, spans: list[tuple[int, int]], written: bool) -> Iterator[str]:
    """Of the first and last byte that each call hands over: what all of them have, and what any of them writes."""
    lows, lasts = zip(*spans, strict=True)
    yield f"requires \\{'valid' if written else 'valid_read'}((char *){role} + ({max(lows)} .. {min(lasts)}));"
    if written:
        yield f"assigns ((char *){role})[{min(lows)} .. {max(lasts)}] \\from Frama_C_entropy_source;"


def alone(plan: Plan) -> tuple[list[tuple[int, CheckedCall]], frozenset[str]]:
    """Calls that differ, each with the first step that makes it, and the functions that nothing else calls."""
    others = {step.function.name for step in plan.steps() if not _is_alone(step)}
    others |= {step.function.name for item in plan.items if isinstance(item, Repeat) for step in walk((item,))}
    others |= {step.function.name for step in _with_indices([*plan.steps()])}
    found: dict[CheckedCall, int] = {}
    for step, height, rows in _calls(plan):
        if step.function.name not in others:
            found.setdefault(_alone(step, plan, height, rows), step.number)
    functions = {step.function.name for step in plan.steps()} - others
    return [(number, each) for each, number in found.items()], frozenset(functions)


def _with_indices(steps: Sequence[Step]) -> Iterator[Step]:
    """Those that take computed indices as they are, and all that these are computed from."""
    asked = list[Argument]()
    for step in reversed(steps):
        made = [a for a in step.arguments if a.written and any(_overlap(a, other) for other in asked)]
        reads = [a for a in step.arguments if is_arena(a.address.base) and not a.written]
        if made:
            asked = [a for a in asked if not any(_covers(each, a) for each in made)] + reads
        kind = step.function.call.kind
        indices = [a for a in reads if a.role != "x"] if isinstance(kind, Gather) and kind.in_range else []
        asked += indices
        if made or indices:
            yield step


def _overlap(one: Argument, other: Argument) -> bool:
    return one.address.base == other.address.base and one.low < other.high and other.low < one.high


def _covers(one: Argument, other: Argument) -> bool:
    return _overlap(one, other) and one.low <= other.low and other.high <= one.high


def _is_alone(step: Step) -> bool:
    """Is the call the same whatever is around it? Else Eva sees it in the run alone."""
    function = step.function
    kernel = function.kernel
    same = not (function.sizes or step.table or step.shared or kernel.asks or kernel.queued(function.call))
    return same and all(_is_fixed(a) for a in step.arguments if a.role not in function.unpassed)


def _is_fixed(argument: Argument) -> bool:
    base, at = argument.address.base, argument.address.offset
    return isinstance(at, int) and (is_arena(base) or base == BLOB) and argument.type.dtype is not string


def _calls(plan: Plan) -> Iterator[tuple[Step, int, int]]:
    rows = {
        stage.run.number: (made, stage.step)
        for region in regions(plan.items)
        for stage, made in zip(region.stages, made_rows(region), strict=True)
    }
    yield from ((step, *rows.get(step.number, (0, 0))) for step in plan.steps())


def _alone(step: Step, plan: Plan, height: int, rows: int) -> CheckedCall:
    passed = [a for a in step.arguments if a.role not in step.function.unpassed]
    rooms, places = [], dict[str, str]()
    checked = {offset for check in plan.checks for offset in check.offsets}
    for number, together in enumerate(_overlapping(passed, plan)):
        low = min(_reached(a, plan)[0] for a in together)
        high = max(_reached(a, plan)[1] for a in together)
        exact = together[0].address.base == BLOB and any(a.address.offset in checked for a in together)
        room = MemoryObject(f"room{number}", max(high - low, 1), low if exact else None)
        rooms.append(room)
        for a in together:
            const = "" if a.written else "const "
            assert isinstance(a.address.offset, int)
            place = f"{room.name} + {a.address.offset - low}" if a.address.offset != low else room.name
            places[a.role] = f"({const}{a.type.dtype.storage_c} *)(void *)({place})"
    end = f"begin + {rows}" if height % max(rows, 1) == 0 else f"begin + {rows} < {height} ? begin + {rows} : {height}"
    more = ["begin", end] if height else []
    call = called(step.function.name, [*(places[a.role] for a in passed), *more])
    return CheckedCall(tuple(rooms), call, height, rows)


def _reached(argument: Argument, plan: Plan) -> tuple[int, int]:
    """The bytes that a step may touch, those behind its operand included."""
    low, high = touched(argument, plan)
    return low, high + argument.over_read if high > low else high


def _overlapping(arguments: Sequence[Argument], plan: Plan) -> list[list[Argument]]:
    """Arguments by the memory that they share, in the order of the call: places in memory make no other call of it."""
    order = {id(a): number for number, a in enumerate(arguments)}
    found: list[list[Argument]] = []
    base, end = "", 0
    for a in sorted(arguments, key=lambda a: (a.address.base, *touched(a, plan))):
        low, high = touched(a, plan)
        if a.address.base == base and low < end:
            found[-1].append(a)
            end = max(end, high)
        else:
            found.append([a])
            base, end = a.address.base, high
    return sorted(found, key=lambda each: min(order[id(a)] for a in each))
