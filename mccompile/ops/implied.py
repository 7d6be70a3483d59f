"""What inputs must hold where the shapes that a model declares for its outputs say so; see frontend/implied.py."""

from __future__ import annotations

import numpy as np

from ..base.dims import symbol
from ..base.records import dataclass
from .api import Fact, Lowering, OwnOperator, Site
from .rules.at_run_time import Formula, equals

ANY = -1  # an element that is not implied
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Implied(OwnOperator):
    """Operand 0, in a run where operand 1 holds these numbers; any other run ends with a status."""

    random = True  # never computed now: the check would be lost
    values: tuple[int, ...]

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(site.type(0))]

    def lower(self, to: Lowering) -> None:
        formula = Formula(to)
        for number, value in enumerate(self.values):
            if value != ANY:
                formula.require(equals(formula.element(1, number), value))
        formula.check()
        to.set(0, to.input(0))


@dataclass(frozen=True)
class PartlyKnown(OwnOperator):
    """The operand, some of whose elements are implied to be these numbers."""

    random = True
    values: tuple[int, ...]

    def infer(self, site: Site) -> list[Fact]:
        type = site.type(0)
        known = np.empty(len(self.values), dtype=object)
        for number, value in enumerate(self.values):
            known[number] = symbol(f"any_{number}", 0, _MOST) if value == ANY else value
        return [Fact(type, known.reshape(type.static_shape))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0))
