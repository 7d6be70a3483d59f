"""The known names that were probably meant by one that is not known: the only place that guesses.

By meaning first (`meanings`), then by letters; a prefix that all names have (`--`) does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from .meanings import ours

_LETTERS, _OPTIONS = 0.6, 0.7  # how alike names have to be; options are many and short


def near(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, whatever their case; "" when none is."""
    return next(iter(_nearest(name, known, 1)), "")


def meant(name: str, known: Iterable[str], flag: str = "", most: int = 1) -> str:
    """`did you mean Conv or ConvTranspose?`, each behind its flag; "" when nothing is like it and there are several."""
    there = list(known)
    names = _nearest(name, there, most) or (there if len(there) == 1 else [])
    found = [f"{flag} {close}".lstrip() for close in names]
    return f"did you mean {' or '.join(found)}?" if found else ""


def near_file(path: Path, *patterns: str) -> str:
    """The same for a file that is not there, among those beside it (a link that leads nowhere
    is none); an ending that all of them have does not count."""
    beside = (other for pattern in patterns for other in path.parent.glob(pattern) if other.exists())
    there = {other.name: other.stem for other in beside}
    stem = near(path.stem, there.values())
    close = [name for name, own in there.items() if stem and own == stem]
    close.sort(key=lambda name: Path(name).suffix != path.suffix)
    return f"did you mean {path.with_name(close[0])}?" if close else ""


def _nearest(name: str, known: Iterable[str], most: int) -> list[str]:
    by_lower = {one.lower(): one for one in sorted(known)}
    if name.lower() in by_lower:
        return [by_lower[name.lower()]]
    meanings = [by_lower[word] for word in ours(name) if word in by_lower]
    if meanings:
        return meanings[:1]
    is_option = name.startswith("--")
    bare = {lower.lstrip("-"): one for lower, one in by_lower.items()} if is_option else by_lower
    letters = name.lower().lstrip("-") if is_option else name.lower()
    return [bare[close] for close in get_close_matches(letters, bare, most, _OPTIONS if is_option else _LETTERS)]
