"""What is wrong, as Python has it: `--dim batch=1` is `dims={"batch": 1}`; a model from memory is no temporary file.

Invariant: commands in quotes stay commands; what is translated can be pasted into a call.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..base.errors import MccError, Problem
from ..option_table import Option, options

P = ParamSpec("P")
R = TypeVar("R")
FOLDER = "mccompile-"  # how the folder of a model from memory begins

_FLAGS = {option.flag: option for option in options() if option.has_flag}
_COMMAND = re.compile(r"(`[^`]*`|\bmccompile [a-z].*)")
_FLAG = re.compile(r"(?<![\w-])(--[a-z][\w-]*|-O0)(?:[ =]([^\s?;)]*[^\s?;:,.)]))?")
_TWICE = re.compile(r" \(in Python: [^)]*\)")
_IN_MEMORY = re.compile(rf"{re.escape(tempfile.gettempdir())}[/\\]{FOLDER}\w+[/\\]([\w.-]+)")


def spoken(call: Callable[P, R]) -> Callable[P, R]:
    """A function of the package whose errors are those of Python."""

    @wraps(call)
    def told(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return call(*args, **keywords)
        except MccError as error:
            error.problems = tuple(_in_python(problem, args[0] if args else None) for problem in error.problems)
            error.args = ("\n".join(problem.render() for problem in error.problems),)
            raise

    return told


def _in_python(problem: Problem, model: object) -> Problem:
    texts = {name: getattr(problem, name) for name in ("what", "where", "why", "fix")}
    found = next((found for text in texts.values() if (found := _IN_MEMORY.search(text))), None)
    for name, text in texts.items():
        if found is not None:
            text = text.replace(found[0], f"<{type(model).__name__}>").replace(found[1], f"<{type(model).__name__}>")
        parts = _COMMAND.split(_TWICE.sub("", text))
        parts[::2] = (_FLAG.sub(_keyword, part) for part in parts[::2])
        texts[name] = "".join(parts)
    return replace(problem, **texts)


def _keyword(found: re.Match[str]) -> str:
    flag, value = found[1], found[2]
    option = _FLAGS.get(flag)
    if option is None:
        return found[0]
    if option.type == "bool":
        rest = f"{found[0][len(flag)]}{value}" if value else ""
        return f"{option.name}={flag != '-O0'}{rest}"
    if not value or not _is_value(option, value):
        return f"{option.name}{found[0][len(flag) :]}"
    return f"{option.name}={_literal(option, value)}"


def _is_value(option: Option, value: str) -> bool:
    """Words may follow a flag: `leave out --dim and ...`."""
    return "=" in value if option.type.startswith("Mapping") else value not in ("and", "or", "to", "is", "has", "does")


def _literal(option: Option, value: str) -> str:
    if not option.type.startswith("Mapping"):
        is_number = option.type.split(" ")[0] in ("int", "float") and re.fullmatch(r"[\d.e-]+", value)
        return value if is_number else f'"{value}"'
    if option.name in ("dims", "budget"):
        pairs = [each.partition("=")[::2] for each in value.split(",")]
    else:
        pairs = [value.partition("=")[::2]]
    return "{" + ", ".join(f'"{name}": {_element(option.name, given)}' for name, given in pairs) + "}"


def _element(name: str, given: str) -> str:
    if name in ("shapes", "bounds"):
        return f"({', '.join(given.split(','))},)" if "," not in given else f"({', '.join(given.split(','))})"
    return given if given.isdigit() else f'"{given}"'


def unknown(name: str, known: Any) -> str:
    """The keyword that is meant by another tool's, where the words of the command line say it."""
    from ..base.meanings import ours

    flags = ours(f"--{name}")
    meant = [_FLAGS[flag].name for flag in flags if flag in _FLAGS and _FLAGS[flag].name in known]
    if "-o" in flags:
        return "compile(...).write(FOLDER) names a folder"
    return f"did you mean {meant[0]}?" if meant else ""
