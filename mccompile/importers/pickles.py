"""What a pickle names, without loading it."""

from __future__ import annotations

import pickletools
from collections.abc import Iterable

LARGEST = 1 << 26  # bytes that are looked at
_SHOWN = 8


def names(data: bytes) -> set[str]:
    """Everything global that a pickle refers to, as `module.name`."""
    found, pushed, memo = set(), ["", ""], []
    try:
        for opcode, argument, _ in pickletools.genops(data[:LARGEST]):
            if opcode.name == "GLOBAL":
                found.add(".".join(str(argument).split(" ", 1)))
            elif opcode.name == "STACK_GLOBAL":
                found.add(f"{pushed[-2]}.{pushed[-1]}")
            if opcode.name == "MEMOIZE":
                memo.append(pushed[-1])
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                pushed.append(memo[argument] if isinstance(argument, int) and argument < len(memo) else "")
            else:
                pushed.append(argument if isinstance(argument, str) else "")
    except ValueError:  # cut off, or raw arrays between, as joblib writes them
        pass
    return found


def listed(found: Iterable[str]) -> str:
    """A few of them, in order."""
    known = sorted(found)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more
