"""The same elements in another shape: what the file says the result has."""

from __future__ import annotations

from ..api import Site, converts


@converts("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(site: Site) -> None:
    site.store(site.requantized(site.reshape(site.stored(0), *site.out().shape)))
