"""Checks the places of a memory plan: `python check_memory.py FOLDER`. Needs Python 3.10 and nothing else.

FOLDER/memory.json is accepted if
1. every buffer lies in its arena, at a multiple of its alignment, and where the buffer that it lies in says,
2. every access stays in its buffer, and every argument of a call in its memory, reads over the end included,
3. buffers that live at the same time and are not one block share no byte,
4. the arena ends where the last buffer does, and the largest live set is what it is said to be.
check_owners.py plays the program, check_calls.py reads the C.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def check(certificate: dict[str, Any]) -> list[str]:
    """All problems."""
    try:
        checker = Checker(certificate)
        checker.places()
        checker.apart()
        checker.bounds()
        for call in calls_in(certificate["program"]):
            checker.call(call)
        return checker.problems
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the certificate is malformed: {type(error).__name__}: {error}"]


class Checker:
    def __init__(self, certificate: dict[str, Any]) -> None:
        self.c = certificate
        self.problems: list[str] = []
        self.buffers: list[dict[str, Any]] = certificate["buffers"]
        self.arenas = {arena["base"]: arena for arena in certificate["arenas"]}

        if any(b["in"] is not None and not 0 <= b["in"][0] < n for n, b in enumerate(self.buffers)):
            raise ValueError("a buffer lies in one that comes behind it")

    def fail(self, text: str) -> None:
        if len(self.problems) < 20:
            self.problems.append(text)

    # -- places

    def places(self) -> None:
        for b in self.buffers:
            name = b["name"]
            if b["life"] is None:
                continue
            if b["base"] not in self.arenas:
                self.fail(f"{name} lies in no arena")
                continue
            arena = self.arenas[b["base"]]
            if not 0 <= b["begin"] <= b["begin"] + b["bytes"] <= arena["bytes"]:
                self.fail(f"{name} leaves {b['base']}")
            if b["align"].bit_count() != 1 or b["begin"] % b["align"] or arena["align"] % b["align"]:
                self.fail(f"{name} is not aligned")
            if not 0 <= b["life"][0] < b["life"][1] or not 0 <= b["over_read"] <= b["bytes"]:
                self.fail(f"{name} lives backwards, or is read over the end of all")
            if b["in"] is not None:
                around, shift = self.buffers[b["in"][0]], b["in"][1]
                if around["life"] and b["begin"] != around["begin"] + shift:
                    self.fail(f"{name} does not lie where {around['name']} says")
                used = b["bytes"] - b["over_read"]
                if b["part"] and around["life"] and not 0 <= shift <= shift + used <= around["bytes"]:
                    self.fail(f"{name} is not a part of {around['name']}")

    def root(self, number: int) -> int:
        while self.buffers[number]["in"] is not None:
            number = self.buffers[number]["in"][0]
        return number

    def alive(self) -> list[tuple[int, dict[str, Any]]]:
        return [(n, b) for n, b in enumerate(self.buffers) if b["life"] is not None and b["bytes"] > 0]

    def apart(self) -> None:
        """Two buffers that are not one block share no byte while both live."""
        active: list[tuple[int, dict[str, Any]]] = []
        for number, b in sorted(self.alive(), key=lambda pair: pair[1]["life"][0]):
            active = [(n, o) for n, o in active if o["life"][1] > b["life"][0]]
            for n, o in active:
                meet = b["begin"] < o["begin"] + o["bytes"] and o["begin"] < b["begin"] + b["bytes"]
                if meet and b["base"] == o["base"] and self.root(n) != self.root(number):
                    self.fail(f"{b['name']} lies over {o['name']}, which lives")
            active.append((number, b))

    def bounds(self) -> None:
        """The largest live set of each arena, a block counted as the bytes of it that live."""
        for base, arena in self.arenas.items():
            blocks: dict[int, list[dict[str, Any]]] = {}
            for number, b in self.alive():
                if b["base"] == base:
                    blocks.setdefault(self.root(number), []).append(b)
            times = sorted({b["life"][0] for parts in blocks.values() for b in parts})
            most = max((sum(covered(parts, t) for parts in blocks.values()) for t in times), default=0)
            if most != arena["live_bytes"] or not most <= arena["lower_bound"] <= arena["bytes"]:
                self.fail(f"the largest live set of {base} has {most} bytes, not {arena['live_bytes']}")
            top = max([b["begin"] + b["bytes"] for parts in blocks.values() for b in parts], default=0)
            if arena["bytes"] != top:
                self.fail(f"{base} has {arena['bytes']} bytes, and ends at {top}")

    # -- calls

    def call(self, call: dict[str, Any]) -> None:
        what = f"step {call['step']} ({call['function']})"
        views = [*call["writes"], *call["reads"], *call["workspace"]]
        if len(views) != len(call["arguments"]):
            self.fail(f"{what} has other arguments than accesses")
        for number, (a, view) in enumerate(zip(call["arguments"], views, strict=True)):
            room = self.arenas[a["base"]]["bytes"] if a["base"] in self.arenas else self.c["rooms"][a["base"]]
            if not 0 <= a["low"] <= a["high"] <= room:
                self.fail(f"{what}: {a['role']} touches bytes {a['low']} to {a['high']} of {room}")
            if a["at"] is not None and a["high"] > a["low"] and not a["low"] <= a["at"] < a["high"]:
                self.fail(f"{what}: {a['role']} does not begin in what it touches")
            if a["buffer"] != (None if view is None else view[0]):
                self.fail(f"{what}: {a['role']} is another buffer than its access")
            if a["written"] and a["base"] == "blob":
                self.fail(f"{what} writes to the blob")
            if a["written"] != (number < len(call["writes"]) or number >= len(views) - len(call["workspace"])):
                self.fail(f"{what}: {a['role']} is not what is written")
            if view is not None and a["base"] in self.arenas and view[3]:
                begin = self.buffers[view[0]]["begin"] + view[1]
                end = begin + view[3] + sum((count - 1) * stride for count, stride in view[2])
                most = self.buffers[view[0]]["begin"] + self.buffers[view[0]]["bytes"]
                if not self.buffers[view[0]]["begin"] <= a["low"] <= begin or not end <= a["high"] <= most:
                    self.fail(f"{what}: {a['role']} touches other bytes than its access")


def covered(parts: Iterable[dict[str, Any]], time: int) -> int:
    """Bytes of a block that live."""
    total, end = 0, -1
    for b in sorted((b for b in parts if b["life"][0] <= time < b["life"][1]), key=lambda b: b["begin"]):
        total += max(0, b["begin"] + b["bytes"] - max(end, b["begin"]))
        end = max(end, b["begin"] + b["bytes"])
    return total


def calls_in(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        ((kind, inner),) = item.items()
        yield from [inner] if kind == "call" else inner["calls"] if kind == "rows" else ()
        for name in {"if": ("then", "else"), "loop": ("body",)}.get(kind, ()):
            yield from calls_in(inner[name])


def main(folder: str) -> int:
    certificate = json.loads(Path(folder, "memory.json").read_text(encoding="utf-8"))
    problems = check(certificate)
    for problem in problems or [f"{len(certificate['buffers'])} buffers: accepted"]:
        print("memory: " + problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
