"""Runs the roads to a first result of README.md, each in a copy of the project and an environment that holds nothing:
`python -m tests.docs.first_results`. A road whose comment names a command that is not installed is left out and told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.docs.pages import TOP, blocks

MOST = 5  # commands
_MARK = "first_results.py"


@dataclass(frozen=True)
class Road:
    about: str
    commands: tuple[str, ...]

    @property
    def absent(self) -> list[str]:
        """Programs that its comment names and that are not here."""
        words = self.about.partition(": ")[2].partition(";")[0].split()
        return [word for word in words if "-" in word or word == "node" if not shutil.which(word)]


def roads(page: Path = TOP / "README.md") -> Iterator[Road]:
    for block in blocks(page.read_text(encoding="utf-8")):
        if _MARK in block.not_run:
            about, *commands = block.code.strip().splitlines()
            yield Road(about.lstrip("# "), tuple(commands))


def prepared(folder: Path) -> dict[str, str]:
    """A copy of the project, and variables that lead to an environment that holds nothing but pip."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, folder / name)
    venv.create(folder / ".env", with_pip=True)
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV", "CI"))}
    return outside | {"PATH": f"{folder / '.env' / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def followed(road: Road, folder: Path, environment: Mapping[str, str]) -> bool:
    """Do all commands succeed? What the last one prints is shown, or what one that fails does."""
    said = ""
    for command in road.commands:
        kept: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, check=False, **kept)
        said = str(done.stdout)
        if done.returncode != 0:
            print(f"{road.about}\n$ {command}\n{said}exit code {done.returncode}")
            return False
    print(said.rstrip()[-400:])
    return True


def main() -> int:
    failed = 0
    for road in roads():
        if road.absent:
            print(f"left out: {road.about} ({', '.join(road.absent)} is not installed)")
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
            failed += not followed(road, Path(folder), prepared(Path(folder)))
        print(f"{len(road.commands)} commands in {time.monotonic() - started:.0f} s: {road.about}\n", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
