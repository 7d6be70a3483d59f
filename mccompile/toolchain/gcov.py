"""What runs of C have reached, as gcov counts it: statements and branches of each line.

Invariant: a line of a header that several files include has been reached where one of them has reached it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.records import dataclass

FLAGS = ("-O0", "--coverage", "-Wl,-u,__gcov_dump")
CDEF = "void __gcov_dump(void);"  # writes the counts of a loaded object
TOOLS = ("gcc", "gcov")


@dataclass(frozen=True)
class CountedLine:
    number: int
    function: str
    reached: bool  # every statement of it
    branches: tuple[bool, ...]  # each way out of each condition: was it taken?


def reached(folder: Path, notes: Path) -> dict[str, list[CountedLine]]:
    """By file of a folder, of the objects whose notes lie in `notes`."""
    found: dict[str, dict[int, CountedLine]] = {}
    for each in sorted(notes.glob("*.gcno")):
        command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", str(each)]
        done = subprocess.run(command, cwd=notes, capture_output=True, text=True, check=True)
        for file in json.loads(done.stdout)["files"]:
            path = Path(file["file"])
            if path.is_relative_to(folder):
                _add(found.setdefault(path.relative_to(folder).as_posix(), {}), file["lines"])
    return {path: [lines[number] for number in sorted(lines)] for path, lines in sorted(found.items())}


def _add(lines: dict[int, CountedLine], counted: Sequence[Mapping[str, Any]]) -> None:
    for number, line in _lines(counted):
        before = lines.get(number)
        if before is not None:
            was, now = before.branches, line.branches
            pairs = zip(was, now, strict=True) if len(was) == len(now) else []
            taken = tuple(a or b for a, b in pairs) or was or now
            line = CountedLine(number, line.function, before.reached or line.reached, taken)
        lines[number] = line


def _lines(counted: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, CountedLine]]:
    for line in counted:
        is_reached = line["count"] > 0 and not line["unexecuted_block"]
        taken = tuple(branch["count"] > 0 for branch in line["branches"])
        yield line["line_number"], CountedLine(line["line_number"], line.get("function_name", ""), is_reached, taken)
