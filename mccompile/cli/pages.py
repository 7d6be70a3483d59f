"""What commands write besides C: nothing that they read is overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.errors import Problem, WrongUse
from ..base.writing import cannot_write

if TYPE_CHECKING:
    from ..emit.package import Package

_SOURCES = (".c", ".cc", ".cpp", ".h", ".hpp", ".o", ".a", ".so", ".rs", ".js", ".wasm", ".tflite", ".onnx", ".zip")
_OTHERS = (".tflite", ".lite", ".h5", ".keras", ".pt", ".pth", ".pb", ".npz", ".c", ".h", ".bin", ".json", ".html")


def write_page(path: Path, package: Package, analysis: Mapping[str, Any]) -> None:
    """The page of one build, for what `emit.analysis` says of it."""
    write_text(path, page_of(package, analysis))


def page_of(package: Package, analysis: Mapping[str, Any]) -> str:
    from ..emit.studio.page import studio_page
    from ..emit.studio.view import view

    return studio_page([view(analysis, [*lines_of(package)])])


def page_file(name: str) -> Callable[[click.Context, click.Parameter, str | None], Path | None]:
    """Reads where a page goes: a file, or one called `name` in a folder that is there or that a slash says is meant."""

    def read(_ctx: click.Context, _param: click.Parameter, given: str | None) -> Path | None:
        if given is None:
            return None
        is_folder = given.endswith(("/", os.sep)) or Path(given).is_dir()
        return Path(given, name) if is_folder else Path(given)

    return read


def write_text(path: Path, text: str, option: str = "--html") -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write("the page", path, error, option) from None


def lines_of(package: Package) -> Iterator[dict[str, Any]]:
    """The lines of C that belong to steps, with their text."""
    from ..evidence.lines import segments

    prefix = package.plan.prefix
    for path in (f"{prefix}.c", f"{prefix}_kernels.c", f"{prefix}_kernels.h"):
        if path not in package.files:  # all of it is one file then
            continue
        text = package.files[path].decode().split("\n")
        for piece in segments(path, package):
            first, last = piece["lines"]
            if piece["steps"]:
                own = {"file": path, "first": first, "last": last, "what": piece["what"], "steps": list(piece["steps"])}
                yield own | {"text": "\n".join(text[first - 1 : last])}


def refuse_other_formats(destination: Path) -> None:
    """ONNX is what is written, whatever the file is called."""
    if destination.suffix in _OTHERS:
        why = f"ONNX is what is written; {destination.suffix} is another format"
        other = destination.with_suffix(".onnx")
        fix = f"did you mean -o {other.with_suffix('.new.onnx') if other.exists() else other}?"
        raise WrongUse(Problem("cannot write the result", str(destination), why, fix))


def refuse_names_of_files(folder: Path) -> None:
    """A folder is what is written, with files that are named after the model."""
    if folder.suffix in _SOURCES and not folder.is_dir():
        why = "-o names the folder of the C files"
        fix = f"did you mean -o {folder.with_suffix('')}?"
        raise WrongUse(Problem("cannot write the result", str(folder), why, fix))


def refuse_to_overwrite(destination: Path | None, *read: Path | None, option: str = "-o") -> None:
    """What a command reads is the user's only copy, for all it knows."""
    for path in read:
        if path and destination and path.exists() and destination.exists() and path.samefile(destination):
            why = "it is what the command reads, and would be lost"
            fix = f"did you mean {option} {destination.with_name(f'{destination.stem}.new{destination.suffix}')}?"
            raise WrongUse(Problem("cannot write the result", str(destination), why, fix))
