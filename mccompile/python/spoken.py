"""What is wrong, as Python has it: `--dim batch=1` is `dims={"batch": 1}`; a model from memory is not a temporary file.

Invariant: commands in quotes stay commands; what is translated can be pasted into a call.
"""

from __future__ import annotations

import inspect
import numbers
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from textwrap import shorten
from typing import Any, ParamSpec, TypeVar

from ..base.errors import MccError, Problem, WrongUse
from ..base.near import meant
from ..base.scratch import FOLDER
from ..option_table import Option, options

P = ParamSpec("P")
R = TypeVar("R")

_FLAGS = {option.flag: option for option in options() if option.has_flag}
_WORDS = ("and", "or", "to", "is", "has", "does", "cannot")
_LACKING = {"loss": '"cross_entropy:OUTPUT"', "folder": '"out"', "path": '"learned.onnx"'}
_COMMAND = re.compile(r"(`[^`]*`|\bmccompile [a-z].*)")
_FLAG = re.compile(r"(?<![\w-])(--[a-z][\w-]*|-O0|-o)(?:[ =]([^\s?;)(](?:[^\s?;)]*[^\s?;:,.)])?))?")
_TWICE = re.compile(r" \(in Python: [^)]*\)")
_IN_MEMORY = re.compile(rf"{re.escape(tempfile.gettempdir())}[/\\]{FOLDER}\w+[/\\]([\w-]+\.[\w.]+)")


def spoken(call: Callable[P, R]) -> Callable[P, R]:
    """A function or method of the package whose errors are those of Python."""
    signature = inspect.signature(call)
    given_names = frozenset(signature.parameters)
    is_method = "self" in given_names

    @wraps(call)
    def told(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return call(*args, **keywords)
        except MccError as error:
            kind = "model" if is_method or not args else type(args[0]).__name__
            error.problems = tuple(_in_python(problem, kind, given_names) for problem in error.problems)
            error.args = ("\n".join(problem.render() for problem in error.problems),)
            raise
        except (TypeError, ValueError):
            _refuse_what_does_not_fit(call.__qualname__, signature, args, keywords)
            _refuse_other_types(call.__qualname__, signature, args, keywords)
            raise

    return told


def _refuse_what_does_not_fit(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> None:
    """Arguments that a call does not take, or lacks."""
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        parameters = [each for each in signature.parameters.values() if each.name != "self"]
        own = {each.name: each for each in parameters if each.kind is not each.VAR_KEYWORD}
        odd = next((each for each in keywords if each not in own), "")
        lacks = next((each for each in own if f"{each!r}" in str(error) and each not in keywords), "")
        takes = ", ".join(str(each.replace(annotation=each.empty)) for each in own.values()) or "nothing"
        fix = (meant(odd, own) if odd else "") or (f"add {lacks}={_LACKING[lacks]}" if lacks in _LACKING else "")
        fix = fix or (f"leave out {odd}" if odd else f"give it what it takes: {takes}")
        problem = Problem(f"{name} does not take these arguments", f"{name}(...)", f"{error}; it takes {takes}", fix)
        raise WrongUse(problem) from None


_PLAIN: Mapping[str, tuple[str, Callable[[Any], bool], str]] = {  # by the annotation: in words, a test, an example
    "int": ("it is a whole number", lambda value: hasattr(value, "__index__"), "1"),
    "float": ("it is a number", lambda value: isinstance(value, numbers.Real), "0.01"),
    "str": ("it is text", lambda value: isinstance(value, str), "'...'"),
    "str | Path": ("it is a path", lambda value: isinstance(value, str | os.PathLike), "'out'"),
}


def _refuse_other_types(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> None:
    """Plain arguments of another type, which is why a call has failed."""
    for own, value in signature.bind(*args, **keywords).arguments.items():
        parameter = signature.parameters[own]
        kind = str(parameter.annotation).removesuffix(" | None")
        if kind not in _PLAIN or value is None or _PLAIN[kind][1](value):
            continue
        why, _, example = _PLAIN[kind]
        default = parameter.default
        fix = f"such as {own}={example if default in (None, parameter.empty) else repr(default)}"
        shown = shorten(repr(value), 60, placeholder="...")
        raise WrongUse(Problem(f"{own} cannot be {shown}", f"{name}({own}=...)", why, fix)) from None


def _in_python(problem: Problem, kind: str, given_names: frozenset[str]) -> Problem:
    texts = {name: getattr(problem, name) for name in ("what", "where", "why", "fix")}
    found = next((found for text in texts.values() if (found := _IN_MEMORY.search(text))), None)
    for name, text in texts.items():
        if found is not None:
            text = _IN_MEMORY.sub(r"\1", text).replace(found[1], f"<{kind}>")
        parts = _COMMAND.split(_TWICE.sub("", text))
        parts[::2] = (_FLAG.sub(lambda each: _keyword(each, given_names), part) for part in parts[::2])
        texts[name] = "".join(parts)
    return replace(problem, **texts)


def _keyword(found: re.Match[str], given_names: frozenset[str]) -> str:
    flag, value = found[1], found[2]
    own = "folder" if flag == "-o" else flag.lstrip("-").replace("-", "_")
    if own in given_names:  # of the call itself
        if not value or value in _WORDS:
            return f"{own}{found[0][len(flag) :]}"
        return f"{own}={value}" if re.fullmatch(r"-?[\d.e-]+", value) else f'{own}="{value}"'
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
    return "=" in value if option.type.startswith("Mapping") else value not in _WORDS


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

    flags = (f"--{name}", *ours(f"--{name.replace('_', '-')}"))
    meant = [_FLAGS[flag].name for flag in flags if flag in _FLAGS and _FLAGS[flag].name in known]
    if "-o" in flags:
        return "compile(...).write(FOLDER) names a folder"
    return f"did you mean {meant[0]}?" if meant else ""
