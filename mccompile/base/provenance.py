"""Provenance: the names of the model's nodes that something was made from.

Carried by graph nodes, calls, buffers and steps alike, so comments, reports and errors can point into the model.
"""

from __future__ import annotations

from collections.abc import Iterable

Provenance = tuple[str, ...]


def merge(*parts: Iterable[str]) -> Provenance:
    """All names, each once, in order of first appearance."""
    return tuple(dict.fromkeys(name for part in parts for name in part))


LONGEST = 64  # letters of a name that are shown; converters make one of all that they fused


def show(provenance: Provenance, limit: int = 4) -> str:
    """For comments and messages: how the first few names begin, and how many are left out."""
    names = tuple(dict.fromkeys(n if len(n) <= LONGEST else f"{n[: LONGEST - 3]}..." for n in provenance))
    shown = " + ".join(names[:limit])
    return f"{shown} + {len(names) - limit} more" if len(names) > limit else shown
