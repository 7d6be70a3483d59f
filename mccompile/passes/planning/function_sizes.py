"""Where flash is preferred, functions that differ only in sizes become one, which reads the sizes from a table.

Invariant: what a step computes stays the same; every step of a shared function has a table with the numbers that were
constants in its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.dtypes import DType
from ...base.names import Names, c_identifier
from ...kernels.api import Kernel
from ...plan.handed import Table
from ...plan.ir import Function, Item, Step, with_steps
from ...program.ir import Call

MOST_SHORT = (1 << 15) - 1
_ADDRESS = " at 0x"  # in the text of an object that has none of its own: another one in every run


def instance(kernel: Kernel, call: Call) -> tuple[object, ...]:
    """What the text of a kernel's function depends on besides its parameters, without its sizes.

    A template may be given functions and objects that show nothing: that follows from kind, views and blocks.
    """
    texts = {name: repr(value) for name, value in kernel.context(call).items()}
    shown = sorted((name, text) for name, text in texts.items() if _ADDRESS not in text)
    views = [(view.shape, view.strides) for view in (*call.outs, *call.ins)] if len(shown) < len(texts) else []
    told = repr((call.kind, views, call.blocks)) if views else ""
    return kernel.id, repr(shown), told, call.rows, call.workers > 1


def share_functions(
    items: tuple[Item, ...], functions: tuple[Function, ...], names: Names, prefix: str
) -> tuple[tuple[Item, ...], tuple[Function, ...]]:
    """The items and functions with as few functions as the kernels allow."""
    families: dict[object, list[Function]] = {}
    for function in functions:
        families.setdefault(_family(function), []).append(function)
    shared: dict[str, Function] = {}
    found: list[Function] = []
    for members in families.values():
        first = members[0]
        if len(members) > 1:
            name = names.take(c_identifier(f"{prefix}_{first.kernel.family(first.call)}"))
            first = replace(first, name=name, table_c=_element([_numbers(member) for member in members]))
            shared |= {member.name: first for member in members}
        found.append(first)
    tables: dict[tuple[str, tuple[int, ...]], Table] = {}

    def changed(step: Step) -> Step:
        function = shared.get(step.function.name)
        if function is None:
            return step
        key = function.table_c, _numbers(step.function)
        table = tables.setdefault(key, Table(f"sizes{len(tables)}", *key))
        return replace(step, function=function, table=table)

    return with_steps(items, changed), tuple(found)


def _family(function: Function) -> object:
    """Functions that agree in this have the same text but for sizes."""
    call, kernel = function.call, function.kernel
    names = tuple(kernel.sizes(call))
    outs, ins = kernel.parameter_names(call)
    types: list[DType] = [view.buffer.dtype for view in (*call.outs, *call.ins)]
    parameters = (*outs, *ins), tuple(types), call.scratch is not None, function.aliased, function.sizes
    return (instance(kernel, call), parameters, names) if names else function.name


def _numbers(function: Function) -> tuple[int, ...]:
    return tuple(function.kernel.sizes(function.call).values())


def _element(tables: Sequence[tuple[int, ...]]) -> str:
    return "int16_t" if max(abs(number) for numbers in tables for number in numbers) <= MOST_SHORT else "int32_t"
