"""Golden outputs: what a model gave when it was right, kept in a folder, to be compared with later.

DIR/<model>-<target>/ holds test_data_set_0, 1, ... as ONNX's own tests have them (so --data reads them as well), and
files.json with the SHA-256 of the model and of every file that was compiled from it.

Invariant: nothing is written that is not right by the reference, and nothing is replaced that was not written here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.ci import in_ci
from ..base.errors import BadFile, CheckFailed, Problem, WrongUse
from ..base.records import dataclass
from ..driver import Options, compile
from ..emit.folder import MARK
from ..frontend.original import write_values
from .correctness import check
from .verdict import Verdict

_HASHES = "files.json"
_UPDATE = "where that is as it should be, --update-golden writes the golden outputs anew"


@dataclass(frozen=True)
class Golden:
    folder: Path
    verdict: Verdict
    written: bool
    problems: tuple[Problem, ...] = ()  # files that are not as they were

    @property
    def ok(self) -> bool:
        return self.verdict.ok and not self.problems


def check_golden(path: Path, options: Options, top: Path, update: bool = False, **how: Any) -> Golden:
    """Compares a model with its golden outputs; where there are none, or with `update`, compares it with the reference
    and writes them, but not in CI: what is not committed would be right every time. `how`: what `check` takes."""
    if options.state or options.stream or options.inputs or options.outputs:
        fix = "leave it out with --golden: inputs, outputs and states are then as in the file"
        asked = {"--state": options.state, "--stream": options.stream, "--input": options.inputs, "--output": True}
        what = next(flag for flag, given in asked.items() if given)
        raise WrongUse(Problem(f"golden outputs are those of the model's file; {what} gives others", what, "", fix))
    if (top / MARK).is_file():
        why = f"{top} is what mccompile wrote for a program, which is compiled anew and not kept"
        fix = f"did you mean --golden {top.with_name(f'golden-{top.name}')}?"
        raise WrongUse(Problem("golden outputs need a folder of their own", f"--golden {top}", why, fix))
    package = compile(path, options)
    folder = top / f"{options.name or path.stem}-{package.plan.target}"
    hashes = {name: _digest(contents) for name, contents in sorted(package.files.items())}
    now = {"model": _digest(path.read_bytes()), "files": hashes}
    stored = folder / _HASHES
    if stored.is_file() and not update:
        verdict = check(path, options, **(how | {"data": folder}))
        return Golden(folder, verdict, False, tuple(_changes(path, folder, _read(stored), now)))
    if in_ci() and not update:
        raise _missing(path, options, top, folder)
    verdict = check(path, options, **how)
    if verdict.ok:
        _write(folder, verdict, now)
    return Golden(folder, verdict, verdict.ok)


def _missing(path: Path, options: Options, top: Path, folder: Path) -> CheckFailed:
    why = "CI is set, and outputs that are written here are compared with nothing and lost"
    command = f"mccompile check {path} --target {options.target} --golden {top}"
    fix = f"run `{command}` and commit {top}"
    return CheckFailed(Problem(f"{path.name} has no golden outputs", str(folder), why, fix))


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def _read(stored: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(stored.read_text(encoding="utf-8"))
        if isinstance(found["model"], str) and isinstance(found["files"], dict):
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise BadFile(
        Problem("golden outputs cannot be read", str(stored), "it was changed after mccompile wrote it", _UPDATE)
    )


def _changes(path: Path, folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Problem]:
    old, new = before["files"], now["files"]
    lists = {
        "changed": [name for name in new if name in old and old[name] != new[name]],
        "new": [name for name in new if name not in old],
        "gone": [name for name in old if name not in new],
    }
    lines = [f"{word}: {', '.join(names)}" for word, names in lists.items() if names]
    if before["model"] != now["model"]:
        lines.insert(0, f"{path.name} itself is another file than the one that they were written for")
    what = f"{path.name} does not compile to the files that it did"
    return [Problem(what, str(folder), "\n".join(lines), _UPDATE)] if len(lines) else []


def _write(folder: Path, verdict: Verdict, hashes: Mapping[str, Any]) -> None:
    if not verdict.kept:
        why = "inputs or outputs are sequences or optional values"
        name = verdict.package.plan.name
        raise WrongUse(Problem("golden outputs cannot be kept of this model", name, why, "leave out --golden"))
    sets = sorted(folder.glob("test_data_set_*"))
    if sets and not (folder / _HASHES).is_file():
        fix = "name another folder after --golden"
        raise WrongUse(Problem("the folder holds other test data", str(folder), f"it has no {_HASHES}", fix))
    try:
        for data in sets:
            for file in (*data.glob("input_*.pb"), *data.glob("output_*.pb")):
                file.unlink()
        for number, kept in enumerate(verdict.kept):
            data = folder / f"test_data_set_{number}"
            data.mkdir(parents=True, exist_ok=True)
            write_values(data, "input", kept.inputs)
            write_values(data, "output", {name: kept.got[name] for name in verdict.made})
        for data in sets:
            if not any(data.iterdir()):  # there were more of them
                data.rmdir()
        (folder / _HASHES).write_bytes(json.dumps(hashes, indent=1).encode() + b"\n")  # of one form everywhere
    except OSError as error:
        why = error.strerror or str(error)
        raise WrongUse(Problem("cannot write golden outputs", str(folder), why, "name a folder to write to")) from None
