"""The output folder: all files are made in memory, written aside, and put in place by a rename.

Invariant: a folder that already exists is replaced whole or left alone; one that mccompile did not make is never touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.discovery import data_folder
from ..base.errors import Problem, WrongUse
from ..plan.ir import Plan
from . import blob as blob_format
from .kernels import kernel_files
from .model import model_files, runtime_version
from .report import report

MARK = "report.json"  # a folder that has it was made by mccompile


@dataclass(frozen=True)
class Package:
    """A compiled model: its plan and its files by their path below the output folder."""

    plan: Plan
    files: Mapping[str, bytes]

    def write(self, folder: Path) -> None:
        _replace_folder(folder, self.files)


def package(plan: Plan, passes: Sequence[tuple[str, int, int]], version: str) -> Package:
    include = data_folder("runtime_c") / "include"
    runtime = {f"runtime/{path.name}": path.read_text(encoding="utf-8") for path in sorted(include.glob("*.h"))}
    needed = runtime_version(runtime["runtime/mcc.h"])
    alignment = max(16, plan.arena_align)
    kernels = kernel_files(plan)
    nothing = bytes(16)
    weights_bytes = len(blob_format.blob(plan, nothing, alignment))
    draft = model_files(plan, nothing, alignment, weights_bytes, needed)
    identity = blob_format.identity(plan, "".join([*kernels.values(), draft[f"{plan.prefix}.c"]]))
    contents = blob_format.blob(plan, identity, alignment)
    texts = {
        **model_files(plan, identity, alignment, weights_bytes, needed),
        **kernels,
        f"{plan.prefix}_weights.c": blob_format.weights_source(plan.prefix, contents, alignment),
        MARK: report(plan, weights_bytes, passes, version),
        **runtime,
    }
    files = {name: text.encode() for name, text in texts.items()}
    return Package(plan, {**files, f"{plan.prefix}.mcb": contents})


def _replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    folder = folder.absolute()
    if folder.is_symlink() or folder.exists():
        if not folder.is_dir():
            raise _refused(folder, "it is a file", "give another folder to -o")
        if any(folder.iterdir()) and not (folder / MARK).is_file():
            raise _refused(folder, "it has files in it that mccompile did not make", "give a new or empty folder to -o")
    aside: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        for name, contents in files.items():
            path = aside / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
        umask = os.umask(0)
        os.umask(umask)
        aside.chmod(0o777 & ~umask)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            os.rename(folder, old / "old")
            os.rename(aside, folder)
            shutil.rmtree(old)
        else:
            os.rename(aside, folder)
    except OSError as error:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)
        raise _refused(folder, error.strerror or str(error), "give a folder that can be written to -o") from error


def _refused(folder: Path, why: str, fix: str) -> WrongUse:
    return WrongUse(Problem("cannot write the output folder", str(folder), why, fix))
