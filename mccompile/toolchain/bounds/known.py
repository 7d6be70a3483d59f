"""What is known at a place of a run."""

from __future__ import annotations

from ...base.records import dataclass
from .blocks import FLAGS, LANES, Registers
from .memory import Memory
from .values import meet


@dataclass
class State:
    registers: Registers
    memory: Memory
    cost: int
    calls: dict[int, int]  # instructions of all calls of each function, with what it calls

    def copy(self) -> State:
        return State([*self.registers], self.memory.copy(), 0, {})

    def meet(self, other: State) -> None:
        self.registers = [
            (a if a == b else None) if place in (FLAGS, LANES) else meet(a, b)
            for place, (a, b) in enumerate(zip(self.registers, other.registers, strict=True))
        ]
        self.memory.meet(other.memory)
        self.cost = max(self.cost, other.cost)
        for function, instructions in other.calls.items():
            self.calls[function] = max(instructions, self.calls.get(function, 0))

    def behind(self, before: State) -> None:
        """As it is when `before` has come first."""
        self.cost += before.cost
        for function, instructions in before.calls.items():
            self.calls[function] = self.calls.get(function, 0) + instructions
