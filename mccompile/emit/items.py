"""The items of a plan as C: what a run does, step by step.

Invariant: every size that is known only at run time is a variable where it is named: those that are given at the top,
those that a run finds out once they are measured, or where a block first names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from ..base.dtypes import i64
from ..base.marked import called, listed, words
from ..base.provenance import show
from ..base.records import dataclass
from ..expr.dims_c import dim_c
from ..expr.scalar_c import literal_c
from ..plan.constants import Checked
from ..plan.copies import Awaited, Copied
from ..plan.ir import (
    BLOB,
    Address,
    Argument,
    Branch,
    Halt,
    Item,
    Measured,
    Phase,
    Plan,
    Repeat,
    RowRegion,
    Shared,
    State,
    Step,
    Swap,
)
from ..plan.row_calls import row_calls
from ..plan.sizes import needed, needs, of_state, of_step
from .addresses import IN_STRUCT, in_struct, passed, pointer
from .inside import handed_out, rows_handed_out, timed
from .render import comment
from .rows import RowFunction, is_deep, long_chain, row_functions, row_slices, short_chain

_TOP = "    "  # the indentation of items that are not part of others
_FAST = 16  # bytes from which on copying piece by piece is no slower than memmove


def body(plan: Plan, phase: Phase, items: Sequence[Item]) -> str:
    """The steps of a phase."""
    used = needed(items).union(*map(of_state, phase.states))
    given = sorted(used & {symbol.name for symbol in plan.given})
    names = frozenset(given)
    return "\n".join([*_sizes(names, _TOP), *_items(items, _TOP, names), *_states(phase.states, names)])


def printed_items(items: Sequence[Item]) -> list[str]:
    """The lines of some items of a run."""
    return _items(items, _TOP)


def chain_functions(items: Iterable[Item]) -> list[RowFunction]:
    """Those of the long chains of rows that are not part of another item."""
    chains = (item for item in items if isinstance(item, RowRegion) and _is_long(item))
    return [function for chain in chains for function in row_functions(chain, _step)]


def _is_long(region: RowRegion) -> bool:
    return is_deep(region) and not needs(region)


def _condition(branch: Branch) -> str:
    if branch.condition is None:
        return "m->advances == 0u"
    return f"*{pointer(branch.condition.address, 'uint8_t', const=True)} != 0u"


def after_items(phase: Phase) -> str:
    """What a phase does behind its items."""
    return "\n".join(_states(phase.states))


@dataclass(frozen=True)
class Slices:
    """Of an item, or all of a chain of rows or of a long step: then `body` makes the call that is slice `step`."""

    first: int
    end: int
    body: str

    @property
    def is_single(self) -> bool:
        return self.end == self.first + 1


def slices(plan: Plan) -> list[Slices]:
    """The same, item by item, and chains of rows call by call: for each slice that of which it is a part."""
    indent = " " * 8
    found: list[Slices] = []
    for item in plan.items:
        if isinstance(item, RowRegion):
            first, end = len(found), len(found) + len(row_calls(item))
            last = handed_out(item.stages[-1].run, indent + "    ")
            body = [*_sizes(needs(item), indent), *row_slices(item, first, indent, _step, last)]
            found += [Slices(first, end, "\n".join(body))] * (end - first)
        elif isinstance(item, Step) and item.cuts:
            first, end = len(found), len(found) + len(item.cuts) - 1
            found += [Slices(first, end, "\n".join(_piece_by_piece(item, first, indent)))] * (end - first)
        else:
            found.append(_slice(len(found), _items((item,), indent)))
    kept = [f"    {line}".rstrip() for line in _states(plan.states)]
    return [*found, _slice(len(found), kept)] if kept else found


def _piece_by_piece(item: Step, first: int, indent: str) -> list[str]:
    """The piece of a step that is slice `step`, of which the first one is `first`."""
    last = first + len(item.cuts) - 2
    place = f"[step - {first}u]" if first else "[step]"
    more = f"cuts{place}", f"cuts[step - {first - 1}u]" if first > 1 else f"cuts[step{' + 1u' * (first == 0)}]"
    lines = [
        *_sizes(needs(item), indent),
        f"{indent}static const mcc_index cuts[{len(item.cuts)}] = {{{listed(map(str, item.cuts))}}};",
        *_step(item, indent, more),
    ]
    behind = handed_out(item, indent + "    ")
    return [*lines, f"{indent}if (step == {last}u) {{", *behind, f"{indent}}}"] if behind else lines


def one_slice(found: Sequence[Slices]) -> str:
    """C that runs slice `step`: chains of rows, long steps, and what lies between, in the order in which they run."""
    each = {slices.first: slices for slices in found}.values()
    lines = [] if found else ["    (void)m;", "    (void)step;"]
    for is_single, group in groupby(each, lambda slices: slices.is_single):
        some = [*group]
        lines += _cases(some) if is_single else [line for slices in some for line in _chain(slices)]
    return "\n".join(lines)


def _cases(group: Iterable[Slices]) -> list[str]:
    cases = [[f"    case {one.first}u: {{", one.body, "        break;", "    }"] for one in group]
    return ["    switch (step) {", *(line for case in cases for line in case), "    default: break;", "    }"]


def _chain(rows: Slices) -> list[str]:
    behind = f"step >= {rows.first}u && " if rows.first else ""
    return [f"    if ({behind}step < {rows.end}u) {{", rows.body, "    }"]


def _slice(number: int, lines: Sequence[str]) -> Slices:
    return Slices(number, number + 1, "\n".join(lines).rstrip("\n"))


def _sizes(names: Collection[str], indent: str) -> list[str]:
    """Variables for sizes, as the model's struct has them."""
    return [f"{indent}const mcc_index {name} = {IN_STRUCT}{name};" for name in sorted(names)]


