"""The rounding spread of a reference: its results move when its optimiser is on, when it computes in float64, or when
weights and inputs are moved by a unit in the last place. Where a network rounds to integers or nearly cancels out, the
spread is far more than the tolerance of a comparison, and no implementation can be held to that.

Invariant: an output is wrong whose difference is more than twice the spread, over all sets of inputs together: in the
number of elements that exceed the tolerance, or in how far the worst of them does. A label is wrong where none of the
reference's runs with the same inputs gives it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.records import dataclass
from .compare import Comparison

SLACK = 2.0


@dataclass(frozen=True)
class Distance:
    """From the reference, over all sets."""

    mismatches: int
    excess: float  # of the worst element, over what is allowed of it

    @staticmethod
    def of(comparisons: Sequence[Comparison]) -> Distance:
        return Distance(sum(c.mismatches for c in comparisons), max((c.excess for c in comparisons), default=0.0))


@dataclass(frozen=True)
class Spread:
    """Of one output that exceeds the tolerance."""

    output: str
    sets: int
    found: Distance
    own: Distance  # the most of the reference's others
    unexplained: int = 0  # labels that the reference gives in no way

    @property
    def covers(self) -> bool:
        most = SLACK * max(self.own.mismatches, 1), SLACK * self.own.excess
        return not self.unexplained and self.found.mismatches <= most[0] and self.found.excess <= most[1]


def spread(
    output: str, found: Sequence[Comparison], others: Sequence[Sequence[Comparison]], unexplained: int = 0
) -> Spread | None:
    """None where types or shapes differ, or there is nothing to go by; `others` are the reference's own, each over
    the same sets."""
    comparable = [Distance.of(other) for other in others if other and not any(c.why for c in other)]
    if not comparable or any(c.why for c in found):
        return None
    own = Distance(max(o.mismatches for o in comparable), max(o.excess for o in comparable))
    return Spread(output, len(found), Distance.of(found), own, unexplained)
