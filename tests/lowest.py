"""The lowest versions that pyproject.toml allows of what mccompile needs, as pip takes them:

    python tests/lowest.py              the packages, such as onnx==1.19
    python tests/lowest.py --check      refuses an environment that has others

Invariant: the bounds stand in pyproject.toml and nowhere else.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def bounds() -> dict[str, str]:
    """Name and lowest version of every package that is needed at run time."""
    wanted = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", text) for text in wanted)
    return {each[1]: each[2] for each in found if each}


def is_lowest(installed: str, bound: str) -> bool:
    """1.19.0 is 1.19."""
    return re.sub(r"(\.0)+$", "", installed) == re.sub(r"(\.0)+$", "", bound)


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        print("\n".join(f"{name}=={bound}" for name, bound in bounds().items()))
        return 0
    others = {name: version(name) for name, bound in bounds().items() if not is_lowest(version(name), bound)}
    print("\n".join(f"{name} is {found}, not {bounds()[name]}" for name, found in others.items()), end="")
    return len(others) > 0


if __name__ == "__main__":
    sys.exit(main())
