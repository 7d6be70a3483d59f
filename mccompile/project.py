"""A project file: models with their options, for what would be a long command line. TOML, or JSON of the same form:

    name = "assistant"              # of what the models share
    target = "cortex-m4"            # options at the top are those of every model that has not its own
    state = {h = "h_in"}            # of those that have such tensors, as where a command line names several models
    [[model]]
    file = "kws.onnx"               # relative to this file
    input = "x=u8,scale=1/255"      # options are called as on the command line, without dashes
    dim = {batch = 1}               # NAME=VALUE as a table, several values as a list, a flag as true

Invariant: a model is compiled as by its options on the command line: this module only writes them down as arguments.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .base.errors import BadFile, Problem, WrongUse, raise_all
from .base.near import meant
from .base.records import dataclass
from .kernels.measurements import DEFAULT

_OWN = ("name", "package", "model")  # keys at the top that are not options of models
_FILES = ("model", "path", "onnx", "source", "filename", "network")  # what `file` of a model is called elsewhere


@dataclass(frozen=True)
class Job:
    """A model, and the arguments of a command line that would compile it."""

    file: Path
    arguments: tuple[str, ...]
    where: str  # in the project file
    shared: tuple[str, ...] = ()  # keys at the top that it has not itself


@dataclass(frozen=True)
class Project:
    name: str
    package: str  # arrangement of files; empty: none
    jobs: tuple[Job, ...]


def read(path: Path, options: Mapping[str, tuple[str, bool]]) -> Project:
    """`options`: how each key is written on a command line, and is it a path? Such as {"dim": ("--dim", False)}."""
    table = _table(path)
    write = _write(path)
    models = table.get("model")
    if not isinstance(models, list) or not models or not all(isinstance(model, dict) for model in models):
        why = "its key model is not a list of tables"
        raise WrongUse(Problem("a project file names no models", str(path), why, write))
    shared = {key: value for key, value in table.items() if key not in _OWN}
    problems = _unknown(shared, [*_OWN, *(key for key in options if key != "name")], str(path))
    for key in ("name", "package"):
        if not isinstance(table.get(key, ""), str):
            problems.append(Problem(f"key {key!r} is not text", str(path), "", f'write {key} = "..."'))
    jobs = []
    for number, model in enumerate(models, 1):
        file = model.get("file")
        where = f"{path}, model {number}" + (f" ({file})" if isinstance(file, str) else "")
        own = {key: value for key, value in model.items() if key != "file"}
        problems += _unknown(own, ["file", *options], where)
        if not isinstance(file, str):
            problems.append(Problem("a model has no file", where, "", 'write file = "model.onnx"'))
            continue
        arguments = [
            argument
            for key, value in {**shared, **own}.items()
            if key in options
            for argument in _arguments(*options[key], key, value, path.parent, where)
        ]
        inherited = tuple(key for key in shared if key not in own)
        jobs.append(Job(path.parent / file, tuple(arguments), where, inherited))
    raise_all(WrongUse, problems)
    return Project(table.get("name", path.stem), table.get("package", ""), tuple(jobs))


def _write(path: Path) -> str:
    """What a project has at least."""
    if path.suffix == ".json":
        return 'write {"model": [{"file": "model.onnx"}]}, with one {...} per model'
    return 'write [[model]] and file = "model.onnx" below it, once per model'


def _table(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        table = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadFile(Problem("cannot read the project file", str(path), why, _write(path))) from None
    except ValueError as error:
        raise BadFile(Problem("the project file cannot be read", str(path), str(error), _write(path))) from None
    if not isinstance(table, dict):
        raise BadFile(Problem("the project file cannot be read", str(path), "it is not a table of keys", _write(path)))
    return table


def _unknown(table: Mapping[str, Any], known: list[str], where: str) -> list[Problem]:
    found = []
    for key in table:
        if key not in known:
            fix = ("did you mean file?" if key in _FILES and "file" in known else meant(key, known)) or "leave it out"
            found.append(Problem(f"there is no key {key!r}", where, f"the keys are {', '.join(known)}", fix))
    return found


def _arguments(flag: str, is_path: bool, key: str, value: Any, folder: Path, where: str) -> list[str]:
    """A key and its value as on the command line."""
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, list):
        return [argument for each in value for argument in _arguments(flag, is_path, key, each, folder, where)]
    if isinstance(value, dict):
        return [argument for name, each in value.items() for argument in (flag, f"{name}={_plain(each, key, where)}")]
    text = _plain(value, key, where)
    if (is_path and (key, text) != ("tuned", DEFAULT)) or (key == "target" and text.endswith(".toml")):
        text = str(folder / text)
    return [flag, text]


def _plain(value: Any, key: str, where: str) -> str:
    if isinstance(value, list) and all(isinstance(each, int | str) for each in value):
        return ",".join(map(str, value))  # a shape
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        why = f"no option has the value {value!r}"
        raise WrongUse(Problem(f"key {key!r} cannot be as it is", where, why, "write text or a number"))
    return str(value)
