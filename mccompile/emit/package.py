"""The output folder: all files are made in memory, written aside, and put in place by renames.

Invariant: when writing fails, the folder is what it was before. Files that mccompile did not make are never touched: a
folder that holds some is taken only if its report lists what an earlier run made, and nothing else in it is replaced or
removed.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.discovery import data_folder
from ..base.errors import Problem, WrongUse
from ..base.structures import Interface
from ..passes.api import Explanation, Record
from ..passes.moves_left import Move
from ..plan.ir import Plan
from . import blob as blob_format
from .kernels import kernel_files
from .model import model_files, runtime_version
from .report import report

WORKERS = ("mcc_pool.h", "mcc_openmp.h")  # for models that workers share
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
MARK, LIST = "report.json", "files"  # a folder with that file was made by mccompile; the key lists what is in it


@dataclass(frozen=True)
class Package:
    """A compiled model: its plan and its files by their path below the output folder."""

    plan: Plan
    files: Mapping[str, bytes]
    explanations: Sequence[Explanation] = ()  # of the choice of kernels
    identity: bytes = bytes(16)
    with_weights_of: Callable[[str, bytes], Mapping[str, str]] = lambda prefix, identity: {}  # own files for that blob

    def write(self, folder: Path) -> None:
        write_folder(folder, self.files)


def package(
    plan: Plan,
    passes: Sequence[Record],
    moves: Sequence[Move],
    version: str,
    left_in_float: Mapping[str, str] | None = None,
    carrier: str = blob_format.ARRAY,
    interface: Interface | None = None,
    section: str = "",
) -> Package:
    """`left_in_float`: nodes between quantized tensors that are computed in floats, and why.
    `carrier`: how programs get the blob; `section`: where the linker puts it. `interface`: where inputs or outputs are
    not only tensors."""
    include = data_folder("runtime_c") / "include"
    needed = runtime_version((include / "mcc.h").read_text(encoding="utf-8"))
    alignment = max(16, plan.arena_align)
    kernels = kernel_files(plan.prefix, plan.functions, plan.steps())
    nothing = bytes(16)
    weights_bytes = len(blob_format.blob(plan, nothing, alignment))
    about = interface.lines() if interface else []
    draft = model_files(plan, nothing, alignment, weights_bytes, needed, carrier, about)
    identity = blob_format.identity(plan, "".join([*kernels.values(), draft[f"{plan.prefix}.c"]]))
    contents = blob_format.blob(plan, identity, alignment)

    def with_weights_of(prefix: str, identity: bytes) -> dict[str, str]:
        return model_files(plan, identity, alignment, weights_bytes, needed, carrier, about, prefix)

    texts = {**with_weights_of(plan.prefix, identity), **kernels}
    workers = WORKERS if any(step.shared for step in plan.steps()) else ()
    texts |= {f"runtime/{name}": text for name, text in _runtime(include, texts.values(), workers).items()}
    if carrier == blob_format.ARRAY:
        texts[f"{plan.prefix}_weights.c"] = blob_format.weights_source(plan.prefix, contents, alignment, section)
    elif carrier == blob_format.INCBIN:
        texts[f"{plan.prefix}_weights.c"] = blob_format.incbin_source(plan.prefix, weights_bytes, alignment, section)
    files = {name: text.encode() for name, text in texts.items()} | {f"{plan.prefix}.mcb": contents}
    listed = sorted([*files, MARK])
    text = report(plan, weights_bytes, passes, moves, version, listed, left_in_float or {}, interface)
    files[MARK] = text.encode()
    return Package(plan, files, identity=identity, with_weights_of=with_weights_of)


def _runtime(include: Path, sources: Iterable[str], workers: Sequence[str]) -> dict[str, str]:
    """The headers of the runtime that the sources include, and all that those include."""
    there = {path.name for path in include.glob("*.h")}
    missing = [*workers, *(name for source in sources for name in _INCLUDE.findall(source))]
    texts: dict[str, str] = {}
    while missing:
        name = missing.pop()
        if name in there and name not in texts:
            texts[name] = (include / name).read_text(encoding="utf-8")
            missing += _INCLUDE.findall(texts[name])
    return texts


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts files in place, all or none; `files` holds a report that lists them."""
    stale = _stale(folder, files) if folder.is_symlink() or folder.exists() else None
    try:
        if stale is None:
            _write_new(folder.absolute(), files)
        else:
            _write_over(folder, files, stale)
    except OSError as error:
        raise _refused(folder, error.strerror or str(error), "give a folder that can be written to -o") from error


def _stale(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """What an earlier run left in the folder and this one does not write again."""
    if not folder.is_dir():
        raise _refused(folder, "it is not a folder", "give another one to -o")
    listed: list[str] = []
    try:
        if any(folder.iterdir()):
            listed = [str(name) for name in json.loads((folder / MARK).read_text(encoding="utf-8"))[LIST]]
    except (OSError, ValueError, KeyError, TypeError):
        raise _refused(
            folder, "it has files in it that mccompile did not make", "give a new or empty folder to -o"
        ) from None
    inside = folder.resolve()
    return [folder / name for name in listed if name not in files and (folder / name).resolve().is_relative_to(inside)]


def _write_new(folder: Path, files: Mapping[str, bytes]) -> None:
    """The folder appears with all that is in it, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
        whole = Path(aside, folder.name)
        whole.mkdir()
        _write_files(whole, files)
        os.rename(whole, folder)


def _write_over(folder: Path, files: Mapping[str, bytes], stale: Sequence[Path]) -> None:
    """All files are complete on the same disk before the first one is put in place."""
    with tempfile.TemporaryDirectory(prefix=".mccompile-", dir=folder) as aside:
        _write_files(Path(aside), files)
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(aside, name), folder / name)
    for path in stale:
        path.unlink(missing_ok=True)


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, contents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def _refused(folder: Path, why: str, fix: str) -> WrongUse:
    return WrongUse(Problem("cannot write the output folder", str(folder), why, fix))
