"""What instructions do to registers of floats and vectors: these keep what is moved through them (addresses, numbers of
a program), and nothing is known of what they compute.

`s0` to `s31` stand behind the core registers; a `d` is two of them, a `q` four.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

FIRST = 17
_REGISTER = re.compile(r"\b([sdq])(\d+)\b")
_SPAN = re.compile(r"\b([sdq])(\d+)-[sdq](\d+)\b")
_WORDS = {"s": 1, "d": 2, "q": 4}


def places(text: str) -> list[int]:
    """Where the words of registers stand that a text names."""
    text = _SPAN.sub(lambda m: ", ".join(f"{m[1]}{n}" for n in range(int(m[2]), int(m[3]) + 1)), text)
    found: list[int] = []
    for kind, number in _REGISTER.findall(text):
        first = FIRST + _WORDS[kind] * int(number)
        found += range(first, first + _WORDS[kind])
    return found


def moved(name: str, parts: Sequence[str], core: Sequence[int | None]) -> list[str] | None:
    """A vmov between registers as lines, if it moves whole words; its core registers by position."""
    plain = all(re.fullmatch(r"[sd]\d+", part) or number is not None for part, number in zip(parts, core, strict=True))
    if name not in ("vmov", "vmov.f32", "vmov.f64", "vmov.32") or not plain:
        return None
    words: list[str] = []
    for part, number in zip(parts, core, strict=True):
        words += [f"r{number}"] if number is not None else [f"R[{place}]" for place in places(part)]
    half = len(words) // 2
    return [f"{', '.join(words[:half])} = {', '.join(words[half:])}"] if len(words) % 2 == 0 else None


def stored_bytes(name: str, parts: Sequence[str]) -> int:
    """At most."""
    if name.startswith(("vst2", "vst4")):
        return 64
    return 4 * len(places(parts[0])) or 16
