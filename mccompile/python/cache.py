"""Built models on disk, so that loading one again takes no compiler.

Invariant: an entry is complete or not there; its name is a hash of everything it was made from.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path

from .. import __version__
from ..base.discovery import cache_folder, data_folder
from ..driver import Options
from ..kernels.measurements import file_of
from ..targets.api import Target


def key(content: bytes, others: Iterable[Path], options: Options, target: Target, compiler: str) -> str:
    """What names an entry: model and files it refers to, options, target, the C compiler, and our own sources."""
    sha = hashlib.sha256(content)
    parts = [__version__, repr(target), compiler, *(f"{f.name}={_plain(getattr(options, f.name))}" for f in _FIELDS)]
    found = shutil.which(compiler.split()[0])
    tuned = [file_of(options.tuned)] if options.tuned is not None else []
    for path in [*([Path(found)] if found else []), *others, *_files(*options.kernels), *tuned]:
        parts.append(_stamp(path))
    parts.append(own_stamp(Path(__file__).parents[1], data_folder("kernels_templates"), data_folder("runtime_c")))
    sha.update("\0".join(parts).encode(errors="surrogateescape"))
    return sha.hexdigest()[:32]


@cache
def own_stamp(*folders: Path) -> str:
    """Of the sources that make code: in a checkout they change without a new version."""
    stamps = "\0".join(_stamp(path) for path in _files(*folders) if path.suffix != ".pyc")
    return hashlib.sha256(stamps.encode(errors="surrogateescape")).hexdigest()


def _files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def _stamp(path: Path) -> str:
    about = path.stat()
    return f"{path.resolve()} {about.st_size} {about.st_mtime_ns}"


_FIELDS = fields(Options)


def _plain(value: object) -> str:
    """A text that is the same in every process."""
    return repr(sorted(value)) if isinstance(value, frozenset) else repr(value)


def entry(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of an entry; where it is not there yet, `make` fills one. Two processes may do so at once."""
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=folder.parent) as scratch:
        made = Path(scratch, "entry")
        made.mkdir()
        make(made)
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker
                raise
    return folder
