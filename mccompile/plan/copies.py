"""Copies of a plan: pieces of the blob that a run brings into an arena before it reads them, while steps run."""

from __future__ import annotations

from collections.abc import Iterable

from ..base.provenance import Provenance
from ..base.records import dataclass


@dataclass(frozen=True)
class Copied:
    """Begins to bring bytes of the blob's data to an arena; until they are awaited nobody else uses that memory."""

    source: int  # offset from the start of the blob's data
    base: str  # of an arena
    offset: int
    bytes: int
    provenance: Provenance


@dataclass(frozen=True)
class Awaited:
    """What a copy brings is there."""

    copy: Copied

    @property
    def provenance(self) -> Provenance:
        return self.copy.provenance


def copies(items: Iterable[object]) -> list[Copied]:
    """All of a plan, which are not in regions."""
    return [item for item in items if isinstance(item, Copied)]
