"""Calls that other packages have, and what does that here: what is not there says what to write.

Invariant: each piece of code that is named can be pasted, with the model's file in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from ..base.errors import Problem, WrongUse

T = TypeVar("T")

_COMPILED = "mccompile.compile('net.onnx')"
_LOADED = "mccompile.load('net.onnx')"
_NATURAL = {
    "check": f"{_COMPILED}.check()",
    "quantize": "mccompile.compile('net.onnx', quantize='samples.npz')",
    "bench": f"{_COMPILED}.bench()",
    "analyze": f"{_COMPILED}.report",
    **dict.fromkeys(("run", "infer", "predict", "InferenceSession", "Interpreter", "Model"), f"{_LOADED}(x)"),
    **dict.fromkeys(("build", "convert", "save", "export", "Compiler", "compile_model"), f"{_COMPILED}.write('out')"),
    **dict.fromkeys(("diff", "studio", "deploy", "doctor", "opt"), ""),
}
_MODULES = ("check", "quantize")  # packages of that name are there


def instead(name: str) -> str:
    """What to write for a name that the package does not have; empty where nothing says it."""
    if name not in _NATURAL:
        return ""
    return f": write {_NATURAL[name]}" if _NATURAL[name] else f": it is a command, `mccompile {name}`"


class _Package(ModuleType):
    """A package that is called as if it were the function that its name promises."""

    def __call__(self, *_given: Any, **_named: Any) -> NoReturn:
        name = self.__name__.rpartition(".")[2]
        why = "it is a package of the compiler, not a function"
        raise WrongUse(Problem(f"{self.__name__} is not called", self.__name__, why, f"write {_NATURAL[name]}"))


def made_by(call: str) -> Callable[[type[T]], type[T]]:
    """A class whose objects a function makes: `call` is how it is called.

    Its __init__ is what checks, as copies and pickles call __new__ without the arguments."""

    def wrapped(kind: type[T]) -> type[T]:
        make = kind.__init__

        @wraps(make)
        def checked(self: T, *given: Any, **named: Any) -> None:
            try:
                inspect.signature(make).bind(self, *given, **named)
            except TypeError:
                where, why = f"mccompile.{kind.__name__}(...)", "the class takes parts of the compiler"
                raise WrongUse(Problem(f"{kind.__name__} is not called", where, why, f"write {call}")) from None
            make(self, *given, **named)

        kind.__init__ = checked  # type: ignore[method-assign,assignment]
        return kind

    return wrapped


def lead_on() -> None:
    """From here on these packages say what to call."""
    for name in _MODULES:
        import_module(f"mccompile.{name}").__class__ = _Package
