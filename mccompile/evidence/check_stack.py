"""Checks bounds of the stack: `python check_stack.py FOLDER [BUILD]`. Needs Python 3.10 and nothing else.

FOLDER/stack.json is accepted if no function calls itself, however far around, every function of the header has a bound,
a run reaches every function that memory.json has it call, and each bound is the longest path through the frames of what
is called, or says what comes on top. BUILD is a folder of your own build with gcc -fstack-usage: what its .su files say
of a function is no more than the certificate does.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

POINTER = "__indirect_call"  # a call of what a pointer says, which has no bound


def check(
    certificate: dict[str, Any], memory: dict[str, Any], header: str, built: Mapping[str, int | None]
) -> list[str]:
    """All problems. `memory`: the certificate of the plan; `built`: frames of functions of another build; None: without
    a bound."""
    try:
        return [
            *_bounds(certificate, header, memory["prefix"]),
            *_reached(certificate["functions"], memory),
            *_built(certificate["functions"], built),
        ]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the certificate is malformed: {type(error).__name__}: {error}"]


def _bounds(certificate: dict[str, Any], header: str, prefix: str) -> Iterator[str]:
    functions, bounds = certificate["functions"], certificate["bounds"]
    for name, f in functions.items():
        if f["bytes"] is not None and not 0 <= max([0, *f["calls"].values()]) <= f["bytes"]:
            yield f"{name} calls deeper than its frame"
    for name in re.findall(rf"^(?!static )\w[\w *]*\b({prefix}_\w+)\(", header, re.M):
        wanted = name in functions or re.fullmatch(rf"{prefix}_(?:init|run|reset|resize|push)", name)
        if wanted and name not in bounds:
            yield f"{name} of the header has no bound"
    most: dict[str, int | None] = {}
    unseen: dict[str, set[str]] = {}
    for name in _called_first(functions):
        frame = functions[name]
        ends, unseen[name] = [frame["bytes"]], set()
        for callee, taken in frame["calls"].items():
            below = most.get(callee) if callee in functions else 0  # one that is not done yet calls itself
            ends.append(None if below is None or callee == POINTER else taken + below)
            unseen[name] |= unseen.get(callee, set()) if callee in functions else {callee} - {POINTER}
        known = [end for end in ends if end is not None]
        most[name] = max(known) if len(known) == len(ends) else None
    for name, bound in bounds.items():
        if bound["bytes"] != most[name] or (most[name] is not None and sorted(unseen[name]) != bound["without"]):
            yield f"{name} takes {most[name]} bytes and {sorted(unseen[name])}, not {bound['bytes']}"


def _reached(functions: dict[str, Any], memory: dict[str, Any]) -> Iterator[str]:
    """Every function that a step calls is called from one that runs them."""
    prefix, found = memory["prefix"], set[str]()
    new = {name for name in functions if re.fullmatch(rf"{prefix}_(?:run|run_steps|push)|(?:piece|rows)_of_\d+", name)}
    while new:
        found |= new
        new = {callee for name in new for callee in functions[name]["calls"] if callee in functions} - found
    for name in sorted({call["function"] for call in calls_in(memory["program"])} - found):
        yield f"{name} is called by a step, and by nothing here"


def calls_in(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        ((kind, inner),) = item.items()
        yield from [inner] if kind == "call" else inner["calls"] if kind == "rows" else ()
        for name in {"if": ("then", "else"), "loop": ("body",)}.get(kind, ()):
            yield from calls_in(inner[name])


def _called_first(functions: dict[str, Any]) -> list[str]:
    """Every function behind those that it calls, but where one calls itself."""
    order: list[str] = []
    seen: set[str] = set()
    for first in functions:
        path = [first]
        while path:
            seen.add(path[-1])
            left = [c for c in functions[path[-1]]["calls"] if c in functions and c not in seen]
            path.append(left[0]) if left else order.append(path.pop())
    return order


def _built(functions: dict[str, Any], built: Mapping[str, int | None]) -> Iterator[str]:
    for name, taken in built.items():
        if name in functions and (taken is None or taken > (functions[name]["bytes"] or 0)):
            yield f"{name} takes {taken} bytes in this build, not {functions[name]['bytes']}"


def usage(folder: Path) -> dict[str, int | None]:
    """What gcc says of the functions of a build."""
    found: dict[str, int | None] = {}
    for path in sorted(folder.rglob("*.su")):
        for line in path.read_text(encoding="utf-8").splitlines():
            place, taken, kind = line.split("\t")
            name = place.rsplit(":", 1)[-1]
            before = found.get(name, 0)
            found[name] = None if kind == "dynamic" or before is None else max(before, int(taken))
    return found


def main(folder: Path, build: str = "") -> int:
    if not (folder / "stack.json").is_file():
        print("stack: not part of this folder")
        return 0
    certificate = json.loads((folder / "stack.json").read_text(encoding="utf-8"))
    memory = json.loads((folder / "memory.json").read_text(encoding="utf-8"))
    header = (folder / "code" / f"{memory['prefix']}.h").read_text(encoding="utf-8")
    problems = check(certificate, memory, header, usage(Path(build)) if build else {})
    for problem in problems or [f"{len(certificate['functions'])} functions: accepted"]:
        print("stack: " + problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "."), *sys.argv[2:3]))
