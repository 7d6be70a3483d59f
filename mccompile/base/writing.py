"""What is said of a file that cannot be written: the reason, and what would let it be."""

from __future__ import annotations

import shlex
from pathlib import Path

from .errors import Problem, WrongUse


def cannot_write(what: str, path: Path, error: OSError, option: str = "-o") -> WrongUse:
    """`option`: the flag that names the file."""
    fix = f"give a file in a folder that can be written to {option}"
    if path.is_dir():
        fix = f"did you mean {option} {path / ('report.html' if option == '--html' else 'result.onnx')}?"
    elif not path.parent.exists():
        fix = f"mkdir -p {shlex.quote(str(path.parent))}"
    return WrongUse(Problem(f"cannot write {what}", str(path), error.strerror or str(error), fix))
