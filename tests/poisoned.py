"""A compiled model that overwrites, before every step, all memory that the plan calls dead: results must not change.

Steps that fill dead ranges of the arena are put into the finished plan, before each step and region (also inside of
branches and loops), so what is emitted otherwise stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mccompile.base.dtypes import u8
from mccompile.base.tensor import TensorType
from mccompile.emit.package import Package, package
from mccompile.expr.ir import literal
from mccompile.kernels.registry import Registry
from mccompile.kinds.map import Map
from mccompile.plan.ir import Address, Argument, Branch, Function, Halt, Item, Plan, Repeat, Step
from mccompile.plan.lives import Life
from mccompile.program.ir import Buffer, Call

KERNEL = "map/any_strided_loops__c"


def poisoned(made: Package, pattern: int) -> Package:
    """`made`, but with fills of a byte in it."""
    work = _Poisoner(made.plan, pattern)
    items = tuple(work.items(made.plan.items))
    plan = replace(made.plan, items=items, functions=(*made.plan.functions, *work.functions.values()))
    return package(plan, (), (), "poisoned")


class _Poisoner:
    def __init__(self, plan: Plan, pattern: int) -> None:
        self.plan, self.pattern = plan, pattern
        self.kernel = Registry.load()[KERNEL]
        self.functions: dict[int, Function] = {}
        self.time = 0

    def items(self, items: Iterable[Item]) -> Iterator[Item]:
        """Time runs as in plan_memory: one for every item, a region before what is in it."""
        for item in items:
            self.time += 1
            if not isinstance(item, Halt):
                for arena in self.plan.arenas:
                    lives = [life for life in self.plan.lives if life.base == arena.base]
                    for span in dead_ranges(lives, self.time, arena.bytes):
                        yield self.fill(arena.base, span)
            match item:
                case Branch():
                    yield replace(item, then=tuple(self.items(item.then)), otherwise=tuple(self.items(item.otherwise)))
                case Repeat():
                    yield replace(item, items=tuple(self.items(item.items)))
                case _:
                    yield item

    def fill(self, base: str, span: tuple[int, int]) -> Step:
        low, high = span
        type = TensorType(u8, (high - low,))
        if high - low not in self.functions:
            target = Buffer("dead", u8, type.shape).whole()
            call = Call(Map(literal(self.pattern, u8)), (), (target,), ("poison",), KERNEL)
            name = f"{self.plan.prefix}_poison_{high - low}"
            self.functions[high - low] = Function(name, self.kernel, call, frozenset())
        argument = Argument("y", Address(base, low), type, low, high, True)
        return Step("map", self.functions[high - low], (argument,), 0, ("poison",))


def dead_ranges(lives: Iterable[Life], time: int, size: int) -> list[tuple[int, int]]:
    """What nobody reads any more, or will have written before it is read."""
    alive = sorted((life.low, life.high) for life in lives if life.start < time < life.end)
    found, end = [], 0
    for low, high in [*alive, (size, size)]:
        if low > end:
            found.append((end, low))
        end = max(end, high)
    return found
