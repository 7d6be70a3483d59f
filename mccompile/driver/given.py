"""What `Options` is called with in Python: options by their names, each of its type.

Invariant: whatever is wrong with it is a WrongUse that names the option, before anything is read of it.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from textwrap import shorten
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.near import meant

_NUMBER = ("it is a number", lambda value: value is None or isinstance(value, numbers.Real), "1e-6")

# By the type of a field: what it must be, in words and as a test, and an example.
_PLAIN: Mapping[str, tuple[str, Callable[[Any], bool], str]] = {
    "bool": ("it is True or False", lambda value: str(value) in ("True", "False"), "True"),
    "int": ("it is a whole number", lambda value: hasattr(value, "__index__") and not isinstance(value, bool), "2"),
    "float": _NUMBER,
    "float | None": _NUMBER,
    "str": ("it is text", lambda value: isinstance(value, str), "'...'"),
}


def refuse_misread(kind: type, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raises WrongUse for arguments without a name, under a name that is none, or of another type."""
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}
    if given:
        what, where = f"options have names, and {_said(given[0])} has none", f"Options({_said(given[0])})"
        fix = "write Options(target='cortex-m4'); a model is given to mccompile.compile('net.onnx', options)"
        raise WrongUse(Problem(what, where, "options are keyword arguments", fix))
    for name, value in named.items():
        if name not in known:
            what, why = f"there is no option {name!r}", "options are the fields of Options"
            fix = meant(name, known) or f"there are {', '.join(known)}"
            raise WrongUse(Problem(what, f"{name}={_said(value)}", why, fix))
        why, is_right, example = _PLAIN.get(str(known[name].type), ("", _anything, ""))
        if not is_right(value):
            what, fix = f"option {name!r} cannot be {_said(value)}", f"such as {name}={example}"
            raise WrongUse(Problem(what, f"{name}={_said(value)}", why, fix))


def _anything(_value: Any) -> bool:
    return True


def _said(value: Any) -> str:
    return shorten(repr(value), 60, placeholder="...")
