"""Finds accelerators by folder: those that come with mccompile, and folders of the user's own."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path

from ..base.discovery import import_file
from ..base.errors import Problem, WrongUse
from ..base.near import meant
from .api import Accelerator

_HERE = Path(__file__).parent


def accelerator(asked: str) -> Accelerator:
    """The one that `--accelerator` names."""
    if Path(asked).is_dir():
        return _own(Path(asked))
    found = {name: each for each in _those_of_ours() for name in each.names}
    if asked not in found:
        fix = meant(asked, found, "--accelerator") or f"give one of {', '.join(found)}, or a folder with backend.py"
        raise WrongUse(Problem(f"there is no accelerator {asked!r}", "--accelerator", "", fix))
    made = found[asked](asked)
    made.check()
    return made


def _those_of_ours() -> list[type[Accelerator]]:
    folders = sorted(path.parent.name for path in _HERE.glob("*/backend.py"))
    return [_only(importlib.import_module(f"{__package__}.{name}.backend").__dict__) for name in folders]


def _own(folder: Path) -> Accelerator:
    path = folder / "backend.py"
    if not path.is_file():
        fix = "write it as docs/tutorials/add_an_accelerator.md does"
        where = f"--accelerator {folder}"
        raise WrongUse(Problem("the folder has no backend.py", where, "that is what describes an accelerator", fix))
    module = import_file(path, f"mccompile_accelerator.{zlib.crc32(str(path.resolve()).encode()):08x}")
    made = _only(vars(module), str(path))(folder.resolve().name)
    made.check()
    return made


def _only(names: dict[str, object], path: str = "") -> type[Accelerator]:
    """The one class of a module."""
    module = names["__name__"]
    found = [
        each
        for each in names.values()
        if isinstance(each, type) and issubclass(each, Accelerator) and each.__module__ == module
    ]
    if len(found) != 1:
        why = f"it has {len(found)} classes that are an Accelerator"
        raise WrongUse(Problem(f"{path} is not an accelerator", "--accelerator", why, "write one class there"))
    return found[0]
