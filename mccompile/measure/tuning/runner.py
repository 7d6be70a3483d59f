"""A command of the user's that measures a kernel on a real board: it gets the program, and prints a figure.

Where the target has an operating system the program runs a kernel again and again and prints what a run takes; the
command brings it to the board, over ssh or otherwise, and what it prints goes through. Elsewhere the command gets the
folder of C files, since only the user knows how firmware of the board is linked. The last number that it prints counts.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from ...base.errors import CheckFailed, Problem
from ...targets.api import Target
from ...toolchain.emulate import timing_program
from ..flashing import PLACE

_SECONDS = 600
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def by_command(command: str, folder: Path, target: Target, cc: str | None) -> float:
    """The figure that the command prints for C in a folder."""
    subject = timing_program(folder, target, cc) if target.hosted else folder
    words = [word.replace(PLACE, str(subject)) for word in shlex.split(command)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckFailed(Problem("the runner failed", shlex.join(words), str(error))) from None
    figures = _NUMBER.findall(done.stdout)
    if done.returncode != 0 or not figures or float(figures[-1]) <= 0:
        why = f"exit code {done.returncode}, and it prints {done.stdout.strip()[-200:]!r} {done.stderr.strip()[-400:]}"
        fix = "let it print a positive number in its last line: what a run takes, in any unit"
        raise CheckFailed(Problem("the runner gives no figure", shlex.join(words), why, fix))
    return float(figures[-1])
