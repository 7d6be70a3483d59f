"""Which regions of a network an accelerator computes, and why it does not compute the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import field

from ..base.provenance import Provenance, show
from ..base.records import dataclass


@dataclass(frozen=True)
class HostUnit:
    """What an accelerator does not compute."""

    provenance: Provenance
    what: str
    why: str


@dataclass(frozen=True)
class TakenRegion:
    """What it does compute, and what that takes."""

    name: str
    provenance: Provenance
    units: int
    cycles: float
    waits: float  # of these, cycles in which it only waits for constants
    core_cycles: float  # that the core would take, without such waits
    workspace: int
    constants: int  # bytes

    @property
    def spent(self) -> str:
        there, core = f"{self.cycles:.0f} cycles", f"{self.core_cycles:.0f} on the core"
        if not self.waits:
            return f"{there} ({core})"
        return f"{there}, {self.waits:.0f} of them waiting for constants ({core}, where no wait is counted)"


@dataclass
class Partition:
    """Who computes what."""

    accelerator: str
    taken: list[TakenRegion] = field(default_factory=list)
    left: list[HostUnit] = field(default_factory=list)

    def within(self, functions: Set[str]) -> Partition:
        """Without regions that later passes found to be needed by nobody."""
        return Partition(self.accelerator, [each for each in self.taken if each.name in functions], self.left)

    def lines(self) -> list[str]:
        """For the terminal."""
        found = [
            f"region   {each.name} on {self.accelerator}: {each.units} operators in {each.spent}, "
            f"{each.workspace} bytes of workspace, {each.constants} of constants"
            for each in self.taken
        ]
        reasons = Counter((each.what, each.why) for each in self.left)
        for (what, why), count in reasons.items():
            found.append(f"core     {what}{f' ({count})' * (count > 1)}: {why}")
        return found

    def in_report(self) -> dict[str, object]:
        """For report.json."""
        return {
            "name": self.accelerator,
            "regions": [
                {
                    "name": each.name,
                    "nodes": list(each.provenance),
                    "operators": each.units,
                    "cycles": round(each.cycles),
                    "waiting_cycles": round(each.waits),
                    "core_cycles": round(each.core_cycles),
                    "workspace_bytes": each.workspace,
                    "constants_bytes": each.constants,
                }
                for each in self.taken
            ],
            "left": [{"node": show(each.provenance), "what": each.what, "why": each.why} for each in self.left],
        }
