"""Numbered requirements of operators, and the tests that hold them: requirements.toml, which pages are made from.

Invariant: a requirement has its operator's name and a number, and names a test.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files as resources
from typing import Any

from ..base.records import dataclass

ABOUT = ("domain", "types", "shape", "value", "special", "errors")
_HEAD = """# Requirements of operators

What generated code does for the operators below: numbered, and each with the tests that hold it. Where nothing is said,
ONNX's standard holds, with [the choices](../fuzzing.md#where-the-standard-leaves-a-choice) that it leaves.
`mccompile evidence` cites the requirements of the operators that a network has. A number is never used twice.
"""


@dataclass(frozen=True)
class Requirement:
    id: str  # CONV-3
    about: str
    text: str
    tests: tuple[str, ...]  # as pytest names them

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, "about": self.about, "text": self.text, "tests": list(self.tests)}


@cache
def requirements() -> Mapping[str, tuple[Requirement, ...]]:
    """By operator."""
    text = resources("mccompile.evidence").joinpath("requirements.toml").read_text(encoding="utf-8")
    return {
        op: tuple(
            Requirement(number, each["about"], each["text"], tuple(each["tests"])) for number, each in own.items()
        )
        for op, own in tomllib.loads(text).items()
    }


def cited(operators: Iterable[str]) -> dict[str, Any]:
    """Requirements of the operators of a network, and the operators that have none yet."""
    names, known = sorted(set(operators)), requirements()
    return {
        "operators": {name: [each.as_dict() for each in known[name]] for name in names if name in known},
        "without": [name for name in names if name not in known],
    }


def page() -> str:
    """docs/requirements/index.md."""
    parts = [_HEAD]
    for op, own in requirements().items():
        parts.append(f"\n## {op}\n\n| | about | requirement | tests |\n|---|---|---|---|\n")
        for each in own:
            tests = "<br>".join(f"`{test}`" for test in each.tests)
            parts.append(f"| {each.id} | {each.about} | {each.text.replace('*', chr(92) + '*')} | {tests} |\n")
    return "".join(parts)
