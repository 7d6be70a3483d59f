"""The most stack that a call can need, from what is known of the frames of functions: what GCC says of its code
(-fcallgraph-info=su), and on bare metal the disassembly of the whole program (disassembly.py), in which libraries and
functions in assembly are too.

Invariant: the bound holds. A function whose stack is not known is named, not guessed; recursion, pointers to functions
and frames without a bound give no bound at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ..base.records import dataclass

FLAG = "-fcallgraph-info=su"  # of gcc 10 and newer: one .ci file beside each object
UNKNOWN = 0xFFFFFFFF  # what a program tells where it has no stack of a known size
_NODE = re.compile(r'node: { title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'edge: { sourcename: "([^"]+)" targetname: "([^"]+)"')
_FRAME = re.compile(r"(\d+) bytes \((static|dynamic,bounded|dynamic)\)")
_INDIRECT = "__indirect_call"


@dataclass(frozen=True)
class Bound:
    bytes: int | None  # None: there is none
    unseen: tuple[str, ...]  # functions whose stack comes on top

    def show(self) -> str:
        if self.bytes is None:
            return "not known"
        if not self.unseen:
            return f"at most {self.bytes} bytes"
        return f"static bound {self.bytes} bytes, plus {', '.join(f'{name} (unknown)' for name in self.unseen)}"


@dataclass
class Frame:
    """A function as its callers see it."""

    deepest: int | None = 0  # bytes that it takes itself; None: without a bound
    calls: dict[str, int] = field(default_factory=dict)  # how many of them it has taken then


def frames_by_compiler(files: Iterable[Path]) -> dict[str, Frame]:
    """Of the functions that GCC compiled. A call is taken to be made where the frame is deepest."""
    frames: dict[str, Frame] = {}
    edges: list[tuple[str, str]] = []
    for path in files:
        text = path.read_text(encoding="utf-8")
        for name, label in _NODE.findall(text):
            if found := _FRAME.search(label):
                frames[name] = Frame(None if found[2] == "dynamic" else int(found[1]))
        edges += _EDGE.findall(text)
    for caller, callee in edges:
        if caller in frames:
            frames[caller].calls[callee] = frames[caller].deepest or 0
    return frames


@dataclass(frozen=True)
class CallGraph:
    frames: Mapping[str, Frame]

    def below(self, functions: Iterable[str]) -> dict[str, Frame]:
        """What calls of these functions may lead to, where it is known."""
        found: dict[str, Frame] = {}
        left = [*functions]
        while left:
            name = left.pop()
            if name in self.frames and name not in found:
                found[name] = self.frames[name]
                left += found[name].calls
        return dict(sorted(found.items()))

    def exceeded(self, functions: Sequence[str], used: Sequence[int], room: int) -> str:
        """What is wrong with the bytes that calls of functions have taken; empty: nothing."""
        for name, taken in zip(functions, used, strict=True):
            bound = self.bound(name)
            if taken == UNKNOWN:
                continue
            if taken >= room:
                return f"{name} needs more than {room} bytes of stack"
            if bound.bytes is not None and not bound.unseen and taken > bound.bytes:
                return f"{name} took {taken} bytes of stack, more than its bound of {bound.bytes}: please report it"
        return ""

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
                frame = self.frames[name]
                ends = [frame.deepest]
                for callee, taken in sorted(frame.calls.items()):
                    below = deepest(callee, (*above, name))
                    ends.append(None if below is None else taken + below)
                some = [end for end in ends if end is not None]
                known[name] = max(some) if len(some) == len(ends) else None
            return known[name]

        return Bound(deepest(function, ()), tuple(sorted(unseen)))
