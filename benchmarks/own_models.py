"""The models that belong to the project, and how a measurement gets from one of them to object files.

Invariant: everything goes the way a user goes: the command line compiles, the target's own compiler and flags build.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mccompile.targets.api import Target

TOP = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class OwnModel:
    """A committed network, and the names of the one input and output that its C functions carry."""

    path: Path
    input: str
    output: str

    @property
    def name(self) -> str:
        return self.path.stem


OWN_MODELS = (OwnModel(TOP / "examples" / "digits" / "digits.onnx", "image", "scores"),)


@dataclass(frozen=True)
class Generated:
    """What mccompile wrote for one model and one target."""

    folder: Path
    target: Target
    arena_bytes: int
    weights_bytes: int

    def sources(self) -> list[Path]:
        """Every C file except the program that shows how to use them."""
        found = [*self.folder.glob("*.c"), *self.folder.glob("runtime/**/*.c")]
        return sorted(path for path in found if path.name != "main.c")

    def compile_flags(self) -> list[str]:
        headers = {path.parent for path in self.folder.rglob("*.h")}
        return [*self.target.cflags, *(f"-I{folder}" for folder in sorted(headers))]


def compile_to_c(model: OwnModel, target: Target, folder: Path) -> Generated:
    run([sys.executable, "-m", "mccompile", str(model.path), "--target", target.name, "-o", str(folder)])
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return Generated(folder, target, int(report["arena_bytes"]), int(report["weights_bytes"]))


def missing(*programs: str) -> str:
    """The first of these programs that is not installed, or an empty string."""
    return next((program for program in programs if shutil.which(program) is None), "")


def run(command: list[str]) -> str:
    """Standard output of a command; the process ends with the command's own words when it fails."""
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} from {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout
