"""What is known at a place of a run."""

from __future__ import annotations

from dataclasses import dataclass

from .blocks import FLAGS, LANES, Registers
from .memory import Memory
from .values import meet


@dataclass
class State:
    registers: Registers
    memory: Memory
    cost: int
    visits: dict[object, int]  # how often each block is entered, and each call of what is known already

    def copy(self) -> State:
        return State([*self.registers], self.memory.copy(), 0, {})

    def meet(self, other: State) -> None:
        self.registers = [
            (a if a == b else None) if place in (FLAGS, LANES) else meet(a, b)
            for place, (a, b) in enumerate(zip(self.registers, other.registers, strict=True))
        ]
        self.memory.meet(other.memory)
        self.cost = max(self.cost, other.cost)
        for key, times in other.visits.items():
            self.visits[key] = max(times, self.visits.get(key, 0))

    def behind(self, before: State) -> None:
        """As it is when `before` has come first."""
        self.cost += before.cost
        for key, times in before.visits.items():
            self.visits[key] = self.visits.get(key, 0) + times
