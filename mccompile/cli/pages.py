"""What commands write besides C: nothing that they read is overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.writing import cannot_write

_OTHERS = (".tflite", ".lite", ".h5", ".keras", ".pt", ".pth", ".pb", ".npz", ".c", ".h", ".bin", ".json", ".html")


def write_page(path: Path, analysis: Mapping[str, Any]) -> None:
    """The page for what `emit.analysis` says."""
    from ..emit.html_report import html_report

    try:
        path.write_text(html_report(analysis), encoding="utf-8")
    except OSError as error:
        raise cannot_write("the page", path, error, "--html") from None


def refuse_other_formats(destination: Path) -> None:
    """ONNX is what is written, whatever the file is called."""
    if destination.suffix in _OTHERS:
        why = f"ONNX is what is written; {destination.suffix} is another format"
        fix = f"did you mean -o {destination.with_suffix('.onnx')}?"
        raise WrongUse(Problem("cannot write the result", str(destination), why, fix))


def refuse_to_overwrite(destination: Path | None, *read: Path | None, option: str = "-o") -> None:
    """What a command reads is the user's only copy, for all it knows."""
    for path in read:
        if path and destination and path.exists() and destination.exists() and path.samefile(destination):
            why = "it is what the command reads, and would be lost"
            fix = f"did you mean {option} {destination.with_name(f'{destination.stem}.new{destination.suffix}')}?"
            raise WrongUse(Problem("cannot write the result", str(destination), why, fix))
