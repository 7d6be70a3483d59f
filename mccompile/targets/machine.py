"""What a processor takes for the things that kernels are made of: cycles, as far as choices among kernels need them.

Invariant: the numbers are a model, good enough to tell which kernel is quicker; `mccompile tune` measures. Those of a
field here are of a core with caches that begins several instructions at once; a target's file has its own under
`machine`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..base.records import dataclass


@dataclass(frozen=True)
class Machine:
    mac: float = 1.2  # a product in plain C: two elements loaded, multiplied and added
    result: float = 0.0  # what a sum of them takes besides in plain C: where it lies, its bounds, what becomes of it
    tap: float = 0.0  # the place of a tap in plain C, which the results of a group share
    element: float = 3.0  # an element in plain C: loaded, computed with, stored
    short_mac: float = 0.3  # a product of 8-bit integers, where one instruction makes two
    vector_element: float = 0.3  # an element among others in a vector: loaded, computed with, stored
    weight_byte: float = 0.0  # a byte of weights, where these come from a slow memory: each time that a call reads it
    copied_run: float = 3.0  # a run of bytes that is copied, besides its words
    row: float = 60.0  # a call for a row besides its work, with what finds the rows that it reads
    handover: float = 9000.0  # work that is worth to be shared by threads
    soft_float: float = 70.0  # an operation on floats by the library, where there is no FPU
    soft_divide: float = 130.0  # and a division of them
    issue: float = 4.0  # instructions that begin in a cycle
    loads: float = 2.0  # vectors loaded in a cycle
    stores: float = 1.0  # vectors stored in a cycle
    fmas: float = 2.0  # vectors multiplied and added in a cycle
    widest_fmas: float = 1.0  # the same of vectors of 64 bytes
    latency: float = 4.0  # until a sum can be added to again
    line: int = 64  # bytes of a line of the first-level cache
    sets: int = 64
    ways: int = 8
    from_second: float = 28.0  # bytes per cycle, read and written, between the first-level cache and the second
    from_third: float = 16.0  # and where they are too many for the second


USUAL = Machine()


def machine_in(table: dict[str, float]) -> Machine:
    """The numbers of a target's file in place of the usual ones."""
    types = {field.name: field.type for field in fields(Machine)}
    given: dict[str, Any] = {name: int(n) if types[name] == "int" else n for name, n in table.items()}
    return Machine(**given)


def read_machine(value: object) -> dict[str, float]:
    """What TOML holds; a ValueError says what it must be."""
    names = [field.name for field in fields(Machine)]
    if not isinstance(value, dict) or not value.keys() <= set(names):
        raise ValueError(f"a table of numbers called {', '.join(names)}")
    for number in value.values():
        if not isinstance(number, int | float) or isinstance(number, bool) or number <= 0:
            raise ValueError("a table of numbers above 0")
    return {name: float(number) for name, number in value.items()}
