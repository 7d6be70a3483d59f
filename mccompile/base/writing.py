"""What is said of a file that cannot be written: the reason, and what would let it be."""

from __future__ import annotations

import errno
import io
import shlex
import tempfile
from pathlib import Path
from traceback import walk_tb

from .errors import Problem, WrongUse


def cannot_write(what: str, path: Path, error: OSError, option: str = "-o") -> WrongUse:
    """`option`: the flag that names the file."""
    fix = f"give a file in a folder that can be written to {option}"
    if path.is_dir():
        fix = f"did you mean {option} {path / 'result.onnx'}?"
    elif not path.parent.exists():
        fix = f"mkdir -p {shlex.quote(str(path.parent))}"
    return WrongUse(Problem(f"cannot write {what}", str(path), error.strerror or str(error), fix_of(error, path, fix)))


def fix_of(error: OSError, path: Path, usual: str) -> str:
    """What lets the file be written: where its disk is full, room on it."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return usual
    if path.absolute().is_relative_to(Path(tempfile.gettempdir()).absolute()):
        return "make room there, or name another folder for temporary files: TMPDIR=FOLDER mccompile ..."
    return "make room there, or write to another disk"


def written(error: OSError) -> Path | None:
    """The file that was written to when the error was raised: the system names none where it was open already. None
    for a standard stream."""
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        for name, local in frame.f_locals.items():
            if name == "self" and isinstance(local, Path):
                return local
            if isinstance(local, io.IOBase) and isinstance(called := getattr(local, "name", None), str):
                return None if called.startswith("<") else Path(called)
    return None
