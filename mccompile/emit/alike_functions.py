"""Functions that differ in sizes only become one, which reads those from a table: where flash is preferred.

Invariant: what a step computes stays the same; every step of a shared function has a table with the sizes that stood in
its own.
"""

from __future__ import annotations

from dataclasses import replace

from ..base.marked import plain
from ..base.names import Names, c_identifier
from ..plan.handed import Table
from ..plan.ir import Function, Plan, Step, with_steps
from .alike import SHORTEST, Family, common, families
from .kernels import function_text, signature, with_first

MOST_NUMBERS = 32  # in a table: more take more code than they save
MOST_SHORT = (1 << 15) - 1
MOST_LONG = (1 << 31) - 1


def share_alike(plan: Plan) -> Plan:
    """The plan with as few functions as their texts allow."""
    names = Names(function.name for function in plan.functions)
    functions: list[Function] = []
    shared: dict[str, tuple[Function, tuple[int, ...]]] = {}
    for members in families(plan.functions, _may_share):
        family = common(members)
        columns = family.sizes.values()
        if len(members) < 2 or len(columns) > MOST_NUMBERS or any(max(column) > MOST_LONG for column in columns):
            functions += [replace(member.function, body="") for member in members]
            continue
        one = _one(members[0].function, family)
        one = replace(one, name=names.take(c_identifier(f"{plan.prefix}_{one.kernel.kind.name}_of_sizes")))
        functions.append(one)
        for row, member in enumerate(members):
            shared[member.function.name] = one, tuple(column[row] for column in columns)
    tables: dict[tuple[str, tuple[int, ...]], Table] = {}

    def changed(step: Step) -> Step:
        if step.function.name not in shared:
            return step
        one, numbers = shared[step.function.name]
        key = one.table_c, numbers
        return replace(step, function=one, table=tables.setdefault(key, Table(f"numbers{len(tables)}", *key)))

    return replace(plan, items=with_steps(plan.items, changed), functions=tuple(functions))


def _may_share(function: Function) -> bool:
    is_portable = function.kernel.isa == "c"
    return is_portable and len(function_text(function)) - len(plain(signature(function))) >= SHORTEST


def _one(first: Function, family: Family) -> Function:
    """The function for all members."""
    constants = [f"const mcc_index {name} = sizes[{place}];" for place, name in enumerate(family.sizes)]
    largest = max((number for column in family.sizes.values() for number in column), default=0)
    table_c = "int16_t" if largest <= MOST_SHORT else "int32_t"
    body = with_first(family.text, constants)
    return replace(first, table_c=table_c, body=body, constants=tuple(family.sizes))
