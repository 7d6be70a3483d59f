"""The most stack that a call can need, from what GCC says of its own code (-fcallgraph-info=su).

Invariant: the bound holds for all code that the compiler saw. What it did not see (functions of its libraries)
is named, not guessed; recursion, pointers to functions and frames without a bound give no bound at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FLAG = "-fcallgraph-info=su"  # of gcc 10 and newer: one .ci file beside each object
_NODE = re.compile(r'node: { title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'edge: { sourcename: "([^"]+)" targetname: "([^"]+)"')
_FRAME = re.compile(r"(\d+) bytes \((static|dynamic,bounded|dynamic)\)")
_INDIRECT = "__indirect_call"


@dataclass(frozen=True)
class Bound:
    bytes: int | None  # None: there is none
    unseen: tuple[str, ...]  # functions whose stack comes on top


class CallGraph:
    def __init__(self, files: Iterable[Path]) -> None:
        self.frames: dict[str, int | None] = {}  # bytes; None: without a bound
        self.calls: dict[str, set[str]] = {}
        for path in files:
            text = path.read_text(encoding="utf-8")
            for name, label in _NODE.findall(text):
                frame = _FRAME.search(label)
                if frame:
                    self.frames[name] = None if frame[2] == "dynamic" else int(frame[1])
            for caller, callee in _EDGE.findall(text):
                self.calls.setdefault(caller, set()).add(callee)

    def bound(self, function: str) -> Bound:
        """Of a call of a function, its own frame included."""
        if function not in self.frames:
            return Bound(None, ())
        unseen: set[str] = set()
        known: dict[str, int | None] = {}

        def deepest(name: str, above: tuple[str, ...]) -> int | None:
            if name in above or name == _INDIRECT:
                return None
            if name not in self.frames:
                unseen.add(name)
                return 0
            if name not in known:
                below = [deepest(callee, (*above, name)) for callee in sorted(self.calls.get(name, ()))]
                own = self.frames[name]
                some = [depth for depth in below if depth is not None]
                known[name] = own + max(some, default=0) if own is not None and len(some) == len(below) else None
            return known[name]

        return Bound(deepest(function, ()), tuple(sorted(unseen)))
