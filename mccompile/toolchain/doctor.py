"""What is installed of what targets and options need: whether programs for each target can be built and run here, and
how to get what is missing.

Invariant: a compiler counts as there when it has compiled a program with the target's flags, not by its name alone.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mccompile.base.errors import MccError
from mccompile.base.extras import declared, version
from mccompile.targets import api
from mccompile.targets.api import Target

from ..base.records import dataclass
from .build import find_compiler
from .emulate import run_command
from .tools import install, missing

_PROGRAM = "#include <math.h>\n#include <string.h>\nint main(void) { return 0; }\n"
_SECONDS = 60
_DEVELOPING = ("docs", "examples", "mutants", "test")  # extras of mccompile that only its own development needs


@dataclass(frozen=True)
class Tools:
    """Of one target."""

    target: str
    compiler: str
    cannot_build: str  # why; empty: it can
    runner: str  # an emulator; empty: this machine
    cannot_run: str
    absent: tuple[str, ...]  # programs

    def as_dict(self) -> dict[str, Any]:
        return {
            "compiler": self.compiler,
            "builds": not self.cannot_build,
            "runner": self.runner or "this machine",
            "runs": not (self.cannot_build or self.cannot_run),
            "why": "; ".join(filter(None, (self.cannot_build, self.cannot_run))),
            "install": install(self.absent),
        }


def tools_of(target: Target) -> Tools:
    runner = run_command(target)[0] if target.run else ""
    absent: list[str] = []
    compiler = target.compiler
    cannot_build = cannot_run = ""
    try:
        if not target.run:
            compiler = str(find_compiler())
        elif missing([compiler]):
            absent, cannot_build = [compiler], f"{compiler} is not installed"
        if not cannot_build:
            cannot_build = _refusal(compiler, target.cflags, target.hosted)
            absent += [compiler] if cannot_build else []
    except MccError as error:
        absent, cannot_build = ["gcc"], error.problems[0].what
    if runner and missing([runner]):
        absent, cannot_run = [*absent, runner], f"{runner} is not installed"
    elif not runner and not api.runs_here(target):
        cannot_run = "this processor lacks its instructions"
    return Tools(target.name, compiler, cannot_build, runner, cannot_run, tuple(absent))


@cache
def _refusal(compiler: str, flags: tuple[str, ...], links: bool) -> str:
    """Why a compiler does not compile a program; empty where it does."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        source = Path(scratch, "program.c")
        source.write_text(_PROGRAM, encoding="utf-8")
        command = [*compiler.split(), *flags, str(source), "-o", str(Path(scratch, "program"))]
        command += ["-lm"] if links else ["-c"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{compiler} does not run: {error}"
    said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()
    return f"{compiler} fails: {said[0].rpartition(scratch)[2]}" if done.returncode else ""


@dataclass(frozen=True)
class Extra:
    """Python packages that an option or a command needs."""

    name: str
    packages: Mapping[str, str]  # version of each; empty: it is not installed

    @property
    def absent(self) -> list[str]:
        return [package for package, version in self.packages.items() if not version]


def extras() -> list[Extra]:
    """Those that the installed mccompile declares."""
    found = [(name, packages) for name, packages in declared().items() if name not in _DEVELOPING]
    return [Extra(name, {each: version(each) for each in packages}) for name, packages in found]
