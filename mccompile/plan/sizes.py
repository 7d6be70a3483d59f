"""Which sizes that are known only at run time the parts of a plan name, and where they are known.

Invariant: what prints a part of a plan as C prints no other sizes, so whatever declares those of `needs` in front of it
declares all that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass

from ..base.dims import Dim, Symbolic, symbols
from ..expr.dims_c import sizes_in
from ..expr.ir import Expr
from ..program.ir import Call
from .copies import Awaited, Copied
from .ir import Address, Argument, Branch, Halt, Item, Measured, Plan, Repeat, RowRegion, State, Step, Tensor


def of_dims(dims: Iterable[Dim]) -> set[str]:
    return {symbol.name for dim in dims for symbol in symbols(dim)}


def of_call(call: Call) -> tuple[str, ...]:
    """Sizes in what a call is about: the shapes and strides of its operands, and all that its kind says."""
    dims = [dim for view in (*call.ins, *call.outs) for dim in (*view.shape, *view.strides)]
    return tuple(sorted(sizes_in((*dims, *_dims_of(call.kind)), call.kind.expressions())))


def _dims_of(parameter: object) -> Iterable[Symbolic]:
    match parameter:
        case Symbolic():
            yield parameter
        case Expr():
            return  # `Kind.expressions` names those
        case tuple() | list():
            for part in parameter:
                yield from _dims_of(part)
    if is_dataclass(parameter) and not isinstance(parameter, type | Symbolic):
        for field in fields(parameter):
            yield from _dims_of(getattr(parameter, field.name))


def of_address(address: Address) -> set[str]:
    return of_dims([address.offset])


def of_state(state: State) -> set[str]:
    """What bringing it to its place names."""
    if state.made == state.tensor.address:
        return set()
    return of_address(state.made) | of_address(state.tensor.address) | of_dims(state.tensor.type.shape)


def of_tensor(tensor: Tensor) -> set[str]:
    """What the functions name that say where it lies and which shape it has."""
    return of_address(tensor.address) | of_dims(tensor.type.shape)


def of_states(plan: Plan) -> set[str]:
    """What the shapes of states name: other values than before reset them."""
    return of_dims(dim for state in plan.states for dim in state.tensor.type.shape)


def of_step(step: Step) -> set[str]:
    return {*step.function.sizes, *(name for each in step.arguments for name in of_address(each.address))}


def _of_condition(item: Branch) -> set[str]:
    return set() if item.condition is None else of_address(item.condition.address)


def needs(item: Item) -> set[str]:
    """What an item names and neither measures before nor counts itself."""
    match item:
        case Step():
            return set() if item.shared else of_step(item)  # pieces have variables of their own
        case Branch():
            return _of_condition(item) | needed(item.then) | needed(item.otherwise)
        case Repeat():
            told = [item.trips, item.condition]
            places = [each.address for each in told if isinstance(each, Argument)]
            places += [place for swap in item.swaps for place in (swap.first, swap.second, swap.last)]
            trips = of_dims([item.trips]) if not isinstance(item.trips, Argument) else set()
            return trips.union(*map(of_address, places)) | (needed(item.items) - {item.counter})
        case RowRegion():
            return set().union(*(of_step(stage.run) for stage in item.stages))
        case Measured():
            return of_address(item.source.address)
        case Halt() | Copied() | Awaited():
            return set()


def needed(items: Iterable[Item]) -> set[str]:
    """What items that follow each other need from outside."""
    known: set[str] = set()
    found: set[str] = set()
    for item in items:
        found |= needs(item) - known
        if isinstance(item, Measured):
            known.add(item.symbol.name)
    return found


def unknown(plan: Plan) -> list[str]:
    """Whatever names a size that nobody knows there: what a function does not take, what is used before it is measured,
    or where it may not have been."""
    given = {symbol.name for symbol in plan.given}
    problems = [
        f"{function.name} names {name}, which it is not told"
        for function in plan.functions
        for name in sorted({*of_call(function.call)} - {*function.sizes})
    ]
    problems += [f"resize names {name}" for name in sorted(of_dims(plan.not_negative) - given)]
    known = _run(plan.items, given, problems)
    for state in plan.states:
        problems += [f"state {state.tensor.name} names {name}" for name in sorted(of_state(state) - known)]
    for tensor in plan.outputs:
        problems += [f"output {tensor.name} names {name}" for name in sorted(of_tensor(tensor) - known)]
    for tensor in (*plan.inputs, *(state.tensor for state in plan.states)):
        problems += [f"{tensor.name} names {name}" for name in sorted(of_tensor(tensor) - given)]
    return problems


def _run(items: Sequence[Item], before: set[str], problems: list[str]) -> set[str]:
    """What is known after the items, which begin with what is known before."""
    known = set(before)
    for item in items:
        match item:
            case Branch():
                problems += _missing(item, _of_condition(item) - known)
                ends = [_run(each, known, problems) for each in (item.then, item.otherwise) if not _stops(each)]
                known |= set.intersection(*ends) if ends else set()
            case Repeat():
                problems += _missing(item, needs(item) - needed(item.items) - known)
                inside = _run(item.items, known | {item.counter}, problems)
                runs = item.condition is None and isinstance(item.trips, int) and item.trips > 0
                known |= (inside if runs else set()) - {item.counter}
            case Measured():
                problems += _missing(item, needs(item) - known)
                known.add(item.symbol.name)
                problems += _missing(item, of_dims(item.not_negative) - known)
            case _:
                names = of_step(item) if isinstance(item, Step) else needs(item)
                problems += _missing(item, names - known)
    return known


def _stops(items: Sequence[Item]) -> bool:
    return bool(items) and isinstance(items[-1], Halt)


def _missing(item: Item, names: set[str]) -> list[str]:
    return [f"{item.provenance} names {name}, which is not known there" for name in sorted(names)]
