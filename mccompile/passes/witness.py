"""Records of a compilation for evidence about its result: the program that was placed in memory, and what became of the
nodes. The C does not depend on them."""

from __future__ import annotations

from collections.abc import Mapping

from ..base.records import dataclass
from ..kernels.api import Needs
from ..kernels.registry import Registry
from ..plan.ir import Plan
from ..program.ir import Buffer, Call, Program
from ..targets.api import Target
from .history import History
from .memory.liveness import liveness


@dataclass(frozen=True)
class Witness:
    program: Program
    places: Mapping[Buffer, tuple[str, int]]  # base and offset of every buffer of the arenas
    registry: Registry
    target: Target
    keep_inputs: bool
    history: History

    def needs(self, call: Call) -> Needs | None:
        """What the call's kernel said of its operands."""
        found = self.registry[call.kernel].match(call, self.target)
        return found if isinstance(found, Needs) else None


def witness(
    program: Program, plan: Plan, registry: Registry, target: Target, keep_inputs: bool, history: History
) -> Witness:
    """Of a program and its plan, which lists lives in the order in which liveness finds them."""
    lives = zip(liveness(program, keep_inputs), plan.lives, strict=True)
    places = {buffer: (life.base, life.low) for buffer, life in lives}
    return Witness(program, places, registry, target, keep_inputs, history)
