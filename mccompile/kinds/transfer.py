"""transfer: the same elements in another memory, of which one may be reached by nothing else.

In a chain of rows copies may form a queue: each waits for the one before it, and what is `early` is left on its way
then. The rest of its rows is awaited by the next copy of the queue, the last rows at once.

Invariant: no other kind reads or writes a buffer that is `far`. Who reads rows that come early asks for those that
are copied next before it does, so that these have been awaited.
"""

from __future__ import annotations

from ..base.records import dataclass
from .api import MovedRows


@dataclass(frozen=True)
class Transfer(MovedRows):
    queued: bool = False
    early: bool = False  # and queued
