"""The Python packages that options and commands need beyond those that are always there: extras, as pyproject.toml
declares them.

Invariant: what is told to be installed are names that an index has; mccompile itself may have come from a file.
"""

from __future__ import annotations

import re
from importlib import metadata

_REQUIREMENT = re.compile(r"([\w.-]+).*;.*extra *== *['\"]([\w-]+)['\"]")


def declared() -> dict[str, list[str]]:
    """Packages by the extra of the installed mccompile that has them."""
    found: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("mccompile") or []
    except metadata.PackageNotFoundError:
        requirements = []
    for match in filter(None, map(_REQUIREMENT.match, requirements)):
        found.setdefault(match[2], []).append(match[1])
    return found


def version(package: str) -> str:
    """Empty where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def install(extra: str) -> str:
    """The command that brings what an extra lacks here."""
    packages = declared().get(extra, [extra])
    return f"pip install {' '.join([each for each in packages if not version(each)] or packages)}"
