"""Functions that differ in sizes only have one body, which each hands its own. Compilers inline it (`MCC_PART`), so
what runs stays the same, and readers read it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.marked import SIGNATURE, called, including, named, names_alone, read
from ..base.names import Names, c_identifier
from ..plan.ir import Function
from .alike import SHORTEST, Family, Member, common, families
from .dead_constants import without_dead_constants
from .kernels import parameters
from .layout import blocks, shown
from .simplify import simplify

MOST_SIZES = 12  # a body that is handed more is no easier to read than several


def with_shared_bodies(functions: Sequence[Function], prefix: str) -> list[Function]:
    """The same functions in the same order; the first one of a family brings the body of all."""
    names = Names(function.name for function in functions)
    changed: dict[str, Function] = {}
    for members in families(functions, _may_share):
        if len(members) > 1 and 0 < len((family := common(members)).sizes) <= MOST_SIZES:
            name = names.take(c_identifier(f"{prefix}_{members[0].function.kernel.kind.name}_of_sizes"))
            changed |= {function.name: function for function in _calling(members, family, name)}
        else:
            changed |= {member.function.name: member.function for member in members}
    return [changed[function.name] for function in functions]


def _may_share(function: Function) -> bool:
    return len(function.body) >= SHORTEST


def _calling(members: Sequence[Member], family: Family, name: str) -> list[Function]:
    first = members[0].function
    top = blocks(names_alone(family.text))
    simplify(top)
    reads = without_dead_constants(top)
    handed = {parameter: line for parameter, line in parameters(first).items() if parameter in reads}
    sizes = {size: column for size, column in family.sizes.items() if size in reads}
    fails = bool(first.kernel.failure(first.call))
    head = called(
        f"MCC_PART {'int' if fails else 'void'} {name}", [*handed.values(), *(f"mcc_index {size}" for size in sizes)]
    )
    headers = "".join(map(including, sorted(read(family.text).headers)))
    body = headers + shown(top).replace(SIGNATURE, head)
    functions = []
    for row, member in enumerate(members):
        numbers = (str(column[row]) for column in sizes.values())
        call = called(name, (*map(named, handed), *numbers))
        text = f"{body}{SIGNATURE}\n{{\n{'return ' * fails}{call};\n}}\n"
        constants = tuple(sizes) if row == 0 else ()
        functions.append(replace(member.function, body=text, constants=constants))
        body = ""
    return functions
