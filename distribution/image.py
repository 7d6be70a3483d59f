"""Builds the image of distribution/Dockerfile; where no daemon of Docker is, runs what can be run of it without.

python distribution/image.py            docker build, then a compile in the image
python distribution/image.py --without  its RUN lines: packages of apt by a simulated installation (Debian), of pip
                                        from a copy of the project into an empty environment, where the entry point then
                                        compiles a network
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
FILE = TOP / "distribution" / "Dockerfile"
MODEL = "examples/digits/digits.onnx"


@dataclass(frozen=True)
class Line:
    instruction: str
    rest: str

    @property
    def commands(self) -> list[list[str]]:
        """What RUN runs, one after the other."""
        return [shlex.split(part) for part in self.rest.split(" && ")]


def lines(text: str) -> Iterator[Line]:
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip() and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            yield Line(instruction, rest.strip())


def build() -> int:
    subprocess.run(["docker", "build", "-f", str(FILE), "-t", "mccompile", str(TOP)], check=True)
    mounted = ["-v", f"{TOP / 'examples'}:/models/examples:ro"]
    command = ["docker", "run", "--rm", *mounted, "mccompile", MODEL, "-o", "/tmp/out", "--target", "cortex-m4"]
    return subprocess.run(command, check=False).returncode


def without() -> int:
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        copied, environment = Path(scratch, "src"), Path(scratch, "environment")
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
        for name in filter(None, tracked.split("\0")):
            (copied / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, copied / name)
        venv.create(environment, with_pip=True)
        for command in (
            each for line in lines(FILE.read_text()) if line.instruction == "RUN" for each in line.commands
        ):
            here = _here(command, copied, environment)
            print(shlex.join(here) if here else f"not run: {shlex.join(command)}", flush=True)
            if here and subprocess.run(here, check=False, stdout=subprocess.DEVNULL).returncode:
                return 1
        entry = [str(environment / "bin" / "mccompile"), str(TOP / MODEL), "-o", str(Path(scratch, "out"))]
        return subprocess.run(entry, check=False).returncode


def _here(command: list[str], copied: Path, environment: Path) -> list[str]:
    """The same command where nothing of this machine may change; nothing where that cannot be."""
    if command[:2] == ["apt-get", "install"]:
        return ["apt-get", "--simulate", *command[1:]] if shutil.which("apt-get") else []
    if command[:3] == ["python", "-m", "pip"]:
        python = str(environment / "bin" / "python")
        return [python, *(word.replace("/src", str(copied)) for word in command[1:])]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--without", action="store_true", help="without Docker")
    return without() if parser.parse_args().without else build()


if __name__ == "__main__":
    sys.exit(main())
