"""A command of the user's that brings a build onto a board: it gets the folder of C files, with a server among them.

Invariant: only the user knows how the firmware of a board is linked and flashed; what the board then says that it is
(its identity) decides whether that went well.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path

from ..base.errors import CheckFailed, Problem, WrongUse

PLACE = "{}"
_SECONDS = 600


def refuse_unplaced(command: str, flag: str, what: str) -> None:
    """A command that does not get what it is about."""
    if PLACE not in command:
        fix = f"{flag} '{command} {PLACE}'"
        raise WrongUse(Problem(f"the command does not get the {what}", flag, f"{PLACE} stands for its path", fix))


def flashed(folder: Path, command: str) -> None:
    """Runs the command, and waits for its end; what it has started may go on."""
    words = [word.replace(PLACE, str(folder)) for word in shlex.split(command)]
    with tempfile.TemporaryFile() as said:  # no pipe, whose end an emulator in the background would keep open
        try:
            done = subprocess.run(words, stdout=said, stderr=said, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CheckFailed(Problem("the board could not be flashed", shlex.join(words), str(error))) from None
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    if done.returncode != 0:
        why = f"exit code {done.returncode}: {text[-600:]}"
        fix = "run it by hand with a folder that `mccompile serve` has added to"
        raise CheckFailed(Problem("the board could not be flashed", shlex.join(words), why, fix))