def _states(states: Sequence[State], known: frozenset[str] = frozenset()) -> list[str]:
    """Brings what the next run is to find to its place, where it has not been made there."""
    lines = _sizes(set().union(*map(of_state, states)) - known, "    ")
    for state in states:
        if state.made == state.tensor.address:
            continue
        type = state.tensor.type
        size = dim_c(type.count * type.dtype.bits // 8) if not type.is_static else str(type.max_bytes)
        size = size if type.is_static else f"(size_t)({size})"
        places = (pointer(state.tensor.address, "uint8_t", False), pointer(state.made, "uint8_t", True))
        lines.append("    " + _note(f'state "{comment(state.tensor.name)}" for the next run'))
        lines.append(f"    {_move(state, places, size)}")
    return [*lines, ""] if lines else []


def _move(state: State, places: tuple[str, str], size: str) -> str:
    """The statement that brings a state to its place; pieces as long as it moves by do not overlap."""
    to, origin = state.tensor.address, state.made
    nbytes = state.tensor.type.max_bytes
    if to.base != origin.base or not (isinstance(to.offset, int) and isinstance(origin.offset, int)):
        return f"memcpy({', '.join(places)}, {size});"
    by = origin.offset - to.offset
    if abs(by) >= nbytes:
        return f"memcpy({', '.join(places)}, {size});"
    if by < _FAST or nbytes % by:
        return f"memmove({', '.join(places)}, {size});"
    first, second = (f"{place} + i" for place in places)
    return f"for (size_t i = 0; i < {size}u; i += {by}u) memcpy({first}, {second}, {by});"


def _items(items: Sequence[Item], indent: str, known: frozenset[str] = frozenset()) -> list[str]:
    """`known` are the sizes that are variables already."""
    lines: list[str] = []
    for number, item in enumerate(items, 1):
        lines += _sizes(needs(item) - known, indent)
        known |= needs(item)
        if isinstance(item, Branch):
            lines.append(indent + _note(comment(show(item.provenance))))
            lines.append(f"{indent}if ({_condition(item)}) {{")
            lines += _items(item.then, indent + "    ", known)
            if item.otherwise:
                lines.append(f"{indent}}} else {{")
                lines += _items(item.otherwise, indent + "    ", known)
            lines.append(f"{indent}}}")
        elif isinstance(item, Repeat):
            lines += [*_repeat(item, indent, known), ""]
        elif isinstance(item, Measured):
            lines += _measured(item, indent)
            if item.symbol.name in needed(items[number:]):
                lines += _sizes({item.symbol.name}, indent)
                known |= {item.symbol.name}
            lines.append("")
        elif isinstance(item, Halt):
            lines.append(indent + _note(comment(f"{show(item.provenance)}: {item.why}")))
            lines.append(f"{indent}return MCC_ERR_{item.status};")
        elif isinstance(item, Copied | Awaited):
            lines += [*_copy(item, indent), ""]
        elif isinstance(item, RowRegion):
            in_functions = indent == _TOP and _is_long(item)
            lines += long_chain(item, indent) if in_functions else short_chain(item, indent, _step)
            lines += [*handed_out(item.stages[-1].run, indent), ""]
        else:
            lines += [*_step(item, indent), *handed_out(item, indent), ""]
    return lines[:-1] if lines and not lines[-1] and indent != _TOP else lines


def _copy(item: Copied | Awaited, indent: str) -> list[str]:
    copy, what = (item, "begin") if isinstance(item, Copied) else (item.copy, "wait")
    about = f"weights of {comment(show(item.provenance))}: {'begin to copy' if what == 'begin' else 'wait for'}"
    call = called(f"mcc_window_{what}", _piece(copy))
    return [f"{indent}{_note(f'{about} {copy.bytes} bytes')}", f"{indent}if ({call} != 0) return MCC_ERR_READ;"]


def _piece(copy: Copied) -> list[str]:
    return ["&m->window", _to(copy), f"{copy.source}u", f"{copy.bytes}u"]


def _to(copy: Copied) -> str:
    return pointer(place_of(copy, copy.source), "void", const=False)


def place_of(copy: Copied, source: int) -> Address:
    """Where a copy brings what lies in the blob at `source`."""
    return Address(copy.base, copy.offset + source - copy.source)


def _measured(item: Measured, indent: str) -> list[str]:
    name, low, high = item.symbol.name, item.symbol.low, item.symbol.high
    place = pointer(item.source.address, "int64_t", const=True)
    return [
        f"{indent}{_note(f'{comment(show(item.provenance))}: how many, from {low} to {high}')}",
        f"{indent}if (*{place} < {low} || *{place} > {high}) return MCC_ERR_SIZE;",
        f"{indent}m->{name} = (mcc_index)*{place};",
        *(f"{indent}if ({in_struct(dim)} < 0) return MCC_ERR_SIZE;" for dim in item.not_negative),
    ]


def _repeat(loop: Repeat, indent: str, known: frozenset[str]) -> list[str]:
    trips = f"{loop.trips} trips" if not isinstance(loop.trips, Argument) else "as many trips as an operand says"
    lines = [f"{indent}{_note(f'{comment(show(loop.provenance))}: {trips}')}", f"{indent}{{"]
    inner = indent + "    "
    for swap in loop.swaps:
        if swap.now:
            for name, place in ((swap.now, swap.first), (swap.next, swap.second)):
                lines.append(f"{inner}uint8_t *{name} = {pointer(place, 'uint8_t', const=False)};")
    limit = dim_c(loop.trips) if not isinstance(loop.trips, Argument) else ""
    if isinstance(loop.trips, Argument):
        limit = f"{loop.counter}_end"
        lines.append(f"{inner}const int64_t {limit} = *{pointer(loop.trips.address, 'int64_t', const=True)};")
    test = f"{loop.counter} < {limit}"
    if loop.condition is not None:
        test += f" && *{pointer(loop.condition.address, 'uint8_t', const=True)} != 0u"
    lines.append(f"{inner}for (mcc_index {loop.counter} = 0; {test}; ++{loop.counter}) {{")
    lines += _items(loop.items, inner + "    ", known | {loop.counter})
    for swap in loop.swaps:
        if swap.now:
            lines.append(f"{inner}    SWAP({swap.now}, {swap.next});")
    lines.append(f"{inner}}}")
    lines += [f"{inner}{_settle(swap)}" for swap in loop.swaps if not swap.settled]
    return [*lines, f"{indent}}}"]


def _settle(swap: Swap) -> str:
    """Brings what a loop carried to its place."""
    place = pointer(swap.last, "uint8_t", const=False)
    if not swap.now:
        return f"(void)memcpy({place}, {pointer(swap.first, 'uint8_t', const=True)}, {swap.bytes});"
    copy = f"(void)memcpy({place}, {swap.now}, {swap.bytes});"
    elsewhere = swap.last not in (swap.first, swap.second)
    return copy if elsewhere else f"if ({swap.now} != {place}) {copy}"


def _step(step: Step, indent: str, more: tuple[()] | tuple[str, str] = ()) -> list[str]:
    calls = [f"{call});" for call in _calls(step, more)]
    if step.failure:
        calls = [f"if ({call}) != 0) return {step.failure};" for call in _calls(step, more)]
    lines = [f"{indent}{_comment(step)}", *timed(step, calls, indent)]
    return lines + (rows_handed_out(step, indent, *more) if more else [])


def _calls(step: Step, more: tuple[str, ...] = ()) -> list[str]:
    """One, or one for each phase; up to the last parenthesis."""
    if step.shared:
        phases = enumerate(step.shared.phases, step.shared.number)
        return [f"share(m, piece_of_{number}, {len(pieces)}" for number, pieces in phases]
    return [f"{step.function.name}({_arguments(step, more)}"]


def pieces(step: Step, shared: Shared) -> Iterator[dict[str, object]]:
    """What the functions print that run one piece of a step, or of a phase of it."""
    for number, pieces in enumerate(shared.phases, shared.number):
        ends = (pieces[0][0], *(end for _, end in pieces))
        yield {
            "number": number,
            "comment": _comment(step),
            "ends": ", ".join(map(str, ends)),
            "count": len(ends),
            "sizes": sorted(of_step(step)),
            "call": f"{step.function.name}({_arguments(step, ('ends[piece]', 'ends[piece + 1]'))});",
        }


def _note(text: str) -> str:
    """A comment, which may be folded between its words."""
    return f"/* {words(text)} */"


def _comment(step: Step) -> str:
    made = ", ".join(str(type) for a, type in passed(step) if a.written and a.role != "scratch")
    used = ", ".join(str(type) for a, type in passed(step) if not a.written)
    types = f"{used} -> {made}".strip()
    where = "".join(f"; {base} {low}..{high}" for base, (low, high) in step.arena_ranges.items())
    return _note(f"{comment(show(step.provenance))}: {step.op} {types}{where}")


def _arguments(step: Step, more: tuple[str, ...]) -> str:
    unpassed = step.function.unpassed
    arguments = [_argument(a, step.function.kernel.asks) for a in step.arguments if a.role not in unpassed]
    if step.shared and step.shared.workspace:
        arguments[-1] += f" + piece * {step.shared.workspace}"
    table = [step.table.name] if step.table else []
    queue = ["&m->copying"] if step.function.kernel.queued(step.function.call) else []
    return listed([*arguments, *queue, *table, *step.function.sizes, *more])


def _argument(argument: Argument, asks: bool) -> str:
    if asks and not argument.written:
        return f"&m->{argument.address.base}"
    return pointer(argument.address, argument.type.dtype.storage_c, const=not argument.written)


def bring_c(copy: Copied) -> str:
    """A call that brings a piece of the blob, and is 0 if that went well."""
    return called("mcc_window_read", _piece(copy))


def check_c(check: Checked, copy: Copied | None = None) -> str:
    """A call that is true where constants are as the code needs them, in the blob or where a copy has brought them."""
    places = [Address(BLOB, offset) if copy is None else place_of(copy, offset) for offset in check.offsets]
    tables = [pointer(place, check.dtype.storage_c, const=True) for place in places]
    arguments = [*tables, f"{check.count}u", *(literal_c(number, i64) for number in check.numbers)]
    return called(f"mcc_check_{check.function}_{check.dtype}", arguments)
