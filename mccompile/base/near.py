"""The known names that were probably meant by one that is not known: the only place that guesses."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


def near(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, whatever their case; "" when none is."""
    return next(iter(_nearest(name, known, 1)), "")


def meant(name: str, known: Iterable[str], flag: str = "", most: int = 1) -> str:
    """`did you mean Conv or ConvTranspose?`, each behind its flag; "" when nothing is like it."""
    found = [f"{flag} {close}".lstrip() for close in _nearest(name, known, most)]
    return f"did you mean {' or '.join(found)}?" if found else ""


def near_file(path: Path, *patterns: str) -> str:
    """The same for a file that is not there, among those beside it."""
    names = [other.name for pattern in patterns for other in path.parent.glob(pattern)]
    close = near(path.name, names)
    return f"did you mean {path.with_name(close)}?" if close else ""


def _nearest(name: str, known: Iterable[str], most: int) -> list[str]:
    by_lower = {one.lower(): one for one in sorted(known)}
    return [by_lower[close] for close in get_close_matches(name.lower(), by_lower, most)]
