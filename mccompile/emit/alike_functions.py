"""Functions that differ in sizes only become one, which reads those from a table: where flash is preferred.

What is compared is what stands around the sizes that printers and templates mark (base/marked.py), so every portable
kernel that marks them takes part. Invariant: what a step computes stays the same; every step of a shared function has a
table with the sizes that stood in its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..base.marked import named, parted, plain
from ..base.names import Names, c_identifier
from ..plan.handed import Table
from ..plan.ir import Function, Plan, Step, with_steps
from .kernels import function_text, marked, signature, with_first

MOST_NUMBERS = 32  # in a table: more take more code than they save
SHORTEST = 900  # characters of a body that is worth it
MOST_SHORT = (1 << 15) - 1
MOST_LONG = (1 << 31) - 1


@dataclass(frozen=True)
class _Member:
    """A function, what stands around its sizes, and these."""

    function: Function
    parts: tuple[str, ...]
    numbers: tuple[int, ...]


def share_alike(plan: Plan) -> Plan:
    """The plan with as few functions as their texts allow."""
    names = Names()
    families: dict[object, list[_Member]] = {}
    for function in plan.functions:
        names.take(function.name)
        member = _member(function)
        families.setdefault(_family(member), []).append(member)
    functions: list[Function] = []
    shared: dict[str, tuple[Function, tuple[int, ...]]] = {}
    for members in families.values():
        columns = list(zip(*(member.numbers for member in members), strict=True))
        texts, several = _expressed(columns)
        if len(members) < 2 or len(several) > MOST_NUMBERS or any(max(column) > MOST_LONG for column in several):
            functions += [member.function for member in members]
            continue
        one = _one(members[0], [texts[column] for column in columns], several)
        one = replace(one, name=names.take(c_identifier(f"{plan.prefix}_{one.kernel.kind.name}_of_sizes")))
        functions.append(one)
        for row, member in enumerate(members):
            shared[member.function.name] = one, tuple(column[row] for column in several)
    tables: dict[tuple[str, tuple[int, ...]], Table] = {}

    def changed(step: Step) -> Step:
        if step.function.name not in shared:
            return step
        one, numbers = shared[step.function.name]
        key = one.table_c, numbers
        return replace(step, function=one, table=tables.setdefault(key, Table(f"numbers{len(tables)}", *key)))

    return replace(plan, items=with_steps(plan.items, changed), functions=tuple(functions))


def _member(function: Function) -> _Member:
    parts, numbers = parted(marked(function))
    return _Member(function, tuple(parts), tuple(numbers))


def _family(member: _Member) -> object:
    """Members that agree in this can become one."""
    function = member.function
    if function.kernel.isa != "c" or function.table_c:
        return function.name
    if len(function_text(function)) - len(plain(signature(function))) < SHORTEST:
        return function.name
    return function.kernel.id, signature(replace(function, name="")), member.parts


Column = tuple[int, ...]  # a number, as the members have it


def _expressed(columns: list[Column]) -> tuple[dict[Column, str], list[Column]]:
    """C for every number, and which of them have to be read: others are so much more, or so many times as much."""
    texts: dict[Column, str] = {}
    read: list[Column] = []
    for column in sorted(set(columns)):
        if len(set(column)) == 1:
            texts[column] = str(column[0])
            continue
        for place, known in enumerate(read):
            pairs, size = list(zip(column, known, strict=True)), named(f"size{place}")
            more, times = {a - b for a, b in pairs}, {a / b if b else 0.0 for a, b in pairs}
            if len(more) == 1:
                texts[column] = f"({size} {more.pop():+})".replace("+", "+ ").replace("-", "- ")
                break
            if len(times) == 1 and (factor := times.pop()).is_integer():
                texts[column] = f"({size} * {factor:.0f})"
                break
        else:
            texts[column] = named(f"size{len(read)}")
            read.append(column)
    return texts, read


def _one(first: _Member, texts: list[str], several: list[Column]) -> Function:
    """The function for all members."""
    filled = [first.parts[0]]
    for text, part in zip(texts, first.parts[1:], strict=True):
        filled += [text, part]
    names = tuple(f"size{place}" for place in range(len(several)))
    constants = [f"const mcc_index {name} = sizes[{place}];" for place, name in enumerate(names)]
    largest = max((number for column in several for number in column), default=0)
    table_c = "int16_t" if largest <= MOST_SHORT else "int32_t"
    return replace(first.function, table_c=table_c, body=with_first("".join(filled), constants), constants=names)
