"""The known name that was probably meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, whatever their case; "" when none is."""
    by_lower = {one.lower(): one for one in sorted(known)}
    found = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[found[0]] if found else ""
