"""transfer: the same elements in another memory, of which one may be reached by nothing else.

Invariant: no other kind reads or writes a buffer that is `far`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .api import MovedRows


@dataclass(frozen=True)
class Transfer(MovedRows):
    pass
