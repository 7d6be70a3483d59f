"""Provenance: the names of the model's nodes that something was made from.

Carried by graph nodes, calls, buffers and steps alike, so comments, reports and errors can point into the model.
"""

from __future__ import annotations

from collections.abc import Iterable

Provenance = tuple[str, ...]


def merge(*parts: Iterable[str]) -> Provenance:
    """All names, each once, in order of first appearance."""
    return tuple(dict.fromkeys(name for part in parts for name in part))


def show(provenance: Provenance, limit: int = 4) -> str:
    """For comments and messages: the first few names and how many are left out."""
    shown = " + ".join(provenance[:limit])
    return f"{shown} + {len(provenance) - limit} more" if len(provenance) > limit else shown
