"""Steps in portable C on targets that have better instructions, as the summary and the report name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .provenance import Provenance, show
from .records import dataclass


@dataclass(frozen=True)
class PortableStep:
    provenance: Provenance
    kernel: str
    share: float  # of a run, as estimated
    why: Sequence[str]  # no other kernel computes it

    def as_dict(self) -> dict[str, Any]:
        return {"name": show(self.provenance), "kernel": self.kernel, "share": round(self.share, 3), "why": [*self.why]}

    def show(self) -> str:
        """A line for the terminal."""
        what = f"{self.share:.0%} of a run is expected to go to {show(self.provenance)} in portable C ({self.kernel})"
        return f"portable {what}: {'; '.join(self.why)}"
