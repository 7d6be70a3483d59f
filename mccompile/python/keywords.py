"""Keywords of Python calls as `Options`: sizes as ints, paths as str, lists where the compiler wants tuples.

Invariant: a keyword that is not understood is a WrongUse that names it, and the one that was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from operator import index
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from .. import option_texts
from ..base.errors import Problem, WrongUse
from ..base.near import meant
from ..driver import Options
from ..option_table import options
from ..passes.io.io_forms import parse_input, parse_output
from .spoken import unknown


def options_of(base: Options | None, keywords: Mapping[str, Any]) -> Options:
    """`base` with the keywords of a call; each is called like the field of `Options`."""
    if base is not None and not isinstance(base, Options):
        fix, where = "give options by name, such as target='cortex-m4'", f"(model, {_said(base)})"
        if isinstance(base, str | PathLike):
            fix += f"; a folder is named by compile(model).write({str(base)!r})"
        raise WrongUse(Problem(f"options cannot be {_said(base)}", where, "it is not an object of Options", fix))
    known = {field.name: _PLAIN.get(str(field.type), lambda value: value) for field in fields(Options)}
    for name in keywords:
        if name not in known:
            fix = unknown(name, known) or meant(name, known) or f"there are {', '.join(known)}"
            why = "keywords are the fields of mccompile.Options"
            raise WrongUse(Problem(f"there is no option {name!r}", f"{name}={_said(keywords[name])}", why, fix))
    found = {}
    plain = Options()
    changed = {name: value for name in known if base and (value := getattr(base, name)) != getattr(plain, name)}
    for name, value in {**changed, **keywords}.items():
        try:
            found[name] = _READERS.get(name, known[name])(value)
        except (ValueError, TypeError) as error:
            why, _, close = str(error).partition("; ")
            fix = close or f"such as {name}={_EXAMPLES.get(name) or _example(name)}"
            what = f"option {name!r} cannot be {_said(value)}"
            raise WrongUse(Problem(what, f"{name}=...", why, fix)) from None
    return replace(base or Options(), **found)


def _example(name: str) -> str:
    """A value that the option may have."""
    option = next(each for each in options() if each.name == name)
    if option.entry.values:
        return repr(option.entry.values[0])
    return _USUAL.get(option.type.partition(" ")[0]) or repr((option.entry.metavar or "...").lower())


def _said(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return shorten(repr(value), 60, placeholder="...") if shape is None else f"an array of the shape {list(shape)}"


def _range(size: Any) -> tuple[int, int]:
    """A size, a pair of lowest and highest, or "1..8"."""
    if isinstance(size, str):
        ((_, found),) = option_texts.dims((f"size={size}",)).items()
        return found
    low, high = (size, size) if _is_number(size) else size
    return index(low), index(high)


def _is_number(given: Any) -> bool:
    """Of Python, numpy or any other library."""
    return hasattr(given, "__index__") and getattr(given, "ndim", 0) == 0


def _mapping(read: Callable[[Any], Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda given: {str(name): read(value) for name, value in _dict(given).items()}


def _dict(given: Any) -> dict[str, Any]:
    if isinstance(given, str) or _is_number(given):
        raise TypeError("it is a dictionary")
    try:
        return dict(given)
    except (TypeError, ValueError):
        raise TypeError("it is a dictionary") from None


def _names(given: Any) -> tuple[str, ...]:
    """One text, several, or a dictionary of what stands on both sides of `=`."""
    if isinstance(given, Mapping):
        return tuple(f"{name}={value}" for name, value in given.items())
    return (given,) if isinstance(given, str) else tuple(given)


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not _is_number(given):
        raise TypeError("it is a whole number")
    return index(given)


def _samples(given: Any) -> Path | None:
    if given is not None and not isinstance(given, str | PathLike):
        raise TypeError("samples lie in a file, as numpy.savez('samples.npz', x=samples) writes it")
    return None if given is None else Path(given)


def _sizes(given: Any) -> tuple[Any, ...]:
    """Sizes, names of sizes, or sizes of each element of a sequence."""
    if _is_number(given):
        return (index(given),)
    return tuple(size if isinstance(size, str) else index(size) if _is_number(size) else _sizes(size) for size in given)


def _flag(given: Any) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise TypeError("write True or False")
    return bool(given)


def _budget(what: str, given: int | str) -> int:
    """65536, "64K" or "1M"."""
    return option_texts.budget((f"{what}={given}",))[what]


def _paths(given: Any) -> tuple[Path, ...]:
    return tuple(Path(path) for path in ([given] if isinstance(given, str | PathLike) else given))


def _forms(read: Callable[[str], tuple[str, Any]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Forms as the command line has them after `NAME=`, or ready made."""
    return lambda given: {k: read(f"{k}={v}")[1] if isinstance(v, str) else v for k, v in _dict(given).items()}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "target": str,
    "board": str,
    "dims": _mapping(_range),
    "shapes": _mapping(_sizes),
    "bounds": _mapping(_sizes),
    "budget": lambda given: {what: _budget(what, value) for what, value in _dict(given).items()},
    "state": _mapping(str),
    "stream": lambda given: option_texts.stream(_names(given)) if _is_text(given) else given,
    "prepend": lambda given: option_texts.prepended(_each(given)) if _is_file(given) else tuple(given),
    "inputs": _forms(parse_input),
    "outputs": _forms(parse_output),
    "mem": lambda given: option_texts.pools(_names(given)) if _is_text(given) else tuple(given),
    "functions": lambda given: option_texts.functions(_names(given)) if _is_text(given) else tuple(given),
    "quantize": _samples,
    "winograd": option_texts.winograd,
    "weights_window": option_texts.window,
}

_EXAMPLES: Mapping[str, str] = {
    "dims": '{"batch": 1}',
    "shapes": '{"x": (1, 3, 32, 32)}',
    "bounds": '{"selected": 100}',
    "budget": '{"ram": "64K"}',
    "state": '{"h_out": "h_in"}',
    "inputs": '{"x": "u8"}',
    "outputs": '{"y": "argmax"}',
    "quantize": '"samples.npz"',
}

_USUAL: Mapping[str, str] = {"int": "2", "float": "1e-6", "bool": "True"}

_PLAIN: Mapping[str, Callable[[Any], Any]] = {  # by the type of a field
    "bool": _flag,
    "int": _whole,
    "float": float,
    "Path | None": lambda given: None if given is None else Path(given),
    "tuple[str, ...]": _names,
    "frozenset[str]": lambda given: frozenset(_names(given)),
    "tuple[Path, ...]": _paths,
}


def _each(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | PathLike) else list(given)


def _is_file(given: Any) -> bool:
    return all(isinstance(each, str | PathLike) for each in _each(given))


def _is_text(given: Any) -> bool:
    return isinstance(given, str | Mapping) or all(isinstance(each, str) for each in given)
